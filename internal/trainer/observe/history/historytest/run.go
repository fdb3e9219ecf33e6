// Package historytest simulates the histories of runs, for tests of what shows them.
package historytest

import (
	"fmt"
	"math"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// Began is when every run begins.
var Began = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

const (
	beat         = 100 * time.Millisecond
	stepsTotal   = 6000
	perStep      = 3 * beat // with all workers
	startsFor    = 600 * time.Millisecond
	joinsFor     = 400 * time.Millisecond
	roomAfter    = 25 * time.Second // for the replacement of a preempted worker
	disturbances = 40 * time.Second // between two of them
)

// Run is a simulated run with so many workers, up to a time. One after the other they are preempted, lost, or fail, and
// are replaced: one of them every forty seconds.
type Run struct {
	History *history.History
	job     history.Job
	want    int
	workers []*worker
	next    int
	done    float64 // steps
	taken   int
	now     time.Duration
	status  trainingjob.Status
}

type worker struct {
	id        int
	created   time.Duration
	room      time.Duration // when it has
	gradients int64
}

// NewRun simulates a run with workers up to a time, or its last step.
func NewRun(workers int, until time.Duration) *Run {
	s := Begin("low-prio-job", workers)
	for s.now < until && s.done < stepsTotal {
		s.Beat()
	}
	return s
}

// Begin is a run before its first moment.
func Begin(name string, workers int) *Run {
	job := history.Job{
		Name: name, Model: "mnist_functional_api", Epochs: 3, Records: 60000, Minibatch: 10, GradsToWait: workers,
		Digest: "15e64d5f87a3367a27c01f94f37fc45992e81b5454403117af9cd6347502e7f6", Kernel: "avx512",
	}
	s := &Run{
		History: history.New(job, Began), job: job, want: workers,
		status: trainingjob.Status{Phase: trainingjob.PhaseWaiting, Generation: 1, StepsTotal: stepsTotal},
	}
	for range workers {
		s.create(time.Duration(s.next) * beat)
	}
	return s
}

func (s *Run) create(room time.Duration) {
	s.workers = append(s.workers, &worker{id: s.next, created: s.now, room: s.now + room})
	s.next++
}

// Beat continues for a tenth of a second.
func (s *Run) Beat() {
	s.now += beat
	at := Began.Add(s.now)
	if s.now%disturbances == 0 {
		s.disturb(at)
	}
	ready := 0
	s.status.Workers, s.status.WorkersRunning, s.status.WorkersPending = nil, 0, 0
	for _, w := range s.workers {
		state, reason := s.state(w)
		switch state {
		case history.Ready:
			ready++
			s.status.WorkersRunning++
		case history.Joining:
			s.status.WorkersRunning++
		default:
			s.status.WorkersPending++
		}
		s.status.Workers = append(s.status.Workers, trainingjob.WorkerStatus{
			ID: w.id, Pod: trainingjob.WorkerName(s.job.Name, w.id), State: string(state), Reason: reason, Gradients: w.gradients,
		})
	}
	s.status.Phase, s.status.Message = trainingjob.PhaseRunning, ""
	s.status.GoodputSplit = &trainingjob.GoodputSplit{Phase: trainingjob.GoodputComputing}
	if ready == 0 {
		s.status.Phase, s.status.Message = trainingjob.PhaseWaiting, "0 of at least 1 workers are ready"
		s.status.GoodputSplit.Phase = trainingjob.GoodputRecovering
	}
	s.History.OnStatus(at, s.status)
	s.train(at, ready)
}

func (s *Run) state(w *worker) (state history.State, reason string) {
	switch since := s.now - w.room; {
	case since < 0:
		return history.Pending, "Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."
	case since < startsFor:
		return history.Starting, ""
	case since < startsFor+joinsFor:
		return history.Joining, ""
	}
	return history.Ready, ""
}

// train publishes the steps of a beat: fewer workers share the same virtual workers.
func (s *Run) train(at time.Time, ready int) {
	if ready == 0 {
		return
	}
	before := int64(s.done)
	share := math.Ceil(float64(s.want) / float64(ready))
	s.done = min(stepsTotal, s.done+float64(beat)/float64(perStep)/share)
	for step := before; step < int64(s.done); step++ {
		loss := 0.08 + 2.2*math.Exp(-float64(step)/160) + 0.05*math.Sin(float64(step)*1.7)
		s.History.OnStep(at, history.Step{Records: s.want * s.job.Minibatch, LossSum: loss * float64(s.want*s.job.Minibatch)})
		s.status.Loss, s.status.StepsDone = &loss, step+1
		s.status.Metrics = map[string]float64{"accuracy": 1 - loss/2.5}
		s.status.Epoch = int(3 * step / stepsTotal)
		for _, w := range s.workers {
			if state, _ := s.state(w); state == history.Ready {
				w.gradients++
			}
		}
		if (step+1)%100 == 0 {
			s.status.Evaluations = append(s.status.Evaluations, trainingjob.Measurement{Step: step + 1, Loss: loss * 1.1, Metrics: map[string]float64{"accuracy": 0.97 - loss/2.5}, Records: 10000})
		}
		if (step+1)%200 == 0 {
			s.History.OnCheckpoint(at)
			s.status.CheckpointStep = step + 1
		}
	}
}

// disturb takes the worker that has been there longest, each time in another way.
func (s *Run) disturb(at time.Time) {
	w := s.workers[0]
	s.workers = s.workers[1:]
	s.taken++
	event := coordinator.PodChanged{Worker: w.id, State: coordinator.PodEnded, Reason: "OOMKilled, exit code 137"}
	room := time.Second
	switch s.taken % 3 {
	case 1:
		event = coordinator.PodChanged{Worker: w.id, State: coordinator.PodRunning, Terminating: true, Preempted: true, Reason: "preempted by default/high-prio-job-worker-0 on node node-1"}
		event.Cause = trainingjob.DisruptionCause{
			Kind: trainingjob.DisruptionPreempted, Pod: trainingjob.WorkerName(s.job.Name, w.id), Reason: "PreemptionByScheduler", By: "pod default/high-prio-job-worker-0",
		}
		room = roomAfter
		s.status.Preemptions++
		s.notice(at, true, "WorkerPreempted", "worker %d was preempted at step %d; it is replaced as soon as there is capacity", w.id, s.status.StepsDone)
	case 2:
		s.History.OnEvent(at, coordinator.Lost{Worker: w.id, Reason: "was lost: connection reset by peer"})
		event.Disrupted = true
		s.notice(at, false, "WorkerLeft", "worker %d was lost: connection reset by peer at step %d; %d left", w.id, s.status.StepsDone, len(s.workers))
	case 0:
		s.notice(at, true, "WorkerFailed", "worker %d failed: OOMKilled, exit code 137", w.id)
	}
	s.History.OnEvent(at, event)
	s.create(room)
}

func (s *Run) notice(at time.Time, warning bool, reason, format string, args ...any) {
	s.History.OnNotice(at, coordinator.Notice{Warning: warning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// Succeed ends the run well.
func (s *Run) Succeed() *history.History {
	at := Began.Add(s.now)
	s.status.Phase, s.status.Message = trainingjob.PhaseSucceeded, ""
	s.status.StepsDone, s.status.Epoch = s.status.StepsTotal, s.job.Epochs-1
	s.status.ModelSHA256 = "30fcd152bdb9818f28f73b8692d1a67d0b04c1115d4fb90e7ae3af6f46268ed0"
	s.status.OutputFiles = []string{"/output/low-prio-job/15e64d5f/model.safetensors"}
	s.History.OnStatus(at, s.status)
	s.History.OnFinish(at, "")
	return s.History
}
