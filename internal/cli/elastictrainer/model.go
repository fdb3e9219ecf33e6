package elastictrainer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/modelfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/zoo"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
)

func newModel() *cobra.Command {
	var source bool
	c := &cobra.Command{
		Use:   "model [FILE|NAME]",
		Short: "Show a model: layers, shapes, parameters, loss, optimizer, input",
		Long: `Show a model file or a built-in model: its layers, shapes and parameters, loss and
optimizer, and how records become its input. Without an argument, list the built-in
models. For a file with the name of a built-in model write ./NAME.`,
		Example: `  elastic-trainer model mnist
  elastic-trainer model resnet --source > my_resnet.py`,
		Args:              cli.NeedsArguments("[FILE|NAME]"),
		ValidArgsFunction: cli.FirstArgument(models),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listModels(cmd.OutOrStdout())
			}
			name, text, err := readModel(args[0])
			if err != nil {
				return err
			}
			if source {
				_, err := cmd.OutOrStdout().Write(text)
				return err
			}
			m, report, err := modelfile.Load(name, text, modelfile.Options{})
			if err != nil {
				return err
			}
			network, err := nn.Compile(m, nn.Options{Kernel: kernel.Portable(), Threads: 1, MaxBatch: 1})
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			defer network.Close()
			return describeModel(cmd, m, report, network)
		},
	}
	c.Flags().BoolVar(&source, "source", false, "print the model file, followed by the files that it imports from its model zoo")
	return c
}

// readModel takes a built-in model's name or a path.
func readModel(argument string) (name string, text []byte, err error) {
	if zoo.Has(argument) {
		return job.ReadModel(trainingjob.Job{Model: trainingjob.Model{Name: argument}}, job.Options{})
	}
	name, text, err = job.ReadModel(trainingjob.Job{Model: trainingjob.Model{File: argument}}, job.Options{})
	if errors.Is(err, fs.ErrNotExist) && filepath.Base(argument) == argument {
		return "", nil, fmt.Errorf("%w; the built-in models are %s", err, strings.Join(zoo.Names(), ", "))
	}
	return name, text, err
}

func listModels(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, name := range zoo.Names() {
		built, err := zoo.Load(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%s\n", built.Name, built.Summary)
	}
	return table.Flush()
}

func describeModel(cmd *cobra.Command, m *graph.Model, report *modelfile.Report, network *nn.Network) error {
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "model %s\n\n", m.Name)
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "LAYER\tOPERATION\tOUTPUT\tPARAMETERS\tSUMS")
	all, fixed := 0, 0
	for _, l := range network.Layers() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", l.Name, l.Op, shape(l.OutputShape), l.Params, l.Form)
		all += l.Params
		fixed += l.NonTrainable
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nparameters  %d trainable, %d non-trainable (moving statistics)\n", all-fixed, fixed)
	fmt.Fprintf(out, "loss        %s\noptimizer   %s\n", m.Loss, m.Optimizer)
	if m.LearningRates != nil {
		fmt.Fprintln(out, "schedule    the learning rate of each step comes from callbacks() in the model file")
	}
	for _, metric := range m.Metrics {
		fmt.Fprintf(out, "metric      %s (%s)\n", metric.Name, metric.Kind)
	}
	for _, f := range m.Feed.Features {
		role := "feature"
		if f.Name == m.Feed.Label {
			role = "label"
		}
		fmt.Fprintf(out, "%-10s  %s: %s %s\n", role, f.Name, f.DType, shape(f.Shape))
	}
	for _, c := range m.Feed.Columns {
		fmt.Fprintf(out, "input       %s%s\n", features(c), conversion(c))
	}
	if m.Feed.Function != nil {
		fmt.Fprintln(out, "input       input_fn of the file, run on every minibatch")
	}
	for _, w := range report.Warnings {
		fmt.Fprintf(out, "warning: %s\n", w)
	}
	for _, n := range report.Notices {
		fmt.Fprintf(out, "note: %s\n", n)
	}
	return nil
}

func shape(dims []int) string {
	s := make([]string, len(dims))
	for i, d := range dims {
		s[i] = fmt.Sprint(d)
	}
	return "(" + strings.Join(s, ", ") + ")"
}

// features are those that an input is made of.
func features(c graph.Column) string {
	if len(c.Parts) == 0 {
		return c.Feature
	}
	var all []string
	for _, p := range c.Parts {
		text := p.Feature
		for _, s := range p.Steps {
			text += " " + s.Op
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// conversion is what a feature goes through on the way to its input.
func conversion(c graph.Column) string {
	if c.Weights != "" {
		return ", as weights for " + c.Weights
	}
	if c.Integer {
		return ", as indices"
	}
	s := ", as float32"
	for _, t := range c.Transforms {
		s += fmt.Sprintf(", %s by %v", t.Op, t.Value)
	}
	return s
}
