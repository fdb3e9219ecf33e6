// Package cli is the command line of elastic-trainer: one program that is master, worker and local trainer, and that
// makes and looks at data and models. Commands read flags, call the packages that do the work, and print.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/worker"
)

// Exit codes besides those of the coordinator.
const (
	exitFailed = 1
	exitUsage  = 2
)

// exitError ends the program with a code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usageError is a command line that cannot be meant.
func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// Main runs a command line and returns the exit code.
func Main(version string, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	root := newRoot(version)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "elastic-trainer:", err)
	}
	return exitCode(err)
}

// exitCode is the one that tells others how a command ended.
func exitCode(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, worker.ErrLeft), errors.Is(err, worker.ErrMasterGone):
		return 143
	case errors.As(err, &exit):
		return exit.code
	}
	return exitFailed
}

func newRoot(version string) *cobra.Command {
	root := &cobra.Command{
		Use:   "elastic-trainer",
		Short: "Train models that do not mind losing workers",
		Long: `elastic-trainer trains ElasticDL's functional Keras models with workers that may be
preempted, killed and replaced at any time: the final model is the same, bit for
bit. It is the master and the workers of an elastic_training_job, and trains on
one machine without a cluster.`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-")) // ElasticDL writes --job_name
	})
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError("%w; see `%s --help`", err, c.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newTrain(), newMaster(), newWorker(version), newModel(), newData())
	return root
}

// computing are the flags of how, not what: they never change a result.
type computing struct {
	options job.Options
	level   string
}

func (c *computing) register(f *pflag.FlagSet) {
	f.IntVar(&c.options.Threads, "threads", 0, "threads that compute at once in a worker; 0 chooses by the processors")
	f.StringVar(&c.options.Kernel, "kernel", os.Getenv("ELASTIC_KERNEL"), "avx512, avx2 or portable; empty chooses the fastest of this processor (env ELASTIC_KERNEL)")
	f.Int64Var(&c.options.Cache, "data-cache", 0, "bytes of decoded records to keep; 0 chooses by the memory limit")
	f.StringVar(&c.level, "log-level", "info", "debug, info, warn or error")
	c.options.Root = os.Getenv("ELASTIC_ROOT")
}

func (c *computing) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.level)); err != nil {
		return nil, usageError("--log-level=%s: use debug, info, warn or error", c.level)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), nil
}
