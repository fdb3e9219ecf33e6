package elastictrainer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/evaluation"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/metric"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/modelfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/schedule"
)

func newEvaluate() *cobra.Command {
	var u modelFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "evaluate --model-file FILE|--model NAME --model-dir DIR|--checkpoint FILE --validation-data-dir DIR",
		Short: "Evaluate a trained model: loss and metrics on a data set",
		Long: `Compute the loss of a trained model on a data set, in inference mode, and the metrics
that the model file defines (eval_metrics_fn). The model comes from a finished job or a
checkpoint.

For the model of a finished job and its validation data, the result is bit-identical to
that in model.json. It does not depend on the CPU, on --threads or on --minibatch-size.
Losses are summed in ranges of --record-per-task records, so another value of that flag
may change the last digits of the loss.`,
		Example: `  elastic-trainer train --model mnist --output out \
      --train-data-dir "synthetic://digits?records=600" --grads-to-wait 2 \
      --validation-data-dir "synthetic://digits?records=500&seed=2"
  elastic-trainer evaluate --model mnist --model-dir out \
      --validation-data-dir "synthetic://digits?records=500&seed=2"
  elastic-trainer evaluate --model mnist --json \
      --checkpoint out/checkpoints/*/step-000000000030.safetensors \
      --validation-data-dir "synthetic://digits?records=500&seed=2"`,
		Args: cli.NeedsArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return u.evaluate(cmd, asJSON) },
	}
	u.register(c, "validation-data-dir", "data to evaluate the model on")
	c.Flags().IntVar(&u.ranges, "record-per-task", 0, "records per partial sum of the loss; 0: the value used in training if it is recorded, otherwise 100")
	cli.InRange(c, "record-per-task", 0, trainingjob.MaxRecordsPerTask)
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON, with all digits")
	return c
}

func (u *modelFlags) evaluate(cmd *cobra.Command, asJSON bool) (err error) {
	ctx := cmd.Context()
	o, err := u.open(ctx, modelfile.Evaluation)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	var parts []nn.Result
	progress := newCounter(cmd.ErrOrStderr(), "evaluating", o.data.Records())
	err = o.each(progress, func(r schedule.Range) error {
		part, err := evaluation.Range(ctx, o.Network, o.State, o.batcher, r, u.minibatch)
		parts = append(parts, part)
		return err
	})
	if err != nil {
		return err
	}
	measured, _ := evaluation.Measure(o.weights.Step, metric.New(o.Graph), parts)
	out := cmd.OutOrStdout()
	if asJSON {
		text, err := json.MarshalIndent(measured, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, string(text))
		return err
	}
	fmt.Fprintf(out, "%s\nrecords   %d\nloss      %.6g\n", o.title(), measured.Records, measured.Loss)
	for _, name := range slices.Sorted(maps.Keys(measured.Metrics)) {
		fmt.Fprintf(out, "%-8s  %.4f\n", name, measured.Metrics[name])
	}
	return nil
}
