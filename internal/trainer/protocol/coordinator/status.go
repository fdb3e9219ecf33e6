package coordinator

import "cmp"

// Status is what users see of the run.
type Status struct {
	Phase       Phase
	Step        int64
	Reason      string // why it cannot save, why it failed, or what it waits for
	Min, Max    int
	Preemptions int
	ModelSHA256 string
	AllReduce   bool           // the workers add the gradients themselves
	Workers     []WorkerStatus // by number
}

// WorkerStatus is one worker.
type WorkerStatus struct {
	Worker    int
	Pod       string // its pod's name; "" for the usual one
	State     WorkerState
	Minimum   bool
	Reason    string // why it is pending; how it was lost, if it is starting again
	Gradients int64  // virtual workers of steps that it contributed
}

// WorkerState is the state of a worker, in the words of a job's status.
type WorkerState string

// The states, in the usual order.
const (
	WorkerPending  WorkerState = "pending"  // its pod does not run
	WorkerStarting WorkerState = "starting" // its process runs
	WorkerJoining  WorkerState = "joining"  // it receives the current state
	WorkerReady    WorkerState = "ready"    // it can be assigned work
)

// Status returns the state of the run as of the last event.
func (c *Coordinator) Status() Status {
	s := Status{
		Phase:       c.phase,
		Step:        c.step,
		Reason:      c.reason,
		Min:         c.pods.min,
		Max:         c.pods.max,
		Preemptions: c.pods.preemptions,
		ModelSHA256: c.finalHash,
		AllReduce:   c.allReduce != nil,
	}
	if c.phase == Waiting {
		s.Reason = c.recoveryReason()
	}
	seen := map[int]WorkerStatus{}
	for id, p := range c.pods.byWorker {
		if p.retiring {
			continue // no replacement is needed for it; while it computes it is a member
		}
		w := WorkerStatus{Worker: id, Pod: p.name, State: WorkerPending, Minimum: p.minimum, Reason: p.reason}
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
func (c *Coordinator) LastWorkerID() int { return c.pods.lastID }
