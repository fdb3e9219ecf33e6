// Package job loads a job's description (trainingjob.Job and the model file's text): the compiled
// network, the open data, the schedule, and the identity by which master and workers recognize each other. Master,
// workers and the local trainer load a job the same way, so that they cannot disagree about it silently.
package job

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/objectstore"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/table"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/metric"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/modelfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/zoo"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/schedule"
)

// Options decide where and how fast a job is computed; they do not affect its result.
type Options struct {
	// Threads that compute. 0 means one for each processor, at most 8; for a script, whose results depend on their
	// number, it means OMP_NUM_THREADS, or one.
	Threads int
	Kernel  string // "avx512", "avx2", "neon" or "portable"; "" chooses
	Cache   int64  // bytes of decoded data; 0 chooses
	// Memory is how many bytes the values of a minibatch may take where the job is computed; 0 is no limit.
	Memory int64
	// Stores opens the buckets of s3:// and gs://; nil where the trainer is built without.
	Stores objectstore.Opener
	// Root is put before the absolute paths of a job where they exist below it: containers without a mount namespace
	// of their own have their volumes there. "" in a real container.
	Root string
	// ScriptOutput receives what a job's script prints; nil discards it.
	ScriptOutput io.Writer
	// ScriptShared is a directory shared with the container in which framework.Host runs a job's script; "" runs it as
	// a child.
	ScriptShared string
	// ScriptRestarts is how many times in a row a job's script is restarted when it has died. Only masters restart
	// theirs.
	ScriptRestarts int
	// Compile makes the network of a model file; nil is nn.Compile.
	Compile func(*graph.Model, nn.Options) (Network, error)
}

// Resolve returns where a path of a job is found.
func (o Options) Resolve(path string) string {
	if o.Root == "" || !filepath.IsAbs(path) {
		return path
	}
	if below := filepath.Join(o.Root, path); exists(below) || exists(filepath.Dir(below)) {
		return below
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Job is a loaded job. Close ends its goroutines and closes its files.
type Job struct {
	Spec      trainingjob.Job
	ModelText []byte
	Graph     *graph.Model
	Report    *modelfile.Report
	Network   Network // nil where the script exchanges gradients itself: see trainingjob.Job.OwnGroup
	Kernel    kernel.Set
	Schedule  *schedule.Schedule
	Identity  coordinator.Identity
	Metrics   metric.Set

	Training   *data.Dataset
	Validation *data.Dataset    // nil without validation data
	Parts      []schedule.Range // of the validation data
}

// ReadModel is the text of the job's model file, or of its built-in model, and the file's name for messages.
func ReadModel(spec trainingjob.Job, o Options) (name string, text []byte, err error) {
	if spec.Model.Name != "" {
		built, err := zoo.Load(spec.Model.Name)
		return built.FileName(), built.Source, err
	}
	if spec.Restarts() && spec.Model.File == "" {
		return "", nil, nil // the command is in the image
	}
	file := o.Resolve(spec.Model.File)
	if text, err = os.ReadFile(file); err != nil {
		return "", nil, fmt.Errorf("read the model file: %w", err)
	}
	if len(spec.Command) == 0 {
		if text, err = modelfile.Bundle(text, modulesOf(file)); err != nil {
			return "", nil, fmt.Errorf("read what the model file %s imports: %w", file, err)
		}
	}
	return filepath.Base(spec.Model.File), text, nil
}

// zooDepth is how many folders above a model file are searched for its imports: a model zoo is not deep.
const zooDepth = 6

// modulesOf finds the modules that a model file imports, as Python does when started in the file's folder or in one
// above it: model_zoo.census.columns is model_zoo/census/columns.py below one of them, the nearest.
func modulesOf(file string) func(name string) ([]byte, bool, error) {
	return func(name string) ([]byte, bool, error) {
		relative := filepath.Join(strings.Split(name, ".")...) + ".py"
		dir, err := filepath.Abs(filepath.Dir(file))
		if err != nil {
			return nil, false, err
		}
		for range zooDepth {
			path := filepath.Join(dir, relative)
			if same, _ := filepath.Abs(file); path != same && filepath.IsLocal(relative) { //nolint:errcheck // it worked above
				text, err := os.ReadFile(path)
				if err == nil {
					return text, true, nil
				}
				if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
					return nil, false, err
				}
			}
			dir = filepath.Dir(dir)
		}
		return nil, false, nil
	}
}

// Load compiles the model, opens the data and plans the schedule. name and model are ReadModel's results; workers have
// them from their master.
func Load(ctx context.Context, spec trainingjob.Job, name string, model []byte, o Options) (_ *Job, err error) {
	j := &Job{Spec: spec, ModelText: model}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.Close())
		}
	}()
	if j.Kernel, err = kernel.Choose(o.Kernel); err != nil {
		return nil, err
	}
	t := spec.Training
	var computation json.RawMessage
	switch {
	case spec.Restarts():
		return j, j.restarts()
	case spec.Collectives():
		computation, err = j.collectives()
	case len(spec.Command) > 0:
		computation, err = j.script(ctx, name, o)
	default:
		computation, err = j.modelFile(name, o)
	}
	if err != nil {
		return nil, err
	}
	if j.Training, err = j.open(ctx, spec.Data.Training, o); err != nil {
		return nil, err
	}
	params := schedule.Params{Seed: t.Seed, Epochs: t.Epochs, MinibatchSize: t.MinibatchSize, GradsToWait: t.GradsToWait, RecordsPerTask: spec.Data.RecordsPerTask}
	if j.Schedule, err = schedule.New(params, j.Training.RecordsByFile()); err != nil {
		return nil, fmt.Errorf("data %q: %w", spec.Data.Training, err)
	}
	j.Identity = identify(computation, params, j.Training.Fingerprint())
	if spec.Data.Validation != "" {
		if j.Validation, err = j.open(ctx, spec.Data.Validation, o); err != nil {
			return nil, err
		}
		fingerprint := j.Validation.Fingerprint()
		j.Identity.Validation = hex.EncodeToString(fingerprint[:])
		if j.Parts, err = schedule.Cut(j.Validation.RecordsByFile(), spec.Data.RecordsPerTask); err != nil {
			return nil, fmt.Errorf("data %q: %w", spec.Data.Validation, err)
		}
	}
	return j, nil
}

// modelFile makes the network of a model file of ElasticDL's users, and returns what identifies it.
func (j *Job) modelFile(name string, o Options) (_ json.RawMessage, err error) {
	t := j.Spec.Training
	if o.Threads == 0 {
		o.Threads = min(runtime.GOMAXPROCS(0), 8)
	}
	if j.Graph, j.Report, err = modelfile.Load(name, j.ModelText, modelfile.Options{LearningRate: t.LearningRate}); err != nil {
		return nil, err
	}
	j.Metrics = metric.New(j.Graph)
	if o.Compile == nil {
		o.Compile = compile
	}
	if j.Network, err = o.Compile(
		j.Graph, nn.Options{Kernel: j.Kernel, Threads: o.Threads, MaxBatch: j.Spec.LargestMinibatch(), MemoryBytes: o.Memory},
	); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return graph.Canonical(j.Graph), nil
}

func (j *Job) open(ctx context.Context, path string, o Options) (*data.Dataset, error) {
	d := j.Spec.Data
	spec := data.Spec{Path: o.Resolve(path), Format: d.Format, Codec: d.Codec, Features: j.Graph.Feed.Features, CacheBytes: o.Cache, Stores: o.Stores}
	if d.CSV != nil {
		spec.Table = table.Options{Columns: d.CSV.Columns, Words: d.CSV.Words}
	}
	return data.Open(ctx, spec)
}

// Files are the files of all data sets of a job, by which another process checks that it reads the same ones.
type Files struct{ Training, Validation []data.File }

// Files lists those of this process.
func (j *Job) Files() Files {
	f := Files{Training: j.Training.Files()}
	if j.Validation != nil {
		f.Validation = j.Validation.Files()
	}
	return f
}

// Match compares the data with those of another process of this job, and names the first file that differs.
func (j *Job) Match(want Files) error {
	if err := j.Training.Match(want.Training); err != nil || j.Validation == nil {
		return err
	}
	return j.Validation.Match(want.Validation)
}

// Close releases what Load opened.
func (j *Job) Close() error {
	var errs []error
	for _, d := range []*data.Dataset{j.Training, j.Validation} {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	if j.Network != nil {
		j.Network.Close()
	}
	return errors.Join(errs...)
}

// Warnings are messages that a user should read before relying on the job.
func (j *Job) Warnings() []string {
	var w []string
	for _, m := range j.Report.Warnings {
		w = append(w, fmt.Sprintf("model file, %s", m))
	}
	if k, m := j.Spec.Training.GradsToWait, j.Schedule.MinibatchesPerEpoch(); k > m && !j.Spec.Restarts() {
		w = append(w, fmt.Sprintf("grads to wait (%d) exceeds the %d minibatches of an epoch: every epoch is one step", k, m))
	}
	return w
}

// Notices are messages that may interest a user.
func (j *Job) Notices() []string {
	var n []string
	for _, m := range j.Report.Notices {
		n = append(n, fmt.Sprintf("model file, %s", m))
	}
	for _, d := range []*data.Dataset{j.Training, j.Validation} {
		if d != nil {
			n = append(n, d.Notices()...)
		}
	}
	return n
}

// identify computes the two digests of a job. The lineage covers everything that determines the state at every step:
// the traced graph with its loss and optimizer, the numbers of the schedule but the epochs, the version of the
// arithmetic, and the data. The job's digest adds the number of epochs. For a script, the graph is replaced by its text
// and command, and the tensors of its state.
func identify(computation json.RawMessage, p schedule.Params, fingerprint [sha256.Size]byte) coordinator.Identity {
	lineage := digest(struct {
		Graph          json.RawMessage `json:"graph"`
		Seed           uint64          `json:"seed"`
		MinibatchSize  int             `json:"minibatch_size"`
		GradsToWait    int             `json:"grads_to_wait"`
		RecordsPerTask int             `json:"records_per_task"`
		Numerics       int             `json:"numerics"`
		Data           string          `json:"data"`
	}{computation, p.Seed, p.MinibatchSize, p.GradsToWait, p.RecordsPerTask, kernel.NumericsVersion, hex.EncodeToString(fingerprint[:])})
	return coordinator.Identity{
		Lineage: lineage,
		Job: digest(struct {
			Lineage string `json:"lineage"`
			Epochs  int    `json:"epochs"`
		}{lineage, p.Epochs}),
		Numerics: kernel.NumericsVersion,
	}
}

// digest is the SHA-256 of a value's JSON, whose fields have one order.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("job: " + err.Error()) // strings, numbers and valid JSON only
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
