package elastictrainer

import (
	"cmp"
	"strings"

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
}

func (s *specFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.spec.Model.File, "model-file", "", "the model `file` (this or --model is required)")
	f.StringVar(&s.spec.Model.Name, "model", "", "a built-in model: "+strings.Join(zoo.Names(), ", "))
	f.StringVar(&s.command, "worker-command", "", "run the model file as a script with this command, for example \"python3\", to train with a framework such as PyTorch")
	f.StringVar(&s.spec.Elastic, "elastic", trainingjob.ElasticGradients, "with --worker-command, how gradients are exchanged: gradients (through the workers and the master) or collectives (the script's own process group, such as gloo or NCCL)")
	f.StringVar(&s.spec.Data.Validation, "validation-data-dir", "", "validation data, evaluated after the last step; see --evaluation-steps")
	f.Int64Var(&s.evaluation.Steps, "evaluation-steps", 0, "steps between evaluations of the validation data; 0: none during training. Training pauses during an evaluation; the model is unaffected")
	f.Int64Var(&s.evaluation.Epochs, "evaluation-epochs", 0, "epochs between evaluations; 0: none during training")
	f.StringVar(&s.spec.Data.Format, "data-format", dataset.DefaultFormat, dataset.FormatChoice())
	f.StringVar(&s.spec.Data.Codec, "codec-type", "bytes", "how records are encoded: bytes or tf_example")
	s.csv.register(f)
	f.IntVar(&s.spec.Data.RecordsPerTask, "record-per-task", 100, "records per unit of work that is assigned to a worker")
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
	completeModel(c)
	completeData(c, "train-data-dir", "validation-data-dir")
	cli.CompleteFrom(c, "aggregation", trainingjob.Aggregations...)
	cli.CompleteFrom(c, "elastic", trainingjob.ElasticModes...)
	c.MarkFlagsOneRequired("model-file", "model")
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
	if s.spec.Elastic == trainingjob.ElasticGradients {
		s.spec.Elastic = "" // the usual one is not a part of a job's identity
	}
	if s.minimum < 1 || s.workers < s.minimum {
		return cli.UsageError("--num-worker=%d and --min-worker=%d: at least one worker, and at least the minimum", s.workers, s.minimum)
	}
	return nil
}

// flagOf are the flags of specFlags, and those that train and submit both have, by the fields of a job that they set.
var flagOf = map[string]string{
	"name":                       "job-name",
	"model":                      "model-file",
	"model.content":              "model-file",
	"model.name":                 "model",
	"workers.command":            "worker-command",
	"workers.elastic":            "elastic",
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
