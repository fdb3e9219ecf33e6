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

	mu       sync.Mutex
	history  *History
	lastTick time.Time
}

// NewRecorder begins to record a job.
func NewRecorder(job Job) *Recorder {
	now := time.Now()
	return &Recorder{history: New(job, now), lastTick: now}
}

// Snapshot is the history up to now, to keep.
func (r *Recorder) Snapshot() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.history.clone()
	h.Received, h.Sent = r.Received.Load(), r.Sent.Load()
	return h
}

// LastTick is when Tick was called last.
func (r *Recorder) LastTick() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastTick
}

// Tick reports that the master's loop continues.
func (r *Recorder) Tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastTick = time.Now()
}

// Resume is History.Resume.
func (r *Recorder) Resume(earlier trainingjob.Status) {
	r.record(func(h *History, _ time.Time) { h.Resume(earlier) })
}

// OnStep is History.OnStep, now.
func (r *Recorder) OnStep(s Step) { r.record(func(h *History, at time.Time) { h.OnStep(at, s) }) }

// OnEvent is History.OnEvent, now.
func (r *Recorder) OnEvent(e coordinator.Event) {
	r.record(func(h *History, at time.Time) { h.OnEvent(at, e) })
}

// OnRetire is History.OnRetire, now.
func (r *Recorder) OnRetire(worker int) {
	r.record(func(h *History, _ time.Time) { h.OnRetire(worker) })
}

// TakeRecovered is History.TakeRecovered.
func (r *Recorder) TakeRecovered() (taken []trainingjob.Disruption) {
	r.record(func(h *History, _ time.Time) { taken = h.TakeRecovered() })
	return taken
}

// OnNotice is History.OnNotice, now.
func (r *Recorder) OnNotice(n coordinator.Notice) {
	r.record(func(h *History, at time.Time) { h.OnNotice(at, n) })
}

// OnCheckpoint is History.OnCheckpoint, now.
func (r *Recorder) OnCheckpoint() { r.record((*History).OnCheckpoint) }

// OnFinish is History.OnFinish, now.
func (r *Recorder) OnFinish(how string) {
	r.record(func(h *History, at time.Time) { h.OnFinish(at, how) })
}

// OnStatus is History.OnStatus, now. It returns the status with the goodput and the disruptions in it.
func (r *Recorder) OnStatus(s trainingjob.Status) trainingjob.Status {
	r.record(func(h *History, at time.Time) {
		h.OnStatus(at, s)
		s = h.Status
	})
	return s
}

func (r *Recorder) record(do func(*History, time.Time)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do(r.history, time.Now())
}
