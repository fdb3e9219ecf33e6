package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/kubeversion"
)

// dirVariable is the environment variable that gives --dir its default.
const dirVariable = "SIMCLUSTER_DIR"

// NewRoot returns the root command with all of its commands.
func NewRoot() *cobra.Command {
	var dir string
	root := &cobra.Command{
		Use:   "simcluster",
		Short: "A real Kubernetes control plane with simulated nodes, on this machine",
		Long: `simcluster runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler ` + kubeversion.Version + `
from this one binary, and a node agent instead of kubelets: nodes have the capacity
that you declare, and their containers are local processes. It needs no root, no
container engine and no network, and listens on loopback addresses only. Linux only.

All state is in one directory (--dir, or $` + dirVariable + `); "down" stops the cluster
and the next "up" resumes it.`,
		Example: `  export $(simcluster up)          # three nodes of 4 CPU and 15 GiB; sets KUBECONFIG
  kubectl get nodes
  simcluster up --image elastic-trainer=bin/elastic-trainer --image '*'=host
  simcluster node stop node-2      # simulate a node failure
  simcluster logs my-pod -f
  simcluster down`,
		Version: kubeversion.Version,
	}
	root.SetVersionTemplate("simcluster with Kubernetes {{.Version}}\n")
	root.PersistentFlags().StringVar(&dir, "dir", defaultDir(), "state `directory` of the cluster; also $"+dirVariable)
	cli.CompleteDirectories(root, "dir")
	layout := func() (controlplane.Layout, error) { return controlplane.NewLayout(dir) }
	root.AddCommand(upCommand(layout), downCommand(layout), statusCommand(layout), nodeCommand(layout), logsCommand(layout))
	cli.Configure(root)
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

// exitNotRunning is that of `status` and others where there is no cluster to ask; systemctl status has the same.
const exitNotRunning = 3

// next is a command line on the same cluster, to be typed as it is.
func next(l controlplane.Layout, words string) string {
	if usual, err := controlplane.NewLayout(defaultDir()); err == nil && usual.Dir == l.Dir {
		return "`simcluster " + words + "`"
	}
	dir := l.Dir
	if strings.ContainsFunc(dir, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
		dir = "'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	}
	return "`simcluster " + words + " --dir " + dir + "`"
}

// plain are characters that need no quotes in a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"

// runningCluster returns layout and status of the cluster, or the error with which commands end where none runs.
func runningCluster(layout layoutFunc) (controlplane.Layout, controlplane.Status, error) {
	l, err := layout()
	if err != nil {
		return l, controlplane.Status{}, err
	}
	status, err := controlplane.ReadStatus(l)
	switch {
	case errors.Is(err, controlplane.ErrNoCluster):
		err = &cli.ExitError{Code: exitNotRunning, Err: fmt.Errorf("there is no cluster in %s; %s starts one", l.Dir, next(l, "up"))}
	case err == nil && status.Phase == controlplane.PhaseStopped:
		err = &cli.ExitError{Code: exitNotRunning, Err: fmt.Errorf("the cluster in %s is not running; run %s to resume it", l.Dir, next(l, "up"))}
	}
	return l, status, err
}

func downCommand(layout layoutFunc) *cobra.Command {
	var remove bool
	command := &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster and keep its state",
		Long: `Stop containers, scheduler, controller manager, API server and etcd, in this order. The
state directory is kept, so that "up" resumes the cluster. With --delete the files that
the cluster created are removed; others in the directory are kept.`,
		Example: `  simcluster down
  simcluster down --delete    # the next up begins with an empty cluster`,
		Args: cli.NeedsArguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			l, err := layout()
			if err != nil {
				return err
			}
			return down(command.Context(), command, l, remove)
		},
	}
	command.Flags().BoolVar(&remove, "delete", false, "also delete the cluster's state")
	return command
}

func down(ctx context.Context, command *cobra.Command, l controlplane.Layout, remove bool) error {
	stopped, err := controlplane.Down(ctx, l)
	if err != nil {
		return err
	}
	_, err = controlplane.ReadStatus(l)
	kept := err == nil
	if err != nil && !errors.Is(err, controlplane.ErrNoCluster) {
		return err
	}
	switch {
	case !kept:
		command.PrintErrf("there is no cluster in %s; %s starts one\n", l.Dir, next(l, "up"))
		return nil
	case remove:
		left, err := l.Remove()
		if err != nil {
			return err
		}
		if len(left) > 0 {
			command.PrintErrf("the cluster is stopped and its files are removed; other files in %s are kept: %s\n", l.Dir, strings.Join(left, ", "))
			return nil
		}
		command.PrintErrf("the cluster is stopped, and %s is removed; %s starts an empty one\n", l.Dir, next(l, "up"))
	case stopped:
		command.PrintErrf("the cluster in %s is stopped; %s resumes it, %s removes it\n", l.Dir, next(l, "up"), next(l, "down --delete"))
	default:
		command.PrintErrf("no cluster is running in %s; %s resumes it, %s removes it\n", l.Dir, next(l, "up"), next(l, "down --delete"))
	}
	return nil
}
