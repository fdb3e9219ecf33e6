package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/group"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/schedule"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/framework"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
)

// member is a script whose gradients are exchanged by collectives of its own, and what this process knows of it. It lives
// as long as the worker, over all streams. The script and this process say lines of JSON to each other: instruction and
// report. python/elastic_training/collectives.py is the other side.
type member struct {
	script  *framework.Script
	reports chan report // closed when the script has ended, or its connection
	alive   chan struct{}

	address    string // of the script's store; "" until it is ready
	held, of   int64
	checkpoint int64
	finishing  bool

	generation  int64 // in which the script is; 0 while it waits
	rank, world int
	step        int64 // that it computes
}

// instruction is a line to the script. Kind says which of the fields there are.
type instruction struct {
	Kind string `json:"kind"`

	// Of "job", the first.
	Seed          uint64 `json:"seed,omitempty"`
	Steps         int64  `json:"steps,omitempty"`
	StepsPerEpoch int64  `json:"steps_per_epoch,omitempty"`
	Records       int64  `json:"records,omitempty"` // of an epoch
	MinibatchSize int    `json:"minibatch_size,omitempty"`
	GradsToWait   int    `json:"grads_to_wait,omitempty"`
	LearningRate  any    `json:"learning_rate,omitempty"`
	Checkpoints   string `json:"checkpoints,omitempty"` // their directory
	Keep          int    `json:"keep,omitempty"`
	Worker        int    `json:"worker"`
	Host          string `json:"host,omitempty"` // the address at which other workers reach this one

	// Of "begin", and the generation of all that follow it.
	Generation int64  `json:"generation,omitempty"`
	Rank       int    `json:"rank"`
	World      int    `json:"world,omitempty"`
	Store      string `json:"store,omitempty"`
	Source     int    `json:"source"`
	Load       bool   `json:"load,omitempty"`
	Broadcast  bool   `json:"broadcast,omitempty"`

	// Of "begin", "work", "commit" and "save".
	Step int64 `json:"step"`

	// Of "work": this rank's share of the step, and of the one after if no worker comes or goes, to read it ahead.
	Epoch       int         `json:"epoch"`
	Minibatches []minibatch `json:"minibatches,omitempty"`
	Following   []minibatch `json:"following,omitempty"`
	Virtual     int         `json:"virtual_workers,omitempty"` // of the whole step
	StepRecords int         `json:"step_records,omitempty"`

	// Of "commit" and "finish".
	Last  bool `json:"last,omitempty"`
	Save  bool `json:"save,omitempty"`
	Saver bool `json:"saver,omitempty"`
}

// minibatch is what one virtual worker computes.
type minibatch struct {
	VirtualWorker int     `json:"virtual_worker"`
	Records       []int64 `json:"records"`
}

// report is a line of the script.
type report struct {
	Kind       string  `json:"kind"` // ready, idle, reduced, saved, diverged, alive
	Store      string  `json:"store"`
	Held       int64   `json:"held"`
	Of         int64   `json:"of"`
	Checkpoint int64   `json:"checkpoint"`
	Generation int64   `json:"generation"`
	Step       int64   `json:"step"`
	LossSum    float64 `json:"loss_sum"`
	Records    int64   `json:"records"`
	Reason     string  `json:"reason"`
}

// Times of a script.
const (
	// pingInterval is the time between two questions whether a script lives, and pingTimeout how long the answer may take:
	// a thread of the script answers whatever the others compute, unless the process is stopped.
	pingInterval = time.Second
	pingTimeout  = 30 * time.Second
	// maxReport is the longest line of a script.
	maxReport = 1 << 20
)

// startMember runs the job's script.
func (w *worker) startMember(ctx context.Context, name string, host string) (*member, error) {
	j, o := w.job, w.cfg.Job
	script, err := framework.StartScript(ctx, job.ScriptOptions(j.Spec, name, j.ModelText, o))
	if err != nil {
		return nil, err
	}
	m := &member{script: script, reports: make(chan report, 16), alive: make(chan struct{}, 1), held: group.NoState, checkpoint: group.NoState}
	go m.read()
	t := j.Spec.Training
	first := instruction{
		Kind: "job", Seed: t.Seed, Steps: j.Schedule.Steps(), StepsPerEpoch: j.Schedule.StepsPerEpoch(), Records: j.Training.Records(),
		MinibatchSize: t.MinibatchSize, GradsToWait: t.GradsToWait, Keep: j.Spec.Keep(), Worker: w.cfg.ID, Host: host,
	}
	if t.LearningRate != nil {
		first.LearningRate = *t.LearningRate
	}
	if root := j.Spec.CheckpointRoot(); root != "" {
		first.Checkpoints = filepath.Join(o.Resolve(root), j.Identity.Lineage[:8])
	}
	return m, m.tell(first)
}

// tell sends the script an instruction. The end of the script is noticed elsewhere.
func (m *member) tell(i instruction) error {
	text, err := json.Marshal(i)
	if err != nil {
		return err
	}
	_, err = m.script.Conn().Write(append(text, '\n'))
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// read receives the script's reports until its connection ends.
func (m *member) read() {
	defer close(m.reports)
	lines := bufio.NewScanner(m.script.Conn())
	lines.Buffer(nil, maxReport)
	for lines.Scan() {
		r := report{}
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			return
		}
		if r.Kind == "alive" {
			select {
			case m.alive <- struct{}{}:
			default:
			}
			continue
		}
		m.reports <- r
	}
}

// close ends the script and its reader.
func (m *member) close() error {
	err := m.script.Close()
	for range m.reports { //nolint:revive // nobody else reads them any more
	}
	return err
}

// closeMember ends the script, if there is one.
func (w *worker) closeMember() {
	if w.member == nil {
		return
	}
	if err := w.member.close(); err != nil {
		w.log.Warn("ending the script", "error", err)
	}
}

// failure explains why the script has ended, or why its connection has.
func (m *member) failure() error {
	select {
	case <-m.script.Ended():
		if err := m.script.Err(); err != nil {
			return err
		}
		return errors.New("the script has ended with exit code 0 before the last step; it has to iterate over job.steps()")
	case <-time.After(leaveTimeout):
		return errors.New("the script has closed its connection")
	}
}

// share is this rank's share of the step.
func (w *worker) share() instruction {
	m := w.member
	s := w.job.Schedule.Step(m.step)
	i := instruction{
		Kind: "work", Generation: m.generation, Step: m.step, Epoch: s.Epoch, Virtual: len(s.Minibatches), StepRecords: s.Records,
		Minibatches: m.shareOf(s),
	}
	if next := m.step + 1; next < w.job.Schedule.Steps() {
		i.Following = m.shareOf(w.job.Schedule.Step(next))
	}
	return i
}

// shareOf is what this rank computes in a step.
func (m *member) shareOf(s schedule.Step) (share []minibatch) {
	lo, hi := group.Share(len(s.Minibatches), m.world, m.rank)
	for v := lo; v < hi; v++ {
		share = append(share, minibatch{VirtualWorker: v, Records: s.Minibatches[v].Records})
	}
	return share
}
