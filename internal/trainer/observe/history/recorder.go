package history

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// Recorder is a history that one goroutine writes and others read. Its times are the clock's.
type Recorder struct {
	Received, Sent atomic.Int64 // bytes of messages from and to workers

	mu      sync.Mutex
	history *History
	alive   time.Time
}

// NewRecorder begins to record a job.
func NewRecorder(job Job) *Recorder {
	now := time.Now()
	return &Recorder{history: New(job, now), alive: now}
}

// Snapshot is the history up to now, to keep.
func (r *Recorder) Snapshot() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.history.clone()
	h.Received, h.Sent = r.Received.Load(), r.Sent.Load()
	return h
}

// Alive is when Tick was called last.
func (r *Recorder) Alive() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alive
}

// Tick says that the master's loop goes on.
func (r *Recorder) Tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive = time.Now()
}

// Stepped is History.Stepped, now.
func (r *Recorder) Stepped(s Step) { r.now(func(h *History, at time.Time) { h.Stepped(at, s) }) }

// Met is History.Met, now.
func (r *Recorder) Met(e coordinator.Event) { r.now(func(h *History, at time.Time) { h.Met(at, e) }) }

// Noticed is History.Noticed, now.
func (r *Recorder) Noticed(n coordinator.Notice) {
	r.now(func(h *History, at time.Time) { h.Noticed(at, n) })
}

// Checkpointed is History.Checkpointed, now.
func (r *Recorder) Checkpointed() { r.now((*History).Checkpointed) }

// Finished is History.Finished, now.
func (r *Recorder) Finished(how string) {
	r.now(func(h *History, at time.Time) { h.Finished(at, how) })
}

// Reported is History.Reported, now. It returns the status with the goodput in it.
func (r *Recorder) Reported(s trainingjob.Status) trainingjob.Status {
	r.now(func(h *History, at time.Time) {
		h.Reported(at, s)
		s = h.Status
	})
	return s
}

func (r *Recorder) now(do func(*History, time.Time)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do(r.history, time.Now())
}
