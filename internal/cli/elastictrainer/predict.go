package elastictrainer

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/evaluation"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/modelfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/prediction"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/schedule"
)

func newPredict() *cobra.Command {
	var u modelFlags
	var p prediction.Options
	var output string
	c := &cobra.Command{
		Use:   "predict --model-file FILE|--model NAME --model-dir DIR|--checkpoint FILE --prediction-data-dir DIR",
		Short: "Run inference: one line per record, as CSV or JSON",
		Long: `Run inference with a trained model and write one line per record, in the order of the
data: the record's number, the predicted class, and the probabilities (with --logits,
the values of the output layer). For a regression model (squared error) the line
contains the predicted value.

The output does not depend on the CPU, on --threads or on --minibatch-size, and numbers
are printed with all their digits. Memory use does not depend on the number of records.

The model file's function feed is called with mode PREDICTION. ElasticDL's model files
then read records without labels; for records with labels use --labels.`,
		Example: `  elastic-trainer predict --model mnist --model-dir out --labels \
      --prediction-data-dir "synthetic://digits?records=100&seed=3"
  elastic-trainer predict --model mnist --model-dir out --labels --format jsonl \
      --prediction-data-dir "synthetic://digits?records=100&seed=3" -o predictions.jsonl`,
		Args: cli.NeedsArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(prediction.Formats(), p.Format) {
				return cli.UsageError("--format=%s: use %s", p.Format, strings.Join(prediction.Formats(), " or "))
			}
			if err := writeTo(output, cmd.OutOrStdout(), func(out io.Writer) error { return u.predict(cmd, out, p) }); err != nil {
				return err
			}
			if output != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "wrote the predictions to %s\n", output)
			}
			return nil
		},
	}
	u.register(c, "prediction-data-dir", "records to predict")
	f := c.Flags()
	f.StringVarP(&output, "output", "o", "", "output `file`, created after all lines have been computed (default standard output)")
	f.StringVar(&p.Format, "format", prediction.CSV, "csv with a header, or jsonl: one JSON object per line")
	f.BoolVar(&p.Logits, "logits", false, "write the output layer's values instead of probabilities")
	f.BoolVar(&p.Labels, "labels", false, "records contain labels, as in training; they are written next to the predictions")
	cli.CompleteFiles(c, "output", "csv", "jsonl")
	cli.CompleteFrom(c, "format", prediction.Formats()...)
	return c
}

func (u *modelFlags) predict(cmd *cobra.Command, out io.Writer, p prediction.Options) (err error) {
	ctx := cmd.Context()
	mode := modelfile.Prediction
	u.hint = "; if the records contain labels, add --labels"
	if p.Labels {
		mode, u.hint = modelfile.Evaluation, ""
	}
	o, err := u.open(ctx, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	w, err := prediction.NewWriter(out, o.Graph, p)
	if err != nil {
		return err
	}
	err = o.each(newCounter(cmd.ErrOrStderr(), "predicting", o.data.Records()), func(r schedule.Range) error {
		return evaluation.Minibatches(ctx, o.batcher, r, u.minibatch, func(b *graph.Batch) error {
			values, err := o.Network.Predict(o.State, b)
			if err != nil {
				return err
			}
			return w.Write(b, values)
		})
	})
	return errors.Join(err, w.Close())
}

// writeTo has a file written; without a name everything goes to out.
func writeTo(path string, out io.Writer, write func(io.Writer) error) error {
	if path == "" {
		return write(out)
	}
	return cli.WriteFile(path, 0o644, write)
}
