package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/e2e/controlplane"
)

// dirVariable is the environment variable that gives --dir its default.
const dirVariable = "SIMCLUSTER_DIR"

func rootCommand() *cobra.Command {
	var dir string
	root := &cobra.Command{
		Use:   "simcluster",
		Short: "A real Kubernetes control plane with simulated nodes, on this machine",
		Long: `simcluster runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler ` + controlplane.KubernetesVersion + `
from this one binary, and a node agent in the kubelets' place: nodes have the capacity that
you declare, and their containers are local processes. It needs no root, no container engine
and no network; nothing listens beyond 127.0.0.1. Linux only.

Everything is kept in one directory (--dir, or $` + dirVariable + `); "down" stops the cluster and the next
"up" goes on where it stopped.

Exit codes: 0 done, 1 failed, 2 the command line makes no sense, 3 the cluster is not running.`,
		Example: `  export $(simcluster up)                     # three nodes of 4 CPU and 15 GiB; sets KUBECONFIG
  kubectl get nodes
  simcluster up --image elastic-trainer=bin/elastic-trainer --image '*'=host
  simcluster node stop node-2                 # the machine dies
  simcluster logs my-pod -f
  simcluster down`,
		Version:       controlplane.KubernetesVersion,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q; see simcluster --help", args[0])}
			}
			return nil
		},
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, command.CommandPath())}
	})
	root.SetVersionTemplate("simcluster with Kubernetes {{.Version}}\n")
	root.PersistentFlags().StringVar(&dir, "dir", defaultDir(), "state directory of the cluster; also $"+dirVariable)
	layout := func() (controlplane.Layout, error) { return controlplane.NewLayout(dir) }
	root.AddCommand(upCommand(layout), downCommand(layout), statusCommand(layout), nodeCommand(layout), logsCommand(layout))
	return root
}

func defaultDir() string {
	if dir := os.Getenv(dirVariable); dir != "" {
		return dir
	}
	return ".simcluster"
}

// A layoutFunc gives the cluster's layout once the flags are parsed.
type layoutFunc func() (controlplane.Layout, error)

// arguments wants exactly as many arguments as it has names.
func arguments(names ...string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usageError{fmt.Errorf("%s wants %d arguments %v, but there are %d; see %s --help", command.CommandPath(), len(names), names, len(args), command.CommandPath())}
		}
		return nil
	}
}

// runningCluster returns layout and status of the cluster, or errNotRunning.
func runningCluster(layout layoutFunc) (controlplane.Layout, controlplane.Status, error) {
	l, err := layout()
	if err != nil {
		return l, controlplane.Status{}, err
	}
	status, err := controlplane.ReadStatus(l)
	if errors.Is(err, controlplane.ErrNoCluster) || err == nil && status.Phase == controlplane.PhaseStopped {
		return l, status, fmt.Errorf("%s: %w", l.Dir, errNotRunning)
	}
	return l, status, err
}

func downCommand(layout layoutFunc) *cobra.Command {
	var remove bool
	command := &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster; its state stays",
		Long: `Stops everything in order: containers, scheduler, controller manager, API server, etcd. The
state directory stays, so that "up" goes on from there, unless --delete is given.`,
		Args: arguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			l, err := layout()
			if err != nil {
				return err
			}
			return down(command.Context(), command, l, remove)
		},
	}
	command.Flags().BoolVar(&remove, "delete", false, "remove the state directory too")
	return command
}

func down(ctx context.Context, command *cobra.Command, l controlplane.Layout, remove bool) error {
	stopped, err := controlplane.Down(ctx, l)
	if err != nil {
		return err
	}
	if stopped {
		command.PrintErrf("the cluster in %s is stopped\n", l.Dir)
	} else {
		command.PrintErrf("no cluster runs in %s\n", l.Dir)
	}
	if !remove {
		return nil
	}
	return deleteCluster(l)
}

// deleteCluster removes a state directory, and only what is one.
func deleteCluster(l controlplane.Layout) error {
	if _, err := controlplane.ReadStatus(l); err != nil {
		if errors.Is(err, controlplane.ErrNoCluster) {
			return nil
		}
		return err
	}
	if err := os.RemoveAll(l.Dir); err != nil {
		return fmt.Errorf("removing the state directory: %w", err)
	}
	return nil
}
