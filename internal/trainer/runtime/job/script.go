package job

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/metric"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/modelfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/schedule"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/framework"
)

// script starts the job's command, which computes with a framework of its own, and returns what identifies it. The
// graph has only the fields that other code reads: names and metrics.
func (j *Job) script(ctx context.Context, name string, o Options) (json.RawMessage, error) {
	t := j.Spec.Training
	options := ScriptOptions(j.Spec, name, j.ModelText, o)
	options.Finite = j.Kernel.Finite
	n, err := framework.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	j.Network = n
	d := n.Description()
	j.Report = &modelfile.Report{}
	j.Graph = &graph.Model{Name: d.Model, Optimizer: graph.Optimizer{Kind: graph.OptimizerKind(d.Optimizer)}, Feed: graph.Feed{Raw: true}}
	for _, name := range d.Metrics {
		j.Graph.Metrics = append(j.Graph.Metrics, graph.Metric{Name: name, Kind: graph.Accuracy})
	}
	j.Metrics = metric.Shares(d.Metrics)
	return json.Marshal(struct {
		Command      []string `json:"command"`
		Script       string   `json:"script"`
		LearningRate *float64 `json:"learning_rate,omitempty"`
		Description  any      `json:"description"`
	}{j.Spec.Command, string(j.ModelText), t.LearningRate, n.Lineage()})
}

// ScriptOptions are those of a job's script, which is a file with that name and text.
func ScriptOptions(spec trainingjob.Job, name string, text []byte, o Options) framework.Options {
	beside := filepath.Dir(o.Resolve(spec.Model.File))
	if info, err := os.Stat(beside); err != nil || !info.IsDir() || o.ScriptShared != "" {
		beside = "" // on a worker's node, or in another container, the script comes from the master
	}
	t := spec.Training
	return framework.Options{
		Command: spec.Command, Name: name, Script: text, Beside: beside, Shared: o.ScriptShared,
		Seed: t.Seed, MinibatchSize: t.MinibatchSize, LearningRate: t.LearningRate, Threads: scriptThreads(o.Threads),
		Restarts: o.ScriptRestarts, Output: o.ScriptOutput,
	}
}

// collectives is the job of a script that exchanges gradients itself: nothing of it is computed here, and it is identified
// by what it is made of.
func (j *Job) collectives() (json.RawMessage, error) {
	t := j.Spec.Training
	j.Report = &modelfile.Report{}
	j.Graph = &graph.Model{Name: filepath.Base(j.Spec.Model.File), Feed: graph.Feed{Raw: true}}
	j.Metrics = metric.Shares(nil)
	return json.Marshal(struct {
		Command      []string `json:"command"`
		Script       string   `json:"script"`
		LearningRate *float64 `json:"learning_rate,omitempty"`
		Elastic      string   `json:"elastic"`
	}{j.Spec.Command, string(j.ModelText), t.LearningRate, j.Spec.Elastic})
}

// restarts is the job of a command that is started again when its workers change: its whole run is one step, of one record
// that nobody reads.
func (j *Job) restarts() error {
	name := strings.Join(j.Spec.Command, " ")
	if j.Spec.Model.File != "" {
		name += " " + filepath.Base(j.Spec.Model.File)
	}
	j.Report, j.Graph, j.Metrics = &modelfile.Report{}, &graph.Model{Name: name, Feed: graph.Feed{Raw: true}}, metric.Shares(nil)
	computation, err := json.Marshal(struct {
		Command []string `json:"command"`
		Script  string   `json:"script"`
		Elastic string   `json:"elastic"`
	}{j.Spec.Command, string(j.ModelText), j.Spec.Elastic})
	if err != nil {
		return err
	}
	if j.Training, err = data.Open(context.Background(), data.Spec{Path: dataset.IndicesPrefix + "command?records=1"}); err != nil { // reads nothing
		return err
	}
	params := schedule.Params{Epochs: 1, MinibatchSize: 1, GradsToWait: 1, RecordsPerTask: 1}
	if j.Schedule, err = schedule.New(params, j.Training.RecordsByFile()); err != nil {
		return err
	}
	j.Identity = identify(computation, params, j.Training.Fingerprint())
	return nil
}

// scriptThreads is the number of threads that a script computes with: the given one, or OMP_NUM_THREADS, or
// one. Sums depend on the number of threads, so the default cannot follow the machine: two workers would
// disagree.
func scriptThreads(given int) int {
	if given > 0 {
		return given
	}
	if n, err := strconv.Atoi(os.Getenv("OMP_NUM_THREADS")); err == nil && n > 0 {
		return n
	}
	return 1
}
