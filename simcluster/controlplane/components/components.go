//go:build linux

// Package components contains the programs of the control plane: etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler, unmodified, from their own Go modules.
//
// It is the only package of this repository that imports k8s.io/kubernetes and etcd: linking them takes seconds and
// more than a hundred megabytes, which tests and tools that only use a cluster should not need.
//
// The upstream commands install process-wide signal handlers, metrics and feature gates, so one process runs one
// component, once. Package controlplane re-executes the binary for each component.
package components

import (
	"fmt"
	"os"
	"syscall"
	_ "time/tzdata" // CronJobs name time zones, and a small container image has no zone files.

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the clients' metrics, as upstream's main packages register them
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// Run runs the named component (one of controlplane's component names) with its own command-line flags until it is
// signalled to stop by SIGTERM or SIGINT, and returns its exit code.
func Run(name string, args []string) int {
	// What a component writes (data, keys, sockets) is its owner's alone.
	syscall.Umask(0o077)
	// Only the command that runs may be constructed: the constructors install signal handlers, and a second one panics.
	switch name {
	case controlplane.Etcd:
		if err := runEtcd(args); err != nil {
			fmt.Fprintf(os.Stderr, "etcd: %v\n", err)
			return 1
		}
		return 0
	case controlplane.APIServer:
		return runKubernetes(apiserver.NewAPIServerCommand(), args)
	case controlplane.ControllerManager:
		return runKubernetes(controllermanager.NewControllerManagerCommand(), args)
	case controlplane.Scheduler:
		return runKubernetes(scheduler.NewSchedulerCommand(), args)
	}
	fmt.Fprintf(os.Stderr, "there is no control plane component %q\n", name)
	return 2
}

func runKubernetes(command *cobra.Command, args []string) int {
	command.SetArgs(args)
	return cli.Run(command)
}
