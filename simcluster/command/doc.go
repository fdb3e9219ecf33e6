// Package command is the command line of simcluster, the embedded cluster: what its commands are called, which flags
// they have and what they print. Package controlplane does the work. The program itself (simcluster/cmd/simcluster)
// also holds Kubernetes' own components; this package leaves them out, so that what only wants to know the commands
// need not link them. Linux only.
package command
