// Package elastictrainer is the command line of elastic-trainer: master, worker, local training, and commands for data
// and models. Commands read flags, call the packages that do the work, and print.
package elastictrainer

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/lograte"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/worker"
)

// Main runs a command line and returns the exit code.
func Main(version string, args []string) int {
	return exitCode(cli.Run(NewRoot(version), args))
}

// exitLeft is that of a worker that has left for good reason: as if SIGTERM had ended it.
const exitLeft = 143

// exitCode is the exit code for the end of a command.
func exitCode(err error) int {
	if errors.Is(err, worker.ErrLeft) || errors.Is(err, worker.ErrMasterGone) {
		return exitLeft
	}
	return cli.Code(err)
}

// NewRoot returns the root command with all of its commands.
func NewRoot(version string) *cobra.Command {
	root := &cobra.Command{
		Use:   "elastic-trainer",
		Short: "Train models with preemptible workers",
		Long: `elastic-trainer trains Keras models (functional API, in ElasticDL's format) and Python
scripts. Workers may be preempted, killed and replaced at any time. The resulting Keras
model is bit-identical to that of an uninterrupted run. When a script is trained, each
record is used in exactly one step per epoch, except with --elastic=restart; results may
differ between machines.

The same binary runs as master and worker of an elastic_training_job, or trains on one
machine without a cluster.

Flag names follow ElasticDL; _ and - are interchangeable.`,
		Example: `  elastic-trainer train --model mnist --train-data-dir synthetic://digits --output out
  elastic-trainer model mnist`,
		Version: version,
	}
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-")) // ElasticDL writes --job_name
	})
	addGroup(root, "people", "User commands:", newTrain(), newEvaluate(), newPredict(), newModel(), newData(), newPythonModule())
	if commands := clusterCommands(version); len(commands) > 0 {
		addGroup(root, "cluster", "Commands for jobs in a cluster:", commands...)
	}
	pods := append(checkpointAge(), newMaster(), newScript(), newWorker(version), newGang())
	addGroup(root, "pods", "Commands used inside pods:", pods...)
	cli.Configure(root)
	return root
}

// addGroup adds commands that the help shows together.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// masterScriptRestarts is how often in a row a master starts its script again: what it lost is in the master's state.
const masterScriptRestarts = 3

// labelled prefixes each line with its process: several processes write to one terminal.
type labelled struct {
	to    io.Writer
	label string
}

func (l labelled) Write(line []byte) (int, error) {
	_, err := fmt.Fprintf(l.to, "%s: %s", l.label, line)
	return len(line), err
}

// The limits of flags that no job's spec has.
const (
	maxThreads = 1024    // more than any machine's processors; each has memory of its own
	maxBytes   = 1 << 50 // of a cache
	maxRecords = 1 << 40 // of data that are written

	maxSheetImages = 10_000
)

// computeFlags are the flags of how, not what: they never change a result.
type computeFlags struct {
	options job.Options
	level   string
}

func (c *computeFlags) register(cmd *cobra.Command, threads string) {
	f := cmd.Flags()
	f.IntVar(&c.options.Threads, "threads", 0, threads)
	f.StringVar(&c.options.Kernel, "kernel", os.Getenv("ELASTIC_KERNEL"), "avx512, avx2, neon or portable (default: the fastest that this CPU supports; env ELASTIC_KERNEL)")
	f.Int64Var(&c.options.Cache, "data-cache", 0, "bytes of decoded records to cache; 0: derived from the memory limit")
	cli.InRange(cmd, "threads", 0, maxThreads)
	cli.InRange(cmd, "data-cache", 0, maxBytes)
	completeKernels(cmd)
	c.registerLevel(cmd)
	c.options.Stores = stores()
	c.options.Root = os.Getenv("ELASTIC_ROOT")
}

// registerLevel is for commands that log and compute nothing.
func (c *computeFlags) registerLevel(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.level, "log-level", "info", "debug, info, warn or error")
	cli.CompleteFrom(cmd, "log-level", "debug", "info", "warn", "error")
}

func (c *computeFlags) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.level)); err != nil {
		return nil, cli.UsageError("--log-level=%s: use debug, info, warn or error", c.level)
	}
	return slog.New(lograte.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))), nil
}
