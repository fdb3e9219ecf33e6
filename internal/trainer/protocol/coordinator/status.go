package coordinator

import "cmp"

// Status is what a person should know of the run.
type Status struct {
	Phase       Phase
	Step        int64
	Reason      string // why it cannot save, why it failed, or what keeps it from beginning
	Min, Max    int
	Preemptions int
	ModelSHA256 string
	AllReduce   bool           // the workers add the gradients between themselves
	Workers     []WorkerStatus // by number
}

// WorkerStatus is one worker.
type WorkerStatus struct {
	Worker    int
	Pod       string // its pod's name; "" for the usual one
	State     WorkerState
	Floor     bool
	Reason    string // why it is pending; of one that is starting again, how it was lost
	Gradients int64  // virtual workers of steps taken from it
}

// WorkerState is how far a worker is, in the words of a job's status.
type WorkerState string

// The states, in the usual order.
const (
	WorkerPending  WorkerState = "pending"  // its pod does not run
	WorkerStarting WorkerState = "starting" // its process runs
	WorkerJoining  WorkerState = "joining"  // it is brought up to date
	WorkerReady    WorkerState = "ready"    // it is dealt work
)

// Status returns the state of the run as of the last event.
func (c *Coordinator) Status() Status {
	s := Status{Phase: c.phase, Step: c.step, Reason: c.reason, Min: c.min, Max: c.max, Preemptions: c.preemptions, ModelSHA256: c.finalHash, AllReduce: c.group != nil}
	if c.phase == Waiting {
		s.Reason = c.unsettledReason()
	}
	seen := map[int]WorkerStatus{}
	for id, p := range c.pods {
		if p.retiring {
			continue // nobody waits for it any more; while it computes it is a member
		}
		w := WorkerStatus{Worker: id, Pod: p.name, State: WorkerPending, Floor: p.floor, Reason: p.reason}
		if p.state == PodRunning {
			w.State, w.Reason = WorkerStarting, cmp.Or(p.reason, p.left)
		}
		seen[id] = w
	}
	for id, m := range c.members {
		w := seen[id]
		w.Worker, w.State, w.Reason, w.Gradients = id, WorkerJoining, "", m.gradients
		if m.ready {
			w.State = WorkerReady
		}
		seen[id] = w
	}
	for _, id := range sortedKeys(seen) {
		s.Workers = append(s.Workers, seen[id])
	}
	return s
}

// StepsDone is the number of updates applied.
func (c *Coordinator) StepsDone() int64 { return c.step }

// LastWorkerID is the highest worker number ever used.
func (c *Coordinator) LastWorkerID() int { return c.lastID }
