// Command bench measures the project's performance, prints a table, and writes the same as JSON. Every
// figure is a ratio, to a competitor measured in the same run or to the goal, with its median and spread. It asserts
// nothing: machines are noisy.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
)

// figure is one line of the report.
type figure struct {
	Name    string    `json:"name"`
	Samples []float64 `json:"samples"` // ratios
	Median  float64   `json:"median"`
	Least   float64   `json:"least"`
	Most    float64   `json:"most"`
	Goal    string    `json:"goal,omitempty"`
	Detail  string    `json:"detail,omitempty"` // what the ratio is of, with the values behind it
	Skipped string    `json:"skipped,omitempty"`
}

// report is bench.json.
type report struct {
	Time      time.Time `json:"time"`
	Processor string    `json:"processor"`
	Cores     int       `json:"cores"`
	Load      string    `json:"load_average"` // at the start
	Figures   []figure  `json:"figures"`
}

// errSkipped is a measurement that this machine cannot make.
type errSkipped struct{ reason string }

func (e errSkipped) Error() string { return e.reason }

// measurement produces lines of the report.
type measurement struct {
	name string
	run  func(ctx context.Context, o options) ([]figure, error)
}

type options struct {
	root   string // of the repository
	rounds int
	mnist  string // directory of MNIST's IDX files, or ""

	goodput    time.Duration // of training with preemptions
	preemption time.Duration // between two of them
	trace      string        // a file of Alibaba's, or "" for one that is drawn
	log        io.Writer
}

func (o options) trainer() string { return filepath.Join(o.root, "bin", "elastic-trainer") }
func (o options) model() string {
	return filepath.Join(o.root, "examples", "models", "mnist_functional_api.py")
}

// measurements are in the order of the report.
func measurements() []measurement {
	return []measurement{
		{"speed", measureSpeed},
		{"start", measureStart},
		{"image", measureImage},
		{"kill", measureKill},
		{"leave", measureLeave},
		{"restart", measureRestart},
		{"pytorch", measurePyTorch},
		{"straggler", measureStraggler},
		{"goodput", measureGoodput},
		{"scaling", measureScaling},
		{"cluster", measureCluster},
		{"provider", measureProvider},
		{"queues", measureQueues},
		{"kueue", measureKueue},
		{"forecast", measureForecast},
		{"certainty", measureCertainty},
		{"simulator", measureSimulator},
		{"scenarios", measureScenarios},
		{"checkpoint-age", measureCheckpointAge},
		{"accuracy", measureAccuracy},
	}
}

// chosen are the measurements of a list of names, or all.
func chosen(names []string) ([]measurement, error) {
	all := measurements()
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		if known := namesOf(all); !slices.Contains(known, name) {
			return nil, cli.UsageError("--only=%s: there is no such measurement; there are %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(m measurement) bool { return !slices.Contains(names, m.name) }), nil
}

func namesOf(all []measurement) []string {
	var names []string
	for _, m := range all {
		names = append(names, m.name)
	}
	return names
}

func main() { os.Exit(cli.Code(cli.Run(newRoot(run), os.Args[1:]))) }

// newRoot is the command that makes the chosen measurements.
func newRoot(measure func(ctx context.Context, o options, todo []measurement, out string) error) *cobra.Command {
	o := options{log: os.Stderr}
	var only []string
	var out string
	names := namesOf(measurements())
	root := &cobra.Command{
		Use:   "bench",
		Short: "Measure the project's performance",
		Long: `Measure the project's performance, print a table, and write the same as JSON.
Every figure is a ratio, to a competitor measured in the same run or to the goal.
Nothing is asserted: machines are noisy, and want to be idle for this. What a machine
cannot measure is named with its reason.

The measurements are ` + strings.Join(names[:len(names)/3], ", ") + `,
` + strings.Join(names[len(names)/3:2*len(names)/3], ", ") + `,
` + strings.Join(names[2*len(names)/3:], ", ") + `.`,
		Example: `  make bench
  go -C e2e run ./cmd/bench --only speed,start --rounds 1`,
		Args: cli.NeedsArguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			todo, err := chosen(only)
			if err != nil {
				return err
			}
			return measure(c.Context(), o, todo, out)
		},
	}
	flags := root.Flags()
	flags.StringVar(&o.root, "root", "..", "`directory` of the repository, whose bin/ holds what make build has made")
	flags.IntVar(&o.rounds, "rounds", 5, "rounds of every measurement")
	flags.StringVar(&o.mnist, "mnist", os.Getenv("MNIST_DIR"), "`directory` of MNIST's IDX files, for the accuracy (env MNIST_DIR)")
	flags.DurationVar(&o.goodput, "goodput", 10*time.Minute, "how long to train with preemptions, for the goodput")
	flags.DurationVar(&o.preemption, "preemption", time.Minute, "the time between two of those preemptions")
	flags.StringVar(&o.trace, "trace", "", "`file` openb_pod_list_default.csv of alibaba/clusterdata, for checkpoint-age; empty draws a trace")
	flags.StringSliceVar(&only, "only", nil, "`measurements` to make, separated by commas; empty makes all")
	flags.StringVarP(&out, "output", "o", "", "`file` for the JSON; empty is ROOT/e2e/out/bench.json")
	cli.CompleteDirectories(root, "root", "mnist")
	cli.CompleteFrom(root, "only", names...)
	cli.CompleteFiles(root, "output", "json")
	cli.CompleteFiles(root, "trace", "csv")
	cli.Configure(root)
	return root
}

func run(ctx context.Context, o options, todo []measurement, out string) error {
	var err error
	if o.root, err = filepath.Abs(o.root); err != nil {
		return err
	}
	r := report{Time: time.Now().UTC().Truncate(time.Second), Processor: processor(), Cores: runtime.NumCPU(), Load: load()}
	for _, m := range todo {
		fmt.Fprintf(o.log, "measuring %s …\n", m.name)
		figures, err := m.run(ctx, o)
		var skipped errSkipped
		if errors.As(err, &skipped) {
			figures, err = append(figures, figure{Name: m.name, Skipped: skipped.reason}), nil
		}
		if err != nil {
			return fmt.Errorf("measure %s: %w", m.name, err)
		}
		r.Figures = append(r.Figures, figures...)
	}
	if err := r.print(os.Stdout); err != nil {
		return err
	}
	if out == "" {
		out = filepath.Join(o.root, "e2e", "out", "bench.json")
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}

// ratios makes a line of samples.
func ratios(name, goal, detail string, samples []float64) figure {
	sorted := slices.Sorted(slices.Values(samples))
	return figure{Name: name, Samples: samples, Median: median(sorted), Least: sorted[0], Most: sorted[len(sorted)-1], Goal: goal, Detail: detail}
}

// median of sorted samples.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func (r report) print(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d cores, load %s\n\n", r.Processor, r.Cores, r.Load)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tMEDIAN\tFROM\tTO\tRUNS\tGOAL\tOF")
	for _, f := range r.Figures {
		if f.Skipped != "" {
			fmt.Fprintf(t, "%s\tskipped: %s\n", f.Name, f.Skipped)
			continue
		}
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.2f\t%d\t%s\t%s\n", f.Name, f.Median, f.Least, f.Most, len(f.Samples), f.Goal, f.Detail)
	}
	return t.Flush()
}

func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, " \t:"))
		}
	}
	return runtime.GOARCH
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
