// Command withkind makes a kind cluster of the tutorial's machines, runs a command that uses it, and deletes the cluster,
// whatever becomes of the command: it fails, panics, is interrupted. It is a process of its own for that reason.
//
//	withkind [-out DIR] [-data DIR] [-workers N] COMMAND [ARGUMENT...]
//
// The command finds the cluster in the environment variables of package kind. Logs of nodes and pods and the cluster's events
// stay in the output directory. KIND_NODE_IMAGE names the nodes' image. withkind ends with the command's exit code, with
// 0 and a sentence where no container engine answers, and with 1 when the cluster could not be made.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/elastic-training/terraform-provider-elastic/e2e/kind"
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
	var o options
	flag.StringVar(&o.out, "out", "out/kind", "where logs and events stay; emptied first")
	flag.StringVar(&o.data, "data", "out/data", "a directory that the workers have at the same path, to read")
	flag.IntVar(&o.workers, "workers", 3, "number of workers")
	flag.Parse()
	if o.command = flag.Args(); len(o.command) == 0 {
		fmt.Fprintln(os.Stderr, "usage: withkind [-out DIR] [-data DIR] [-workers N] COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Printf("%7.2f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	// The handler stays until the end: an impatient second signal must not leave a cluster behind.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	said := context.AfterFunc(ctx, func() { say("Interrupted. The cluster is deleted; this takes some seconds.") })
	code, err := run(ctx, o, say)
	said()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "withkind:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run returns the exit code of the command.
func run(ctx context.Context, o options, say func(string, ...any)) (code int, err error) {
	engine, err := kind.FindEngine(ctx)
	if errors.Is(err, kind.ErrNoEngine) {
		say("Skipped: a kind cluster needs a container engine, and %v.", err)
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
		Workers: o.workers, Machine: kind.Tutorial(), DataDir: o.data, Say: say,
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		say("keeping the cluster's events and logs in %s", o.out)
		if err := cluster.SaveEvents(context.WithoutCancel(ctx), filepath.Join(o.out, "events.jsonl")); err != nil {
			say("%v", err)
		}
		cluster.SaveLogs(filepath.Join(o.out, "logs"))
		say("deleting cluster %s", name(o.out))
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

// use runs the command. When the context ends, the command is asked to end, and killed when it does not.
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
