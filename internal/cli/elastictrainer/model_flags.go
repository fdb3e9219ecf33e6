package elastictrainer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/inference"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/table"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/modelfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/zoo"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/schedule"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// modelFlags are the flags of evaluate and predict: a trained model, and the data that it is used on.
type modelFlags struct {
	computeFlags
	csv        csvFlags
	model      trainingjob.Model
	checkpoint string
	modelDir   string
	spec       data.Spec
	ranges     int
	minibatch  int
	hint       string // about records that the model does not read
}

func (u *modelFlags) register(c *cobra.Command, dataFlag, what string) {
	f := c.Flags()
	f.StringVar(&u.model.File, "model-file", "", "the model `file` used in training (this or --model is required)")
	f.StringVar(&u.model.Name, "model", "", "the built-in model used in training: "+strings.Join(zoo.Names(), ", "))
	f.StringVar(&u.modelDir, "model-dir", "", "`directory` of a finished job's model, OUTPUT/<8 digits>, or OUTPUT if it contains one model (this or --checkpoint is required)")
	f.StringVar(&u.checkpoint, "checkpoint", "", "checkpoint or model `file`: any safetensors file with the model's variables")
	f.StringVar(&u.spec.Path, dataFlag, "", what+": a directory, a file, or synthetic://digits?records=1000&seed=2 (required)")
	f.StringVar(&u.spec.Format, "data-format", "", dataset.FormatChoice()+" (default: from the file names)")
	f.StringVar(&u.spec.Codec, "codec-type", "bytes", "how records are encoded: bytes or tf_example")
	u.csv.register(f)
	f.IntVar(&u.minibatch, "minibatch-size", 64, "records per batch; does not affect the results")
	cli.InRange(c, "minibatch-size", 1, trainingjob.MaxMinibatchSize)
	u.computeFlags.register(c, "compute threads; 0: one per CPU, at most 8")
	cli.Require(c, dataFlag)
	completeModel(c)
	completeData(c, dataFlag)
	cli.CompleteDirectories(c, "model-dir")
	cli.CompleteFiles(c, "checkpoint", "safetensors")
	c.MarkFlagsOneRequired("model-file", "model")
	c.MarkFlagsMutuallyExclusive("model-file", "model")
	c.MarkFlagsOneRequired("checkpoint", "model-dir")
	c.MarkFlagsMutuallyExclusive("checkpoint", "model-dir")
}

// openModel is a trained model beside data for it. Close releases both.
type openModel struct {
	*inference.Model
	weights inference.Weights
	data    *data.Dataset
	batcher *data.Batcher
	ranges  []schedule.Range
}

// open loads the model for a mode, gives it its weights, and opens the data.
func (u *modelFlags) open(ctx context.Context, mode modelfile.Mode) (_ *openModel, err error) {
	csv, err := u.csv.finish()
	if err != nil {
		return nil, err
	}
	if csv != nil {
		u.spec.Table = table.Options{Columns: csv.Columns, Words: csv.Words}
	}
	name, text, err := job.ReadModel(trainingjob.Job{Model: u.model}, u.options)
	if err != nil {
		return nil, err
	}
	m, _, err := modelfile.Load(name, text, modelfile.Options{Mode: mode})
	if err != nil {
		return nil, err
	}
	o := &openModel{}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.Close())
		}
	}()
	if u.modelDir != "" {
		o.weights, err = inference.ReadDir(u.modelDir)
	} else {
		o.weights, err = inference.ReadFile(u.checkpoint)
	}
	if err != nil {
		return nil, err
	}
	set, err := kernel.Choose(u.options.Kernel)
	if err != nil {
		return nil, err
	}
	threads := u.options.Threads
	if threads == 0 {
		threads = min(runtime.GOMAXPROCS(0), kernel.MaxBlocks)
	}
	if o.Model, err = inference.New(m, o.weights, nn.Options{Kernel: set, Threads: threads, MaxBatch: u.minibatch, MemoryBytes: data.MemoryBytes()}); err != nil {
		return nil, err
	}
	u.spec.Features, u.spec.CacheBytes = m.Feed.Features, u.options.Cache
	if o.data, err = data.Open(ctx, u.spec); err != nil {
		if schema := (*data.SchemaError)(nil); errors.As(err, &schema) {
			err = fmt.Errorf("%w%s", err, u.hint)
		}
		return nil, err
	}
	if o.batcher, err = data.NewBatcher(o.data, m.Feed, u.minibatch); err != nil {
		return nil, err
	}
	if o.ranges, err = schedule.Cut(o.data.RecordsByFile(), u.rangeLength(o.weights)); err != nil {
		return nil, fmt.Errorf("data %q: %w", u.spec.Path, err)
	}
	return o, nil
}

// defaultRange is train's --record-per-task.
const defaultRange = 100

// rangeLength is that of the flag, or the one that the final model was measured with.
func (u *modelFlags) rangeLength(w inference.Weights) int {
	switch {
	case u.ranges > 0:
		return u.ranges
	case w.Info != nil && w.Info.RecordsPerTask > 0:
		return w.Info.RecordsPerTask
	}
	return defaultRange
}

// Close releases the model and the data.
func (o *openModel) Close() error {
	if o.Model != nil {
		o.Model.Close()
	}
	if o.data != nil {
		return o.data.Close()
	}
	return nil
}

// each calls do with one range after the other, while the next one is read, and says how it goes.
func (o *openModel) each(progress *counter, do func(r schedule.Range) error) error {
	for i, r := range o.ranges {
		if i+1 < len(o.ranges) {
			next := o.ranges[i+1]
			o.data.Prefetch(next.File, next.Lo, next.Hi)
		}
		if err := do(r); err != nil {
			return err
		}
		progress.add(r.Hi - r.Lo)
	}
	progress.end()
	return nil
}

// title reports which weights of which model are used.
func (o *openModel) title() string {
	s := fmt.Sprintf("model     %s, %s", o.Graph.Name, o.weights.Path)
	if o.weights.Step >= 0 {
		s += fmt.Sprintf(", step %d", o.weights.Step)
	}
	return s
}

// counter reports on stderr how far a long command is: on a terminal in one line that is written over, elsewhere now
// and then.
type counter struct {
	out      io.Writer
	terminal bool
	what     string
	total    int64
	done     int64
	began    time.Time
	printed  time.Time
	open     bool // a line is on the terminal without its end
}

func newCounter(out io.Writer, what string, total int64) *counter {
	f, isFile := out.(*os.File)
	return &counter{out: out, terminal: isFile && term.IsTerminal(int(f.Fd())), what: what, total: total, began: time.Now(), printed: time.Now()}
}

// Between two lines; short commands say nothing.
const (
	counterOnTerminal = 500 * time.Millisecond
	counterElsewhere  = 10 * time.Second
)

func (c *counter) add(n int64) {
	c.done += n
	every := counterElsewhere
	if c.terminal {
		every = counterOnTerminal
	}
	now := time.Now()
	if now.Sub(c.printed) < every {
		return
	}
	c.printed = now
	perSecond := float64(c.done) / now.Sub(c.began).Seconds()
	line := fmt.Sprintf("%s  %d of %d records  %.0f records/s", c.what, c.done, c.total, perSecond)
	if left, known := wording.Remaining(float64(c.total-c.done), perSecond); known {
		line += fmt.Sprintf("  %s left", left.Round(time.Second))
	}
	if c.terminal {
		fmt.Fprint(c.out, "\r\x1b[K"+line)
		c.open = true
		return
	}
	fmt.Fprintln(c.out, line)
}

// end wipes the line.
func (c *counter) end() {
	if c.open {
		fmt.Fprint(c.out, "\r\x1b[K")
	}
}
