package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/group"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/schedule"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/framework"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
)

// member is a script whose gradients are exchanged by collectives of its own, and what this process knows of it. It
// lives as long as the worker, over all streams. The script runs in one process or several, each of which is a rank of
// the process group. To the master they are one member: it is ready, has reduced, or is idle when all of them are.
type member struct {
	worker    int
	processes []*process // by their local ranks
	reports   chan report
	closed    chan struct{}
	readers   sync.WaitGroup

	address    string // of the store of the first process; "" until all are ready
	held, of   int64  // of the first process; of is apart if others hold another state
	checkpoint int64
	finishing  bool

	generation  int64 // in which the script is; 0 while it waits
	rank, world int   // of this worker, among workers
	step        int64 // that it computes
	aborted     bool  // one process has left the generation, and the others have been instructed to
	reason      string
}

// process is one process of a member's script. It and this process say lines of JSON to each other: instruction and
// report. python/elastic_training/collectives.py is the other side.
type process struct {
	script     *framework.Script
	to         io.Writer    // its connection
	lastAnswer atomic.Int64 // to a ping, in nanoseconds since 1970

	store      string // "" until it is ready
	held, of   int64
	checkpoint int64
	idle       bool // it has left the member's generation
	reduced    *report
	ended      bool // with exit code 0, as it should
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
	m := &member{
		worker: w.cfg.ID, processes: make([]*process, j.Spec.Processes()), reports: make(chan report, 16), closed: make(chan struct{}),
		held: group.NoState, checkpoint: group.NoState,
	}
	starting, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	var all sync.WaitGroup
	for local := range m.processes {
		m.processes[local] = &process{held: group.NoState, checkpoint: group.NoState}
		options := job.ScriptOptions(j.Spec, name, j.ModelText, o)
		options.LocalRank, options.LocalWorld = local, len(m.processes)
		all.Go(func() { // each takes the time of its imports
			script, err := framework.StartScript(starting, options)
			if err != nil {
				failed(m.named(local, err))
			}
			m.processes[local].script = script
		})
	}
	all.Wait()
	if err := context.Cause(starting); err != nil {
		return nil, errors.Join(err, m.close())
	}
	t := j.Spec.Training
	first := instruction{
		Kind: "job", Seed: t.Seed, Steps: j.Schedule.Steps(), StepsPerEpoch: j.Schedule.StepsPerEpoch(), Records: j.Training.Records(),
		MinibatchSize: t.MinibatchSize, GradsToWait: t.GradsToWait, PerTask: j.Spec.Data.RecordsPerTask, Keep: j.Spec.Keep(), Worker: w.cfg.ID, Host: host,
	}
	if t.LearningRate != nil {
		first.LearningRate = *t.LearningRate
	}
	if root := j.Spec.CheckpointRoot(); root != "" {
		first.Checkpoints = filepath.Join(o.Resolve(root), j.Identity.Lineage[:8])
	}
	for local, p := range m.processes {
		p.to = p.script.Conn()
		m.readers.Go(func() { m.read(local, p) })
		if err := p.instruct(first); err != nil {
			return nil, errors.Join(err, m.close())
		}
	}
	return m, nil
}

// instruct sends a process an instruction. The end of the process is noticed elsewhere.
func (p *process) instruct(i instruction) error {
	text, err := json.Marshal(i)
	if err != nil {
		return err
	}
	_, err = p.to.Write(append(text, '\n'))
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// instructAll sends all processes an instruction, which make may change for each.
func (m *member) instructAll(i instruction, change func(local int, i *instruction)) error {
	for local, p := range m.processes {
		own := i
		if change != nil {
			change(local, &own)
		}
		if err := p.instruct(own); err != nil {
			return err
		}
	}
	return nil
}

// read receives the reports of a process until its connection ends.
func (m *member) read(local int, p *process) {
	pass := func(r report) {
		r.process = local
		select {
		case m.reports <- r:
		case <-m.closed:
		}
	}
	defer pass(report{Kind: processEnded})
	lines := bufio.NewScanner(p.script.Conn())
	lines.Buffer(nil, maxReport)
	for lines.Scan() {
		r := report{}
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			return
		}
		if r.Kind == "alive" {
			p.lastAnswer.Store(time.Now().UnixNano())
			continue
		}
		pass(r)
	}
}

// close ends the script and its readers.
func (m *member) close() error {
	close(m.closed)
	errs := make([]error, len(m.processes))
	var all sync.WaitGroup
	for local, p := range m.processes {
		if p.script != nil {
			all.Go(func() { errs[local] = p.script.Close() })
		}
	}
	all.Wait()
	m.readers.Wait()
	return errors.Join(errs...)
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

// failure explains why a process has ended, or why its connection has.
func (m *member) failure(local int) error {
	script := m.processes[local].script
	err := errors.New("the script has closed its connection")
	select {
	case <-script.Ended():
		if err = script.Err(); err == nil {
			err = errors.New("the script has ended with exit code 0 before the last step; it has to iterate over job.steps()")
		}
	case <-time.After(leaveTimeout):
	}
	return m.named(local, err)
}

// named adds to an error whose it is, where the script has several processes.
func (m *member) named(local int, err error) error {
	if len(m.processes) == 1 {
		return err
	}
	return fmt.Errorf("local rank %d: %w", local, err)
}

// share is a process's share of the step.
func (w *worker) share(local int) instruction {
	m := w.member
	s := w.job.Schedule.Step(m.step)
	i := instruction{
		Kind: "work", Generation: m.generation, Step: m.step, Epoch: s.Epoch, Virtual: len(s.Minibatches), StepRecords: s.Records,
		Minibatches: m.shareOf(local, s),
	}
	if next := m.step + 1; next < w.job.Schedule.Steps() {
		i.Following = m.shareOf(local, w.job.Schedule.Step(next))
	}
	return i
}

// shareOf is what a process computes in a step.
func (m *member) shareOf(local int, s schedule.Step) (share []minibatch) {
	n := len(m.processes)
	lo, hi := group.Share(len(s.Minibatches), m.world*n, m.rank*n+local)
	for v := lo; v < hi; v++ {
		share = append(share, minibatch{VirtualWorker: v, Records: s.Minibatches[v].Records})
	}
	return share
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
	PerTask       int    `json:"records_per_task,omitempty"`
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

	process int // whose line it is
}

// processEnded is the kind of the last report of a process, which is no line of it: it has ended, or its connection has.
const processEnded = "ended"
