package elastictrainer

import (
	"cmp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/migrate/elasticdl"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/zoo"
)

// specFlags are the flags of a job that mean the same on one machine and in a cluster: those that train and submit share.
type specFlags struct {
	spec         trainingjob.Job
	csv          csvFlags
	learningRate float64
	command      string
	checkpoint   trainingjob.Checkpoint
	evaluation   trainingjob.Evaluation
	keep         int
	workers      int
	minimum      int
	restart      trainingjob.Restart
	interval     time.Duration // restart.IntervalSeconds
}

func (s *specFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.spec.Model.File, "model-file", "", "Python `file` that defines the model, or the script (this or --model is required, except with --elastic=restart)")
	f.StringVar(&s.spec.Model.Name, "model", "", "a built-in model: "+strings.Join(zoo.Names(), ", "))
	f.StringVar(&s.command, "worker-command", "", "run the model file as a script with this command, for example \"python3\", to train with a framework such as PyTorch; with --elastic=restart it may be a whole command, for example \"python3 train.py\"")
	f.StringVar(&s.spec.Elastic, "elastic", trainingjob.ElasticGradients, "with --worker-command, how gradients are exchanged: gradients (through the workers and the master), collectives (the script's own process group, with gloo or NCCL) or restart (a script for torchrun, which resumes from its own checkpoints, is restarted when workers join or leave)")
	f.IntVar(&s.spec.ProcessesPerWorker, "processes", 1, "with --elastic=collectives or restart, number of processes to start on each worker, one for each accelerator (torchrun's --nproc-per-node)")
	f.DurationVar(&s.interval, "restart-interval", trainingjob.DefaultRestartIntervalSeconds*time.Second, "with --elastic=restart, minimum time for which the command runs before it is restarted for joining workers")
	f.IntVar(&s.spec.Step, "worker-step", 1, "with --elastic=collectives or restart, use a multiple of this number of workers")
	f.StringVar(&s.spec.Data.Validation, "validation-data-dir", "", "validation data, evaluated after the last step; see --evaluation-steps")
	f.Int64Var(&s.evaluation.Steps, "evaluation-steps", 0, "steps between evaluations of the validation data; 0: none during training. Training pauses during an evaluation; the model is unaffected")
	f.Int64Var(&s.evaluation.Epochs, "evaluation-epochs", 0, "epochs between evaluations; 0: none during training")
	f.StringVar(&s.spec.Data.Format, "data-format", dataset.DefaultFormat, dataset.FormatChoice())
	f.StringVar(&s.spec.Data.Codec, "codec-type", "bytes", "how records are encoded: bytes or tf_example")
	s.csv.register(f)
	f.IntVar(&s.spec.Data.RecordsPerTask, "record-per-task", 100, "number of records that are assigned to a worker at a time")
	f.IntVar(&s.spec.Training.Epochs, "num-epoch", 1, "passes over the data")
	f.IntVar(&s.spec.Training.MinibatchSize, "minibatch-size", 10, "records per gradient")
	f.IntVar(&s.spec.Training.GradsToWait, "grads-to-wait", trainingjob.DefaultGradsToWait, "gradients averaged per step, independent of --num-worker (ElasticDL's grads_to_wait)")
	f.Uint64Var(&s.spec.Training.Seed, "seed", 1, "random seed of initial weights, order of records and dropout")
	f.Float64Var(&s.learningRate, "learning-rate", 0, "learning rate; overrides the model file's")
	f.StringVar(&s.spec.Training.Aggregation, "aggregation", trainingjob.AggregationMaster, "where gradients are summed: master, allreduce (between the workers), or auto (the faster of the two); the model is the same")
	f.Int64Var(&s.checkpoint.Steps, "checkpoint-steps", 0, "steps between checkpoints; 0: one per epoch. A checkpoint is also written at the end and on interruption")
	f.IntVar(&s.keep, "keep-checkpoint-max", trainingjob.DefaultKeepCheckpoints, "number of newest checkpoints to keep; 0: all")
	f.IntVar(&s.workers, "num-worker", 1, "number of workers")
	f.IntVar(&s.minimum, "min-worker", 1, "minimum number of workers; training pauses with fewer")
	cli.Seed(c, "seed")
	cli.InRange(c, "num-worker", 1, trainingjob.MaxWorkers)
	cli.InRange(c, "min-worker", 1, trainingjob.MaxWorkers)
	cli.InRange(c, "processes", 1, trainingjob.MaxProcesses)
	cli.InRange(c, "worker-step", 1, trainingjob.MaxWorkers)
	completeModel(c)
	completeData(c, "train-data-dir", "validation-data-dir")
	cli.CompleteFrom(c, "aggregation", trainingjob.Aggregations...)
	cli.CompleteFrom(c, "elastic", trainingjob.ElasticModes...)
	c.MarkFlagsMutuallyExclusive("model-file", "model")
}

// finish makes the spec complete after the command line was read; paths are as they were typed.
func (s *specFlags) finish(cmd *cobra.Command) (err error) {
	if cmd.Flags().Changed("learning-rate") {
		s.spec.Training.LearningRate = &s.learningRate
	}
	if s.spec.Command, err = elasticdl.Words(s.command); err != nil {
		return cli.UsageError("--worker-command=%s: %s", s.command, err)
	}
	if s.evaluation != (trainingjob.Evaluation{}) {
		s.spec.Evaluation = &s.evaluation
	}
	if s.spec.Data.CSV, err = s.csv.finish(); err != nil {
		return err
	}
	if s.spec.Step == 1 {
		s.spec.Step = 0
	}
	if s.spec.ProcessesPerWorker == 1 {
		s.spec.ProcessesPerWorker = 0
	}
	if err := s.finishRestart(cmd); err != nil {
		return err
	}
	if s.spec.Elastic == trainingjob.ElasticGradients {
		s.spec.Elastic = "" // the usual one is not a part of a job's identity
	}
	if n := s.spec.Multiple(); s.minimum%n != 0 {
		return cli.UsageError("--min-worker=%d: must be a multiple of --worker-step=%d", s.minimum, n)
	}
	if s.minimum < 1 || s.workers < s.minimum {
		return cli.UsageError("--num-worker=%d, --min-worker=%d: --num-worker must be at least 1 and at least --min-worker", s.workers, s.minimum)
	}
	return nil
}

// finishRestart leaves out what a command that is restarted has not, as far as it is a default, and what only such a
// command has.
func (s *specFlags) finishRestart(cmd *cobra.Command) error {
	if s.interval < time.Second || s.interval%time.Second != 0 {
		return cli.UsageError("--restart-interval=%s: use whole seconds, at least 1s, such as 90s", s.interval)
	}
	s.restart.IntervalSeconds = int64(s.interval.Seconds())
	s.spec.Restart = s.restart.Canonical()
	if s.spec.Elastic != trainingjob.ElasticRestart {
		return nil
	}
	if len(s.spec.Command) == 0 {
		return cli.UsageError("--elastic=%s needs --worker-command, for example --worker-command \"python3 train.py\"", trainingjob.ElasticRestart)
	}
	for field, flag := range flagOf {
		if section, _, _ := strings.Cut(field, "."); (section == "data" || section == "training" || section == "evaluation" || section == "checkpoint") && cmd.Flags().Changed(flag) {
			return cli.UsageError("--%s has no effect with --elastic=%s: the command reads its data and keeps its state itself", flag, trainingjob.ElasticRestart)
		}
	}
	s.spec.Data, s.spec.Training, s.spec.Evaluation = trainingjob.Data{}, trainingjob.Training{}, nil
	return nil
}

// flagOf are the flags of specFlags, and those that train and submit both have, by the fields of a job that they set.
var flagOf = map[string]string{
	"name":              "job-name",
	"model":             "model-file",
	"model.content":     "model-file",
	"model.name":        "model",
	"workers.command":   "worker-command",
	"workers.elastic":   "elastic",
	"workers.processes": "processes",
	"workers.step":      "worker-step",
	"workers.min":       "min-worker",
	"workers.max":       "num-worker",

	"workers.restart_interval_seconds": "restart-interval",

	"data":                       "train-data-dir",
	"data.training":              "train-data-dir",
	"data.validation":            "validation-data-dir",
	"data.format":                "data-format",
	"data.codec":                 "codec-type",
	"data.csv":                   "csv-columns",
	"data.csv.columns":           "csv-columns",
	"data.csv.vocabularies":      "csv-vocabularies",
	"data.records_per_task":      "record-per-task",
	"training.epochs":            "num-epoch",
	"training.minibatch_size":    "minibatch-size",
	"training.grads_to_wait":     "grads-to-wait",
	"training.learning_rate":     "learning-rate",
	"training.aggregation":       "aggregation",
	"evaluation":                 "evaluation-steps",
	"evaluation.interval_steps":  "evaluation-steps",
	"evaluation.interval_epochs": "evaluation-epochs",
	"checkpoint.directory":       "checkpoint-dir",
	"checkpoint.interval_steps":  "checkpoint-steps",
	"checkpoint.max_to_keep":     "keep-checkpoint-max",
}

// byFlag is one sentence for each problem, which names the flag instead of the field; own are the command's own flags by
// field.
func byFlag(problems []trainingjob.Problem, own map[string]string) string {
	sentences := make([]string, len(problems))
	for i, p := range problems {
		if flag := cmp.Or(own[p.Field], flagOf[p.Field]); flag != "" {
			p.Field = "--" + flag
		}
		sentences[i] = p.String()
	}
	return strings.Join(sentences, "; ")
}
