// Package command is the command line of simcluster, the embedded cluster: its commands, their flags and their output.
// Package controlplane does the work. The program itself (simcluster/cmd/simcluster) also contains Kubernetes' own
// components; this package does not, so that tests of the commands need not link them. Linux only.
package command
