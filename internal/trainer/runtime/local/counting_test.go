package local_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/safetensors"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datatest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/recordio"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/metric"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/worker"
)

// counting is a network with one parameter for each record: the first half are dense, the others the rows of a table. A
// record's gradient is −1 at its own parameter, and an update with rate 1 adds exactly 1 for each time a record was
// applied: after E epochs every parameter is E, or a record was lost or counted twice.
type counting struct {
	records int
	counts  []int64 // of the metrics; always zero
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

func (c counting) Export(state []float32) []safetensors.Tensor {
	return []safetensors.Tensor{safetensors.Float32("count", []int{len(state)}, state)}
}

func (c counting) Snapshot(state []float32) []safetensors.Tensor { return c.Export(state) }

func (counting) Restore(state []float32, tensors []safetensors.Tensor) error {
	values, err := tensors[0].Float32s()
	copy(state, values)
	return err
}

// countingModel is the environment variable that gives a test and its child processes that network.
const countingModel = "COUNTING_MODEL"

const countedRecords = 700

func compileCounting(m *graph.Model, _ nn.Options) (job.Network, error) {
	return counting{countedRecords, make([]int64, metric.New(m).Size())}, nil
}

// runWorker is the `worker` command with the tests' options.
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
		Master: flags["--master"], ID: id, Credentials: credentials, MasterTimeout: patience.Medium, Pace: pace,
		Job: options(1, flags["--kernel"]), Log: slog.New(slog.DiscardHandler),
	}
	configure(&cfg)
	if err := worker.Run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 143
	}
	return 0
}

func TestEveryRecordOfEveryEpochIsAppliedExactlyOnce(t *testing.T) {
	star := ways{workers: []int{1, 3}, kills: []int{0, 12}}
	between := ways{workers: []int{3}, kills: []int{0, 12}, aggregations: []string{trainingjob.AggregationAllReduce}}
	everyRecordCountsOnce(t, append(star.runs(), between.runs()...))
}

// everyRecordCountsOnce trains the counting model in several ways.
func everyRecordCountsOnce(t *testing.T, runs []run) {
	t.Helper()
	spec := countingJob(t)
	for _, r := range runs {
		if r.kernel != "" && r.kernel != "portable" {
			continue // the counting model has no arithmetic
		}
		r.kernel = "portable"
		t.Run(r.String(), func(t *testing.T) {
			countedOnce(t, spec, trained(t, spec, r), countedRecords)
		})
	}
}

// countingJob is a job of the counting model. It switches this test's processes to that model.
func countingJob(t *testing.T) trainingjob.Job {
	t.Helper()
	t.Setenv(countingModel, "1")
	return trainingjob.Job{
		Name: "counting", Namespace: "default", Model: trainingjob.Model{File: "testdata/counting_model.py"},
		Data:     trainingjob.Data{Training: numbered(t, countedRecords), Format: "recordio", Codec: "bytes", RecordsPerTask: 30},
		Training: trainingjob.Training{Epochs: 2, MinibatchSize: 7, GradsToWait: 5, Seed: 3},
	}
}

// countedOnce checks that a model has counted each of so many records once in each epoch.
func countedOnce(t *testing.T, spec trainingjob.Job, model *master.ModelInfo, records int) {
	t.Helper()
	counts := tensor(t, model.Files[0], "count")
	if len(counts) != records {
		t.Fatalf("%d records were counted, of %d", len(counts), records)
	}
	for record, n := range counts {
		if n != float32(spec.Training.Epochs) {
			t.Errorf("record %d was applied %v times in %d epochs", record, n, spec.Training.Epochs)
		}
	}
}

// tensor is the values of one of a model's tensors, which is of float32.
func tensor(t *testing.T, path, name string) []float32 {
	t.Helper()
	values, err := stored(t, path, name).Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// stored is one of a model's tensors.
func stored(t *testing.T, path, name string) safetensors.Tensor {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tensors, _, err := safetensors.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(tensors, func(t safetensors.Tensor) bool { return t.Name == name })
	if i < 0 {
		t.Fatalf("%s holds no tensor %q", path, name)
	}
	return tensors[i]
}

// numbered writes records whose label is their number, in two files.
func numbered(t *testing.T, n int) string {
	t.Helper()
	records := make([][]byte, n)
	for i := range records {
		records[i] = binary.LittleEndian.AppendUint64(make([]byte, 4), uint64(i)) // behind a feature of 0
	}
	dir := t.TempDir()
	for name, part := range map[string][][]byte{"data-0000": records[:n/3], "data-0001": records[n/3:]} {
		if err := os.WriteFile(filepath.Join(dir, name), datatest.RecordIO(t, recordio.WriterOptions{}, part...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
