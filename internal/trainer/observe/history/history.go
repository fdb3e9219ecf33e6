// Package history is what a running job remembers of itself for people: how loss and throughput went, who its workers
// were and how each of them ended, what happened, and the goodput. The page, the metrics and the terminal view are
// functions of it.
//
// It is bounded whatever the length of the run: curves are down-sampled, and of very many workers and notices the
// newest are kept. History itself is pure, with times given to it; a Recorder is one that a master writes while others
// read. It changes nothing of the run, and knows nothing that the run's result depends on.
package history

import (
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/disruption"
	split "github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/goodput"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// Limits of what is kept.
const (
	maxNotices = 120
	maxPhases  = 200

	maxEvaluations = 200
)

// Job is what does not change while a job runs.
type Job struct {
	Name        string
	Model       string
	Epochs      int
	Records     int // of an epoch
	Minibatch   int // records
	GradsToWait int // virtual workers
	Digest      string
	Kernel      string // of the master
}

// History is what is known of a run up to now. Times are durations since Began, when this master began. It is for one
// goroutine; its slices are never shared with a copy.
type History struct {
	Job    Job
	Began  time.Time
	Now    time.Duration // of the newest event
	Status trainingjob.Status

	Series  Series           // of loss and records
	Times   Times            // of steps
	Workers []*WorkerHistory // of workers, by their first appearance
	Dropped int              // lives of earlier workers that are kept no more
	Phases  []Phase          // one after the other
	Notices []Notice         // the newest, oldest first

	Evaluations []Evaluation // of this master's time; the newest, oldest first
	evaluated   int64        // the step of the newest that is known

	Over  bool   // the run is
	Ended string // and why, where that is to be said

	Steps       int64 // published by this master
	Records     int64 // of them
	Losses      int64 // workers that were lost, failed or were deleted, without those that were preempted
	Preemptions int64 // workers that were preempted, as seen by this master
	Received    int64 // bytes, from workers
	Sent        int64 // bytes, to workers
	Checkpoint  time.Time

	goodput goodput
	split   split.Tracker

	disruptions disruption.Tracker
	recovered   []trainingjob.Disruption // that are not reported yet
}

// Phase is a time during which the job was in one phase.
type Phase struct {
	Name     trainingjob.Phase
	From, To time.Duration
}

// Evaluation is one of the validation data, and when it was known.
type Evaluation struct {
	At time.Duration
	trainingjob.Measurement
}

// Notice is something that a person should see.
type Notice struct {
	At      time.Duration
	Warning bool
	Reason  string
	Message string
}

// New is the history of a job whose master begins now.
func New(job Job, began time.Time) *History {
	return &History{Job: job, Began: began, Series: newSeries(), goodput: goodput{last: -1}, split: split.Begin(job.Digest, began)}
}

// Resume continues the goodput phases and the disruptions of the job's earlier masters, before anything else is noted.
// earlier is the last status of theirs.
func (h *History) Resume(earlier trainingjob.Status) {
	h.split = split.Resume(earlier.GoodputSplit, h.Job.Digest, h.Began)
	h.disruptions = disruption.Resume(earlier, h.Job.Digest, h.Began)
}

// since is the time of a moment, which is never before the last one: clocks may be set back.
func (h *History) since(at time.Time) time.Duration {
	h.Now = max(h.Now, at.Sub(h.Began))
	return h.Now
}

// Step is one update of the model.
type Step struct {
	Records int
	LossSum float64 // over them
}

// OnStep notes that an update has been published.
func (h *History) OnStep(at time.Time, s Step) {
	now := h.since(at)
	h.Steps++
	h.disruptions.OnStep()
	h.Records += int64(s.Records)
	h.Series.add(now, Point{Steps: 1, Records: int64(s.Records), LossSum: s.LossSum})
	if took, ok := h.goodput.onStep(now); ok {
		h.Times.add(took)
	}
}

// OnStatus takes the newest status, and what it says of the workers.
func (h *History) OnStatus(at time.Time, s trainingjob.Status) {
	now := h.since(at)
	h.updatePhase(now, s.Phase)
	ready, live := 0, 0
	for _, w := range s.Workers {
		switch State(w.State) {
		case Ready:
			ready, live = ready+1, live+1
		case Starting, Joining:
			live++
		case Pending:
		}
	}
	h.goodput.onWorkers(now, s.Phase, ready, live)
	h.updateWorkers(now, s.Workers)
	h.addEvaluations(now, s)
	h.Status = s
	h.Status.Goodput = h.Goodput()
	h.split.Observe(h.Began.Add(now), s)
	h.Status.GoodputSplit = h.split.Split(h.Began.Add(now))
	h.recovered = append(h.recovered, h.disruptions.Observe(h.Began.Add(now), h.Status)...)
	h.Status.Disruptions = h.disruptions.Report()
}

// TakeRecovered are the disruptions that are recovered since it was called last.
func (h *History) TakeRecovered() []trainingjob.Disruption {
	taken := h.recovered
	h.recovered = nil
	return taken
}

func (h *History) updatePhase(now time.Duration, name trainingjob.Phase) {
	if n := len(h.Phases); n > 0 {
		h.Phases[n-1].To = now
		if h.Phases[n-1].Name == name {
			return
		}
	}
	h.Phases = append(h.Phases, Phase{Name: name, From: now, To: now})
	h.Phases = newest(h.Phases, maxPhases)
}

// addEvaluations takes what the status has of them that is new. What an earlier master evaluated has no time here.
func (h *History) addEvaluations(now time.Duration, s trainingjob.Status) {
	for _, m := range s.Evaluations {
		if m.Step <= h.evaluated {
			continue
		}
		h.evaluated = m.Step
		if h.Steps > 0 {
			h.Evaluations = newest(append(h.Evaluations, Evaluation{At: now, Measurement: m}), maxEvaluations)
		}
	}
}

// OnNotice notes what a person should see. Evaluations are known from the status.
func (h *History) OnNotice(at time.Time, n coordinator.Notice) {
	if n.Reason == coordinator.ReasonEvaluated {
		return
	}
	h.Notices = append(h.Notices, Notice{At: h.since(at), Warning: n.Warning, Reason: n.Reason, Message: n.Message})
	h.Notices = newest(h.Notices, maxNotices)
}

// OnCheckpoint notes that one has been written.
func (h *History) OnCheckpoint(at time.Time) {
	h.since(at)
	h.Checkpoint = at
}

// OnFinish notes how the run ended.
func (h *History) OnFinish(at time.Time, how string) {
	now := h.since(at)
	h.Over, h.Ended = true, how
	h.updatePhase(now, h.Status.Phase)
	for _, l := range h.Workers {
		l.end(now)
	}
}

// Goodput is design/quality's: the steps done, over those that the same workers would have done undisturbed in the time
// that they lived. Nil while it cannot be said.
func (h *History) Goodput() *float64 { return h.goodput.value(h.Now) }

// clone shares nothing with h.
func (h *History) clone() *History {
	c := *h
	c.Series = h.Series.clone()
	c.Phases, c.Notices = slices.Clone(h.Phases), slices.Clone(h.Notices)
	c.Evaluations = slices.Clone(h.Evaluations)
	c.Workers = make([]*WorkerHistory, len(h.Workers))
	for i, l := range h.Workers {
		life := *l
		life.Intervals, life.Interruptions = slices.Clone(l.Intervals), slices.Clone(l.Interruptions)
		c.Workers[i] = &life
	}
	c.split = h.split.Clone()
	c.disruptions, c.recovered = h.disruptions.Clone(), nil
	c.goodput.durations = slices.Clone(h.goodput.durations)
	return &c // the status is replaced as a whole, never changed
}

// newest are the last n.
func newest[T any](all []T, n int) []T {
	if len(all) <= n {
		return all
	}
	return slices.Delete(all, 0, len(all)-n)
}

// Rate is how many steps and records there are in a second, of late; 0 while that cannot be said. now is since Began.
func (h *History) Rate(now time.Duration) (steps, records float64) {
	window := max(rateOver, 4*h.Times.Mean())
	first := max(0, int((now-window)/h.Series.Width))
	if first >= len(h.Series.Points) {
		return 0, 0
	}
	var sum Point
	for _, p := range h.Series.Points[first:] {
		sum.add(p)
	}
	over := (now - time.Duration(first)*h.Series.Width).Seconds()
	if sum.Steps < 2 || over <= 0 {
		return 0, 0
	}
	return float64(sum.Steps) / over, float64(sum.Records) / over
}

// rateOver is the time over which speed is said, where steps are fast.
const rateOver = 5 * time.Second

// Left is how long the steps to come will take at the speed of late.
func (h *History) Left() (left time.Duration, known bool) {
	steps, _ := h.Rate(h.Now)
	todo := h.Status.StepsTotal - h.Status.StepsDone
	if todo <= 0 {
		return 0, false
	}
	return wording.Remaining(float64(todo), steps)
}
