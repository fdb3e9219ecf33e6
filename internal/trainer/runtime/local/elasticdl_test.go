package local_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datatest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/recordio"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/evaluation"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/modelfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/schedule"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
)

// elasticDLRecords is how many records each model file is trained on: 20 steps.
const (
	elasticDLMinibatch = 16
	elasticDLRecords   = 20 * elasticDLMinibatch
)

// TestModelFilesOfElasticDLsRepository trains every model file of checkouts of ElasticDL's repository, which are not
// part of this one, for 20 steps with one worker and with three, which must give one model whose loss has fallen.
// ELASTICDL_DIR names the checkouts, as PATH names directories. The table is logged.
func TestModelFilesOfElasticDLsRepository(t *testing.T) {
	dirs := filepath.SplitList(os.Getenv("ELASTICDL_DIR"))
	if len(dirs) == 0 {
		t.Skip("ELASTICDL_DIR names no checkout of ElasticDL's repository; its constructs are tested with model files of our own")
	}
	accepted, files := 0, 0
	for _, dir := range dirs {
		for _, file := range elasticDLFiles(t, dir) {
			files++
			t.Run(filepath.Join(filepath.Base(dir), strings.TrimPrefix(file, dir)), func(t *testing.T) {
				name, text, err := job.ReadModel(trainingjob.Job{Model: trainingjob.Model{File: file}}, job.Options{})
				if err != nil {
					t.Fatal(err)
				}
				m, _, err := modelfile.Load(name, text, modelfile.Options{})
				if err != nil {
					if !namesLine.MatchString(err.Error()) {
						t.Errorf("a refusal that names no line: %v", err)
					}
					t.Logf("refused: %v", err)
					return
				}
				accepted++
				trainElasticDLFile(t, file, m)
			})
		}
	}
	t.Logf("%d of %d model files are accepted", accepted, files)
}

// namesLine matches an error that names a line.
var namesLine = regexp.MustCompile(`\.py:[1-9][0-9]*:`)

// elasticDLFiles are the model files of a checkout: those of model_zoo, and of examples before there was one, that make
// a network and define its training. It leaves out the modules that these import.
func elasticDLFiles(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"model_zoo/*/*.py", "model_zoo/*/*/*.py", "elasticdl/python/examples/*.py"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			trains := strings.Contains(string(text), "def optimizer(") || strings.Contains(string(text), "ptimizer = ") || strings.Contains(string(text), "tf.estimator.")
			if trains {
				files = append(files, file)
			}
		}
	}
	if len(files) == 0 {
		t.Fatalf("%s holds no model files", dir)
	}
	return files
}

func trainElasticDLFile(t *testing.T, file string, m *graph.Model) {
	t.Helper()
	dir := t.TempDir()
	var records [][]byte
	for i := range elasticDLRecords {
		record, err := codec.Append(nil, dataset.TFExampleCodec, m.Feed.Features, elasticDLRecord(m, i))
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	if err := os.WriteFile(filepath.Join(dir, "data.recordio"), datatest.RecordIO(t, recordio.WriterOptions{}, records...), 0o644); err != nil {
		t.Fatal(err)
	}
	spec := trainingjob.Job{
		Name: "elasticdl", Namespace: "default", Model: trainingjob.Model{File: file},
		Data:     trainingjob.Data{Training: dir, Format: "recordio", Codec: dataset.TFExampleCodec, RecordsPerTask: elasticDLMinibatch},
		Training: trainingjob.Training{Epochs: 1, MinibatchSize: elasticDLMinibatch, GradsToWait: 1, Seed: 1},
	}
	one, three := trained(t, spec, run{workers: 1, threads: 1}), trained(t, spec, run{workers: 3, threads: 1})
	if one.SHA256 != three.SHA256 {
		t.Errorf("one worker gives %s, and three %s", one.SHA256, three.SHA256)
	}
	before, after := elasticDLLosses(t, spec)
	if !(after < before) || math.IsNaN(after) {
		t.Errorf("20 steps took the loss from %v to %v", before, after)
	}
	t.Logf("accepted: %.12s with 1 and 3 workers, loss %.4f to %.4f", one.SHA256, before, after)
}

// elasticDLRecord is a record whose label follows from its features.
func elasticDLRecord(m *graph.Model, i int) graph.Example {
	label := i % 2 // of ten classes, too: 20 steps are few
	example := codec.NewExample(m.Feed.Features)
	for k, f := range m.Feed.Features {
		v := &example[k]
		for e := range f.Elements() {
			signal := (e/3+label*5)%7 < 3
			switch {
			case f.Name == m.Feed.Label && f.DType == graph.Float32:
				v.Floats[e] = float32(label)
			case f.Name == m.Feed.Label && f.DType == graph.Uint8:
				v.Bytes[e] = byte(label)
			case f.Name == m.Feed.Label:
				v.Ints[e] = int64(label)
			case f.DType == graph.String:
				v.Strings[e] = []byte(fmt.Sprintf("word %d", label*3+i%3))
			case f.DType == graph.Float32:
				v.Floats[e] = float32(20+(i*31+e*17)%60) + 0.5
				if signal {
					v.Floats[e] += 120
				}
			case f.DType == graph.Uint8:
				v.Bytes[e] = byte((i*31+e*17)%60 + 100*label)
			default:
				v.Ints[e] = int64((i*31+e*17)%20 + 20*label)
			}
		}
	}
	return example
}

// elasticDLLosses are the mean loss of all records before the first of 20 steps and behind the last, as training
// computes it: with the statistics of each minibatch, because the moving averages of evaluation take longer than 20
// steps to arrive.
func elasticDLLosses(t *testing.T, spec trainingjob.Job) (before, after float64) {
	t.Helper()
	j, _ := load(t, spec, options(1, ""))
	state := make([]float32, j.Network.StateSize())
	j.Network.Init(state, spec.Training.Seed)
	batcher, err := data.NewBatcher(j.Training, j.Graph.Feed, elasticDLMinibatch)
	if err != nil {
		t.Fatal(err)
	}
	dense := j.Network.TrainableSize()
	buffer := make([]float32, dense+j.Network.StatsSize())
	rows := make([]gradient.Rows, len(j.Network.Tables()))
	epoch := func(apply bool) float64 {
		sum, step := 0.0, int64(0)
		err := evaluation.Minibatches(t.Context(), batcher, schedule.Range{Hi: elasticDLRecords}, elasticDLMinibatch, func(b *graph.Batch) error {
			r, err := j.Network.Gradient(state, b, b.N, step, 0, 1, buffer, rows)
			if err != nil {
				return err
			}
			if apply {
				err = j.Network.Apply(state, gradient.Sum{Dense: buffer[:dense], Rows: rows}, [][]float32{buffer[dense:]}, step)
			}
			sum += r.LossSum
			step++
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return sum / elasticDLRecords
	}
	before = epoch(false)
	epoch(true)
	return before, epoch(false)
}
