package local_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/recordio"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/metric"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/worker"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// counting is a network with one parameter for each record: the first half are dense, the others the rows of a table. A
// record's gradient is −1 at its own parameter, and an update with rate 1 adds exactly 1 for each time a record was applied:
// after E epochs every parameter is E, or a record was lost or counted twice.
type counting struct {
	records int
	counts  []int64 // of the metrics, of which there is nothing to count
}

func (c counting) StateSize() int     { return c.records }
func (c counting) TrainableSize() int { return c.records / 2 }
func (c counting) StatsSize() int     { return 0 }
func (c counting) Close()             {}

func (c counting) Tables() []gradient.Table {
	dense := c.TrainableSize()
	return []gradient.Table{{Name: "rows", Rows: c.records - dense, Width: 1, Offset: dense, Lookups: 1}}
}

func (c counting) Init(state []float32, _ uint64) { clear(state) }

func (c counting) Gradient(_ []float32, b *graph.Batch, _ int, _ int64, _ int, _ uint64, out []float32, rows []gradient.Rows) (nn.Result, error) {
	clear(out)
	rows[0] = gradient.Rows{}
	for _, record := range slices.Sorted(slices.Values(b.Labels)) {
		if row := record - int32(len(out)); row >= 0 {
			rows[0].Index, rows[0].Values = append(rows[0].Index, row), append(rows[0].Values, -1)
			continue
		}
		out[record]--
	}
	return nn.Result{Records: b.N, Counts: c.counts}, nil
}

func (c counting) Apply(state []float32, sum gradient.Sum, _ [][]float32, _ int64) error {
	for i, g := range sum.Dense {
		state[i] -= g
	}
	for i, row := range sum.Rows[0].Index {
		state[len(sum.Dense)+int(row)] -= sum.Rows[0].Values[i]
	}
	return nil
}

func (c counting) Evaluate([]float32, *graph.Batch) (nn.Result, error) {
	return nn.Result{}, fmt.Errorf("the counting model has no validation data")
}

func (c counting) Export(state []float32) []nn.Tensor {
	return []nn.Tensor{{Name: "count", Shape: []int{len(state)}, Data: state}}
}

func (c counting) Snapshot(state []float32) []nn.Tensor { return c.Export(state) }

func (counting) Restore(state []float32, tensors []nn.Tensor) error {
	copy(state, tensors[0].Data)
	return nil
}

const countedRecords = 700

func countingOptions(o job.Options) job.Options {
	o.Compile = func(m *graph.Model, _ nn.Options) (job.Network, error) {
		return counting{countedRecords, make([]int64, metric.New(m).Size())}, nil
	}
	return o
}

// countingWorker is the `worker` command with the counting model in the network's place.
func countingWorker(args []string) int {
	return runWorker(args, func(c *worker.Config) { c.Job = countingOptions(job.Options{Threads: 1, Kernel: "portable"}) })
}

// runWorker is the `worker` command, configured otherwise than flags can.
func runWorker(args []string, configure func(*worker.Config)) int {
	flags := map[string]string{}
	for i := 1; i+1 < len(args); i += 2 {
		flags[args[i]] = args[i+1]
	}
	credentials, err := wire.LoadCredentials(flags["--credentials"])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	id, _ := strconv.Atoi(flags["--id"])
	pace, _ := time.ParseDuration(flags["--pace"])
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg := worker.Config{
		Master: flags["--master"], ID: id, Credentials: credentials, MasterTimeout: 5 * time.Second, Pace: pace,
		Job: job.Options{Threads: 1, Kernel: flags["--kernel"]}, Log: slog.New(slog.DiscardHandler),
	}
	configure(&cfg)
	if err := worker.Run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 143
	}
	return 0
}

func TestEveryRecordOfEveryEpochIsAppliedExactlyOnce(t *testing.T) {
	t.Setenv("COUNTING_MODEL", "1")
	const epochs = 2
	spec := trainingjob.Job{
		Name: "counting", Namespace: "default", Model: trainingjob.Model{File: "testdata/counting_model.py"},
		Data:     trainingjob.Data{Training: numbered(t, countedRecords), Format: "recordio", Codec: "bytes", RecordsPerTask: 30},
		Training: trainingjob.Training{Epochs: epochs, MinibatchSize: 7, GradsToWait: 5, Seed: 3},
	}
	star := ways{kernels: []string{"portable"}, workers: []int{1, 3}, kills: []int{0, 12}}
	between := ways{kernels: []string{"portable"}, workers: []int{3}, kills: []int{0, 12}, aggregations: []string{trainingjob.AggregationAllReduce}}
	for _, r := range append(star.runs(), between.runs()...) {
		t.Run(r.String(), func(t *testing.T) {
			spec.Training.Aggregation = r.aggregation
			j, text := load(t, spec, countingOptions(job.Options{Threads: 1, Kernel: "portable"}))
			result := trainLoaded(t, j, text, r)
			if result.Model == nil {
				t.Fatalf("no model: %+v", result)
			}
			counts := float32s(t, result.Model.Files[0])
			for record, n := range counts {
				if n != epochs {
					t.Errorf("record %d was applied %v times in %d epochs", record, n, epochs)
				}
			}
		})
	}
}

// numbered writes records whose label is their number, in two files.
func numbered(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	for file, span := range [][2]int{{0, n / 3}, {n / 3, n}} {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("data-%04d", file)))
		if err != nil {
			t.Fatal(err)
		}
		w, err := recordio.NewWriter(f, recordio.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := span[0]; i < span[1]; i++ {
			record := binary.LittleEndian.AppendUint32(nil, 0)
			record = binary.LittleEndian.AppendUint64(record, uint64(i))
			if err := w.Write(record); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// float32s reads the one tensor of a counting model: its bytes stand at the end of the file.
func float32s(t *testing.T, path string) []float32 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || len(b) < 4*countedRecords {
		t.Fatalf("%d bytes: %v", len(b), err)
	}
	values := make([]float32, countedRecords)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[len(b)-4*(countedRecords-i):]))
	}
	return values
}
