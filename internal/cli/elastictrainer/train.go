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

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/migrate/elasticdl"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/zoo"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/web"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/local"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

// training are the flags of train.
type training struct {
	computeFlags
	spec         trainingjob.Job
	csv          csvFlags
	learningRate float64
	command      string
	checkpoint   trainingjob.Checkpoint
	evaluation   trainingjob.Evaluation
	keep         int
	workers      int
	minimum      int
	listen       string
	pace         time.Duration
	status       string // where to serve the page; "" nowhere
}

func newTrain() *cobra.Command {
	var t training
	c := &cobra.Command{
		Use:   "train --model-file FILE|--model NAME --train-data-dir DIR --output DIR",
		Short: "Train on this machine: one master, N worker processes",
		Long: `Train on this machine, without a cluster: one master and N worker processes, with the
same schedule, protocol and arithmetic as in a cluster. The result depends only on the
model, the data and the hyperparameters, not on the number of workers or on which are
killed.

The model is written to OUTPUT/<first 8 digits of the job's digest>/model.safetensors,
and its metadata to model.json next to it. Run the same command again to resume an
interrupted job: the result is identical. For a finished job the command does nothing;
with a higher --num-epoch it continues training.`,
		Example: `  elastic-trainer data synth --output digits --records 10000
  elastic-trainer train --model-file examples/models/mnist_functional_api.py \
      --train-data-dir digits --output out --num-worker 2 --grads-to-wait 2
  elastic-trainer train --model mnist --train-data-dir synthetic://digits --output out`,
		Args: cli.NeedsArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("learning-rate") {
				t.spec.Training.LearningRate = &t.learningRate
			}
			return t.run(cmd)
		},
	}
	f := c.Flags()
	f.StringVar(&t.spec.Name, "job-name", "local", "name of the job in messages")
	f.StringVar(&t.spec.Model.File, "model-file", "", "the model `file` (this or --model is required)")
	f.StringVar(&t.spec.Model.Name, "model", "", "a built-in model: "+strings.Join(zoo.Names(), ", "))
	f.StringVar(&t.command, "worker-command", "", "run the model file as a script with this command, for example \"python3\", to train with a framework such as PyTorch")
	f.StringVar(&t.spec.Data.Training, "train-data-dir", "", "training data: a directory, a file, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, or synthetic://digits?records=10000&seed=1; with --worker-command also indices://NAME?records=N, record indices that the script interprets itself (required)")
	f.StringVar(&t.spec.Data.Validation, "validation-data-dir", "", "validation data, evaluated after the last step; see --evaluation-steps")
	f.Int64Var(&t.evaluation.Steps, "evaluation-steps", 0, "steps between evaluations of the validation data; 0: none during training. Training pauses during an evaluation; the model is unaffected")
	f.Int64Var(&t.evaluation.Epochs, "evaluation-epochs", 0, "epochs between evaluations; 0: none during training")
	f.StringVar(&t.spec.Data.Format, "data-format", dataset.DefaultFormat, dataset.FormatChoice())
	f.StringVar(&t.spec.Data.Codec, "codec-type", "bytes", "how records are encoded: bytes or tf_example")
	t.csv.register(f)
	f.IntVar(&t.spec.Data.RecordsPerTask, "record-per-task", 100, "records per unit of work that is assigned to a worker")
	f.IntVar(&t.spec.Training.Epochs, "num-epoch", 1, "passes over the data")
	f.IntVar(&t.spec.Training.MinibatchSize, "minibatch-size", 10, "records per gradient")
	f.IntVar(&t.spec.Training.GradsToWait, "grads-to-wait", trainingjob.DefaultGradsToWait, "gradients averaged per step: the number of virtual workers")
	f.Uint64Var(&t.spec.Training.Seed, "seed", 1, "random seed of initial weights, order of records and dropout")
	f.Float64Var(&t.learningRate, "learning-rate", 0, "learning rate in place of the model file's")
	f.StringVar(&t.spec.Training.Aggregation, "aggregation", trainingjob.AggregationMaster, "where gradients are summed: master, allreduce (between the workers), or auto (the faster of the two); the model is the same")
	f.StringVarP(&t.spec.Output, "output", "o", "", "`directory` for the model (required)")
	f.Int64Var(&t.checkpoint.Steps, "checkpoint-steps", 0, "steps between checkpoints; 0: one per epoch. A checkpoint is also written at the end and on interruption")
	f.StringVar(&t.checkpoint.Directory, "checkpoint-dir", "", "`directory` for checkpoints (default OUTPUT/checkpoints)")
	f.IntVar(&t.keep, "keep-checkpoint-max", trainingjob.DefaultKeepCheckpoints, "number of newest checkpoints to keep; 0: all")
	f.IntVar(&t.workers, "num-worker", 1, "worker processes")
	f.IntVar(&t.minimum, "min-worker", 1, "minimum number of workers; training pauses with fewer")
	f.StringVar(&t.listen, "listen", "127.0.0.1:0", "address on which the master listens for its workers")
	f.StringVar(&t.status, "status-address", "", "serve a status page and /metrics on this address; 127.0.0.1:0 chooses a free port (default: off). The page is always saved as report.html next to the model")
	f.DurationVar(&t.pace, "pace", 0, "minimum time per gradient, to simulate slower hardware")
	t.register(c)
	cli.Seed(c, "seed")
	cli.NotNegative(c, "pace")
	cli.InRange(c, "num-worker", 1, trainingjob.MaxWorkers)
	cli.InRange(c, "min-worker", 1, trainingjob.MaxWorkers)
	cli.Require(c, "train-data-dir", "output")
	completeModel(c)
	completeData(c, "train-data-dir", "validation-data-dir")
	cli.CompleteDirectories(c, "output", "checkpoint-dir")
	cli.CompleteFrom(c, "aggregation", trainingjob.Aggregations...)
	cli.Exits(c, 0, "the model is trained")
	cli.Exits(c, coordinator.ExitJobFailed, "the job failed permanently; retrying does not help")
	cli.Exits(c, coordinator.ExitInterrupted, "interrupted; run the same command to resume")
	c.MarkFlagsOneRequired("model-file", "model")
	c.MarkFlagsMutuallyExclusive("model-file", "model")
	return c
}

func (t *training) run(cmd *cobra.Command) (err error) {
	t.spec.Namespace = "default"
	if t.spec.Command, err = elasticdl.Words(t.command); err != nil {
		return cli.UsageError("--worker-command=%s: %s", t.command, err)
	}
	if t.evaluation != (trainingjob.Evaluation{}) {
		t.spec.Evaluation = &t.evaluation
	}
	t.spec.Checkpoint, t.checkpoint.KeepMax = &t.checkpoint, &t.keep
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
	if t.spec.Data.CSV, err = t.csv.finish(); err != nil {
		return err
	}
	if problems := t.spec.Problems(); len(problems) > 0 {
		return cli.UsageError("%s", problems[0])
	}
	if t.minimum < 1 || t.workers < t.minimum {
		return cli.UsageError("--num-worker=%d and --min-worker=%d: at least one worker, and at least the minimum", t.workers, t.minimum)
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
		return &cli.ExitError{Code: r.Code, Err: fmt.Errorf("%s; the same command again continues from there", r.Reason)}
	}
	return &cli.ExitError{Code: r.Code, Err: errors.New(r.Reason)}
}
