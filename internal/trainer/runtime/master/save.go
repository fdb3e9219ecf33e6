package master

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/safetensors"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// ModelInfo is model.json, the description of the final model. It has no field that depends on time, workers or
// restarts, so it is the same for every run of a job. A model.json with the job's digest means that the job is
// complete.
type ModelInfo struct {
	SHA256   string             `json:"sha256"` // of model.safetensors
	Steps    int64              `json:"steps"`
	Epochs   int                `json:"epochs"`
	Loss     float64            `json:"loss"`              // mean over the records of MeasuredOn
	Accuracy float64            `json:"accuracy"`          // share of correct predictions; 0 if the loss has no notion of correctness
	Metrics  map[string]float64 `json:"metrics,omitempty"` // of the same records, by their names in the model file
	Measured string             `json:"measured_on"`
	Records  int                `json:"records"` // measured
	// RecordsPerTask is the length of the ranges by which losses were added: the same length gives the same sum to the
	// bit.
	RecordsPerTask int `json:"records_per_task"`
	// Evaluations are the evaluations on validation data during and at the end of training, the newest 1,000.
	Evaluations []trainingjob.Measurement `json:"evaluations,omitempty"`
	Validation  string                    `json:"validation_digest,omitempty"` // of the validation data
	Job         string                    `json:"job_digest"`
	Lineage     string                    `json:"lineage"`
	Model       string                    `json:"model"`
	Numerics    int                       `json:"numerics_version"`
	Files       []string                  `json:"-"` // their paths in the store
	Algorithm   string                    `json:"optimizer"`
}

// RunInfo is run.json, the description of this run.
type RunInfo struct {
	Seconds           float64 `json:"seconds"`
	Generation        int64   `json:"generation"`
	Preemptions       int     `json:"preemptions"`
	LastWorker        int     `json:"last_worker"`
	Kernel            string  `json:"master_kernel"`
	EvaluationSeconds float64 `json:"evaluation_seconds"` // by this master; training is paused meanwhile
	// Goodput is the steps done, over those that the same workers would have done undisturbed in the time that they
	// lived.
	Goodput *float64 `json:"goodput,omitempty"`
}

// Store keeps final models and checkpoints.
type Store interface {
	// Finished returns the model of a finished job, or nil.
	Finished(jobDigest string) (*ModelInfo, error)
	// Fits returns, before training begins, an error if a final model of so many bytes could not be saved.
	Fits(bytes int) error
	// Save writes the model, then its description, each atomically. check is called just before the files appear:
	// its error means that another master has taken over. Save returns the paths of the files.
	Save(ctx context.Context, model []byte, info ModelInfo, run RunInfo, check func(context.Context) error) (files []string, err error)

	// KeepsCheckpoints reports whether it can store states of so many bytes.
	KeepsCheckpoints(bytes int) bool
	// Checkpoints lists those of a lineage, in any order.
	Checkpoints(lineage string) ([]StoredCheckpoint, error)
	// SaveCheckpoint writes one atomically, and removes the oldest if there are too many. check is called as by Save.
	SaveCheckpoint(ctx context.Context, name CheckpointName, file []byte, check func(context.Context) error) error
	// WithdrawCheckpoints renames the checkpoints of the steps, so that Checkpoints does not list them, and
	// returns the old ones, for messages.
	WithdrawCheckpoints(ctx context.Context, lineage string, steps []int64) (paths []string, err error)

	// SaveReport writes the page of a finished run, if the store has a place for it, and replaces that of an earlier
	// one. It returns its path; "" without a place. check is called as by Save.
	SaveReport(ctx context.Context, name ReportName, page []byte, check func(context.Context) error) (file string, err error)
}

// ReportName identifies the run of a report.
type ReportName struct {
	Job        string // digest
	Generation int64  // of the master that writes it
}

type savedModel struct {
	info ModelInfo
	err  error
}

// save writes the final model in the background, so that a slow disk does not look like a dead master.
func (m *Master) save() {
	info, run := m.describe(), m.run()
	m.inBackground(saveTimeout, func(ctx context.Context, state []float32) {
		file, sum, err := m.encodeModel(state)
		if err == nil {
			info.SHA256 = sum
			info.Files, err = m.cfg.Store.Save(ctx, file, info, run, m.cfg.Fence.Check)
		}
		m.saved <- savedModel{info, err}
	})
}

// writer writes the model's files and checkpoints in the background, one at a time.
type writer struct {
	ctx     context.Context    // bounds all of it
	giveUp  context.CancelFunc // ctx, when the loop has ended
	running sync.WaitGroup
	one     sync.Mutex // held while a file is written
}

// inBackground has the state written, as it is now.
func (m *Master) inBackground(timeout time.Duration, write func(ctx context.Context, state []float32)) {
	w := &m.writer
	m.keeper.lend(func(v *version) {
		w.running.Go(func() {
			defer m.keeper.release(v)
			ctx, cancel := context.WithTimeout(w.ctx, timeout)
			defer cancel()
			w.one.Lock()
			defer w.one.Unlock()
			write(ctx, v.floats)
		})
	})
}

// encodeModel is the file of a final model, and its SHA-256.
func (m *Master) encodeModel(state []float32) (file []byte, sum string, err error) {
	var b bytes.Buffer
	err = safetensors.Write(&b, m.network.Export(state), nil)
	digest := sha256.Sum256(b.Bytes())
	return b.Bytes(), hex.EncodeToString(digest[:]), err
}

// modelBytes is the size of the final model: every state's is the same.
func (m *Master) modelBytes(state []float32) (int, error) {
	var size counter
	err := safetensors.Write(&size, m.network.Export(state), nil)
	return int(size), err
}

// counter counts what is written.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

const saveTimeout = 60 * time.Second

func (m *Master) modelSaved(s savedModel) {
	if s.err != nil {
		m.step(coordinator.ModelNotSaved{Reason: fmt.Sprintf("the final model cannot be written: %v", s.err)})
		return
	}
	m.info = &s.info
	m.notice(coordinator.Notice{Reason: coordinator.ReasonModelSaved, Message: fmt.Sprintf("the final model is written after %d steps: SHA-256 %s, loss %.4g", s.info.Steps, s.info.SHA256, s.info.Loss)})
	m.step(coordinator.ModelSaved{SHA256: s.info.SHA256})
}

// describe is model.json without the hash.
func (m *Master) describe() ModelInfo {
	j := m.cfg.Job
	measured, on := m.last, "the last training step"
	if len(j.Parts) > 0 {
		measured, on = m.evaluations.last, "validation data"
	}
	loss, metrics := m.means(measured)
	return ModelInfo{
		Steps: j.Schedule.Steps(), Epochs: j.Spec.Training.Epochs,
		Loss: *loss, Accuracy: j.Metrics.Accuracy(measured.Counts, measured.Records), Metrics: metrics,
		Measured: on, Records: measured.Records, RecordsPerTask: j.Spec.Data.RecordsPerTask, Evaluations: m.evaluations.all, Validation: j.Identity.Validation,
		Job: j.Identity.Job, Lineage: j.Identity.Lineage, Model: j.Graph.Name, Numerics: j.Identity.Numerics,
		Algorithm: string(j.Graph.Optimizer.Kind),
	}
}

func (m *Master) run() RunInfo {
	return RunInfo{
		Seconds: time.Since(m.began).Seconds(), Generation: m.cfg.Fence.Generation(), Preemptions: m.core.Status().Preemptions,
		LastWorker: m.core.LastWorkerID(), Kernel: m.cfg.Job.Kernel.Name, Goodput: m.published.Newest.Goodput, EvaluationSeconds: m.evaluations.took.Seconds(),
	}
}
