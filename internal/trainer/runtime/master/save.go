package master

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/safetensors"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// ModelInfo is model.json: what the final model is. It holds nothing that depends on time, workers or restarts, so
// that it is the same for every run of a job. Its presence with a job's digest is the job's completion.
type ModelInfo struct {
	SHA256   string             `json:"sha256"` // of model.safetensors
	Steps    int64              `json:"steps"`
	Epochs   int                `json:"epochs"`
	Loss     float64            `json:"loss"`              // mean over the records of MeasuredOn
	Accuracy float64            `json:"accuracy"`          // share of them that were answered right; 0 where the loss knows no right answers
	Metrics  map[string]float64 `json:"metrics,omitempty"` // of the same records, by the names that the model file gives them
	Measured string             `json:"measured_on"`
	Records  int                `json:"records"` // measured
	// RecordsPerTask is the length of the ranges by which losses were added: the same ones give the same sum to the
	// bit.
	RecordsPerTask int `json:"records_per_task"`
	// Evaluations are those of the validation data on the way and at the end; of more than 1,000 the newest.
	Evaluations []trainingjob.Measurement `json:"evaluations,omitempty"`
	Validation  string                    `json:"validation_digest,omitempty"` // of the data that they were all made on
	Job         string                    `json:"job_digest"`
	Lineage     string                    `json:"lineage"`
	Model       string                    `json:"model"`
	Numerics    int                       `json:"numerics_version"`
	Files       []string                  `json:"-"` // where the store has put them
	Algorithm   string                    `json:"optimizer"`
}

// RunInfo is run.json: how this run went.
type RunInfo struct {
	Seconds           float64 `json:"seconds"`
	Generation        int64   `json:"generation"`
	Preemptions       int     `json:"preemptions"`
	LastWorker        int     `json:"last_worker"`
	Kernel            string  `json:"master_kernel"`
	EvaluationSeconds float64 `json:"evaluation_seconds"` // by this master; training waited meanwhile
	// Goodput is the steps done, over those that the same workers would have done undisturbed in the time that they
	// lived.
	Goodput *float64 `json:"goodput,omitempty"`
}

// Store keeps final models, and the states that lead to them.
type Store interface {
	// Finished returns the model of a job that is done already, or nil.
	Finished(jobDigest string) (*ModelInfo, error)
	// Fits says, before anything is computed, why a final model of so many bytes could never be kept.
	Fits(bytes int) error
	// Save writes the model, then its description, each atomically. check is asked just before the names appear:
	// an error of it means that another master has taken over. It returns where the files are.
	Save(ctx context.Context, model []byte, info ModelInfo, run RunInfo, check func(context.Context) error) (files []string, err error)

	// KeepsCheckpoints reports whether it has a place for states of so many bytes.
	KeepsCheckpoints(bytes int) bool
	// Checkpoints lists those of a lineage, in any order.
	Checkpoints(lineage string) ([]StoredCheckpoint, error)
	// SaveCheckpoint writes one atomically, and removes the oldest where there are too many. check is asked as by Save.
	SaveCheckpoint(ctx context.Context, name CheckpointName, file []byte, check func(context.Context) error) error
	// WithdrawCheckpoints gives those of the steps that are there names by which Checkpoints does not list them, and
	// returns the old ones, for messages.
	WithdrawCheckpoints(ctx context.Context, lineage string, steps []int64) (paths []string, err error)

	// SaveReport writes the page of a run that is over, where there is a place for it, over that of an earlier one. It
	// returns where it is; "" where there is no place. check is asked as by Save.
	SaveReport(ctx context.Context, name ReportName, page []byte, check func(context.Context) error) (file string, err error)
}

// ReportName is whose report it is.
type ReportName struct {
	Job        string // digest
	Generation int64  // of the master that writes it
}

type savedModel struct {
	info ModelInfo
	err  error
}

// save writes the final model beside the loop, so that a slow disk does not look like a dead master.
func (m *Master) save() {
	info, run, state := m.describe(), m.run(), slices.Clone(m.state)
	m.saving.Go(func() {
		ctx, cancel := context.WithTimeout(m.writing, saveTimeout)
		defer cancel()
		m.files.Lock()
		defer m.files.Unlock()
		file, sum, err := m.encodeModel(state)
		if err == nil {
			info.SHA256 = sum
			info.Files, err = m.cfg.Store.Save(ctx, file, info, run, m.cfg.Fence.Check)
		}
		m.saved <- savedModel{info, err}
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
func (m *Master) modelBytes() (int, error) {
	var size counter
	err := safetensors.Write(&size, m.network.Export(m.state), nil)
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
		LastWorker: m.core.LastWorkerID(), Kernel: m.cfg.Job.Kernel.Name, Goodput: m.newest.Goodput, EvaluationSeconds: m.evaluations.took.Seconds(),
	}
}
