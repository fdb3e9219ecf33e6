// Command withkind creates a kind cluster of the tutorial's machines, runs a command that uses it, and deletes the
// cluster, also if the command fails, panics or is interrupted. Therefore it is a separate process. See `withkind
// --help`.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/e2e/kind"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
)

// imageVariable names the nodes' image; kind's own default is a released Kubernetes, which it pulls.
const imageVariable = "KIND_NODE_IMAGE"

// cleanUpLimit is how long an interrupted command may take to end in order; terraform destroys in that time.
const cleanUpLimit = 90 * time.Second

type options struct {
	out, data string
	workers   int
	command   []string
}

func main() {
	began := time.Now()
	logf := func(format string, args ...any) {
		fmt.Printf("%7.2f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	// The handler stays until the end: an impatient second signal must not leave a cluster behind.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	stopNotice := context.AfterFunc(ctx, func() { logf("Interrupted. The cluster is deleted; this takes some seconds.") })
	code := 0
	err := cli.RunContext(ctx, newRoot(func(o options) (err error) {
		code, err = run(ctx, o, logf)
		return err
	}), os.Args[1:])
	stopNotice()
	stop()
	os.Exit(max(code, cli.Code(err)))
}

// newRoot is the command that makes a cluster and has another command use it.
func newRoot(with func(options) error) *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:   "withkind [flags] COMMAND [ARGUMENT...]",
		Short: "Make a kind cluster, run a command that uses it, delete the cluster",
		Long: `Make a kind cluster of the tutorial's machines, run a command that uses it, and delete
the cluster, whatever becomes of the command: it fails, panics, is interrupted. It needs
a container engine: docker, nerdctl or podman.

The command finds the cluster's kubeconfig in $ELASTIC_KIND_KUBECONFIG. Logs of nodes
and pods and the cluster's events stay in the output directory. $` + imageVariable + `
names the nodes' image.`,
		Example: `  withkind ./see-what-runs.sh
  withkind --output /tmp/kind --workers 1 go test ./mine`,
		Args:                  cli.NeedsArguments("COMMAND..."),
		DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			o.command = args
			return with(o)
		},
	}
	flags := root.Flags()
	flags.SetInterspersed(false) // what follows the command is the command's
	flags.StringVarP(&o.out, "output", "o", "out/kind", "`directory` where logs and events stay; emptied first")
	flags.StringVar(&o.data, "data", "out/data", "`directory` that the workers have at the same path, to read")
	flags.IntVar(&o.workers, "workers", 3, "number of workers")
	cli.CompleteDirectories(root, "output", "data")
	cli.Exits(root, 0, "the command's; also where no container engine answers, which is said")
	cli.Exits(root, cli.Failed, "the cluster could not be made, or the command's")
	cli.Configure(root)
	return root
}

// run returns the exit code of the command.
func run(ctx context.Context, o options, logf func(string, ...any)) (code int, err error) {
	engine, err := kind.FindEngine(ctx)
	if errors.Is(err, kind.ErrNoEngine) {
		logf("Skipped: a kind cluster needs a container engine, and %v.", err)
		return 0, nil
	}
	if err != nil {
		return 1, err
	}
	if o.out, err = filepath.Abs(o.out); err != nil {
		return 1, err
	}
	if o.data, err = filepath.Abs(o.data); err != nil {
		return 1, err
	}
	unlock, err := prepare(o)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, unlock()) }()

	cluster, err := kind.Start(ctx, kind.Options{
		Engine: engine, Name: name(o.out), Dir: o.out, Image: os.Getenv(imageVariable),
		Workers: o.workers, Machine: kind.Tutorial(), DataDir: o.data, Logf: logf,
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		logf("keeping the cluster's events and logs in %s", o.out)
		if err := cluster.SaveEvents(context.WithoutCancel(ctx), filepath.Join(o.out, "events.jsonl")); err != nil {
			logf("%v", err)
		}
		cluster.SaveLogs(filepath.Join(o.out, "logs"))
		logf("deleting cluster %s", name(o.out))
		err = errors.Join(err, cluster.Close())
	}()
	return use(ctx, o.command, cluster.Environment())
}

// prepare makes the directories, empties the output directory, and keeps other runs out of it until unlock is called.
func prepare(o options) (unlock func() error, err error) {
	if err := errors.Join(os.MkdirAll(o.out, 0o755), os.MkdirAll(o.data, 0o755)); err != nil {
		return nil, err
	}
	lock := flock.New(o.out + ".lock")
	if locked, err := lock.TryLock(); err != nil {
		return nil, fmt.Errorf("lock %s: %w", o.out, err)
	} else if !locked {
		return nil, fmt.Errorf("another run uses %s; wait until it has ended", o.out)
	}
	entries, err := os.ReadDir(o.out)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(o.out, entry.Name())))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("empty the output directory: %w", err), lock.Unlock())
	}
	return lock.Unlock, nil
}

// name is the cluster's, one for each output directory: what a killed run left is found again, and that of another
// checkout is left alone.
func name(out string) string {
	const digits = 6
	sum := sha256.Sum256([]byte(out))
	return "elastic-" + hex.EncodeToString(sum[:])[:digits]
}

// use runs the command. When the context ends, the command is signalled to end, and killed when it does not.
func use(ctx context.Context, command, environment []string) (code int, err error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// A group of its own: a terminal's ^C is for withkind, which passes it on, once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = cleanUpLimit
	if err := adoptOrphans(); err != nil {
		return 1, err
	}
	err = cmd.Run()
	if err := endOrphans(); err != nil {
		return 1, err
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, fmt.Errorf("%s: %w", command[0], err)
	}
	return 0, nil
}
