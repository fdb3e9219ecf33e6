package elastictrainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/web"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/local"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

// training are the flags of train.
type training struct {
	computeFlags
	specFlags
	listen string
	pace   time.Duration
	status string // where to serve the page; "" nowhere
}

func newTrain() *cobra.Command {
	var t training
	c := &cobra.Command{
		Use:   "train --model-file FILE|--model NAME --train-data-dir DIR --output DIR",
		Short: "Train on this machine: one master, N worker processes",
		Long: `Train on this machine, without a cluster: one master and N worker processes, with the
same order of records, protocol and arithmetic as in a cluster. A Keras model depends
only on the model file, the data and the hyperparameters, not on the number of workers
or on failures.

The model is written to OUTPUT/ID/model.safetensors, and its metadata to model.json next
to it. ID is the first 8 digits of a hash of model, data and settings. Run the same
command again to resume an interrupted job: the result is identical. For a finished job
the command does nothing; with a higher --num-epoch it continues training.`,
		Example: `  elastic-trainer data synth --output digits --records 10000
  elastic-trainer train --model-file examples/models/mnist_functional_api.py \
      --train-data-dir digits --output out --num-worker 2 --grads-to-wait 2
  elastic-trainer train --model mnist --train-data-dir synthetic://digits --output out
  elastic-trainer train --elastic restart --worker-command "python3 train.py" \
      --num-worker 4 --output out`,
		Args: cli.NeedsArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.run(cmd)
		},
	}
	f := c.Flags()
	f.StringVar(&t.spec.Name, "job-name", "local", "name of the job in messages")
	f.StringVar(&t.spec.Data.Training, "train-data-dir", "", "training data: a directory, a file, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, or synthetic://digits?records=10000&seed=1; with --worker-command also indices://NAME?records=N, record indices that the script interprets itself (required, except with --elastic=restart)")
	f.StringVarP(&t.spec.Output, "output", "o", "", "`directory` for the model (required)")
	f.StringVar(&t.checkpoint.Directory, "checkpoint-dir", "", "`directory` for checkpoints (default OUTPUT/checkpoints)")
	f.StringVar(&t.listen, "listen", "127.0.0.1:0", "address on which the master listens for its workers")
	f.StringVar(&t.status, "status-address", "", "serve a status page and /metrics on this address; 127.0.0.1:0 chooses a free port (default: off). The page is always saved as report.html next to the model")
	f.DurationVar(&t.pace, "pace", 0, "minimum time per gradient, to simulate slower hardware")
	t.specFlags.register(c)
	t.computeFlags.register(c, "compute threads per worker; 0: one per CPU, at most 8 for all workers; with --worker-command, OMP_NUM_THREADS, or 1 if that is not set")
	cli.NotNegative(c, "pace")
	cli.Require(c, "output")
	cli.CompleteDirectories(c, "output", "checkpoint-dir")
	cli.Exits(c, 0, "the model is trained")
	cli.Exits(c, coordinator.ExitJobFailed, "the job failed permanently; retrying does not help")
	cli.Exits(c, coordinator.ExitInterrupted, "interrupted; run the same command to resume")
	return c
}

func (t *training) run(cmd *cobra.Command) (err error) {
	t.spec.Namespace = "default"
	if err = t.finish(cmd); err != nil {
		return err
	}
	if !t.spec.Restarts() {
		t.spec.Checkpoint, t.checkpoint.KeepMax = &t.checkpoint, &t.keep
	}
	// Workers are started elsewhere than where the paths were written.
	for _, path := range []*string{&t.spec.Model.File, &t.spec.Output, &t.checkpoint.Directory} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	for _, path := range []*string{&t.spec.Data.Training, &t.spec.Data.Validation} {
		if *path, err = absoluteData(*path); err != nil {
			return err
		}
	}
	if problems := t.spec.Problems(); len(problems) > 0 {
		return cli.UsageError("%s", byFlag(problems, map[string]string{"output": "output"}))
	}
	name, model, err := job.ReadModel(t.spec, t.options)
	if err != nil {
		return err
	}
	log, err := t.logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if t.options.Threads == 0 && len(t.spec.Command) == 0 {
		t.options.Threads = max(1, min(runtime.GOMAXPROCS(0), 8)/t.workers)
	}
	t.options.ScriptOutput, t.options.ScriptRestarts = labelled{cmd.ErrOrStderr(), "master"}, masterScriptRestarts
	ctx := cmd.Context()
	t.options.Memory = data.MemoryBytes() / int64(t.workers)
	j, err := job.Load(ctx, t.spec, name, model, t.options)
	if err != nil {
		return startError(ctx, err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	progress := newProgress(cmd.OutOrStdout(), j)
	progress.begin(t.workers)
	text, err := json.Marshal(t.spec)
	if err != nil {
		return err
	}
	recorder := master.Record(j)
	if t.status != "" {
		page, err := web.Start(ctx, t.status, recorder, log)
		if err != nil {
			return fmt.Errorf("%w; choose another --status-address, port 0 finds a free one", err)
		}
		defer page.Close()
		progress.served(page.URL())
	}
	if t.level != "debug" { // whose lines would go through the view
		progress.watch(recorder)
		defer progress.close()
	}
	result, err := local.Train(ctx, local.Config{
		Job: j, JobJSON: text, ModelName: name, Min: t.minimum, Max: t.workers, Output: t.spec.Output,
		WorkerArgs: t.workerArgs(), WorkerLog: progress.log(cmd.ErrOrStderr()), Listen: t.listen, Reporter: progress, History: recorder, Log: quiet(log, t.level),
	})
	if err != nil {
		return err
	}
	return progress.end(result)
}

// workerArgs hands on how to compute.
func (t *training) workerArgs() []string {
	level := t.level
	if level == "info" {
		level = "warn" // what workers do is in the master's lines
	}
	return []string{
		"--stop-grace", "8s", // less than what the launcher leaves a worker
		"--threads", strconv.Itoa(t.options.Threads), "--kernel", t.options.Kernel, "--data-cache", strconv.FormatInt(t.options.Cache, 10),
		"--pace", t.pace.String(), "--log-level", level, "--master-timeout", "5s",
	}
}

func absoluteData(path string) (string, error) {
	if path == "" || strings.Contains(path, "://") {
		return path, nil
	}
	return filepath.Abs(path)
}

// startError is the error of a job that cannot be loaded: as in a cluster it would fail again, unless somebody has
// interrupted it.
func startError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &cli.ExitError{Code: coordinator.ExitInterrupted, Err: fmt.Errorf("interrupted before the job began: %w", err)}
	}
	return jobFailed(err)
}

// failed is the error of a run that did not end with a model.
func failed(r master.Result) error {
	switch r.Code {
	case coordinator.ExitDone:
		return nil
	case coordinator.ExitInterrupted:
		return &cli.ExitError{Code: r.Code, Err: fmt.Errorf("%s; run the same command again to resume", r.Reason)}
	}
	return &cli.ExitError{Code: r.Code, Err: errors.New(r.Reason)}
}
