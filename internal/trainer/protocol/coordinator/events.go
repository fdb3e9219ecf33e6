package coordinator

import (
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// Event is something that happened.
type Event interface{ event() }

// The events.
type (
	// Start is the first event, after the PodChanged events of pods that were there before.
	Start struct{}

	// Hello is a worker that has loaded the job, and what it holds. OwnHash is the hash of the master's state if that is
	// of Step too, and means nothing otherwise.
	Hello struct {
		Worker   int
		Identity Identity
		Step     int64 // updates applied to its state
		Hash     string
		OwnHash  string
		Machine  Machine // that it computes on
		Computed []Span  // sums of Step that it has computed for an earlier master
	}

	// Applied reports that a worker's state is at Step.
	Applied struct {
		Worker int
		Step   int64
	}

	// Gradient is the sum over virtual workers Lo ≤ v < Hi of a step, received in full. Hashes are of the results of each
	// of them before they were added: gradient, statistics and loss; nil where they are not known.
	Gradient struct {
		Worker   int
		Step     int64
		Lo, Hi   int
		Hashes   []uint32
		HashOnly bool // there is no sum: in an all-reduce round, workers report only hashes for checks
		Payload  any  // the sum itself, which the coordinator hands back in Accept
	}

	// EvaluationPart is the result of one range of validation data at the state after Step updates.
	EvaluationPart struct {
		Worker  int
		Step    int64
		Part    int
		Payload any // the result itself, which the coordinator hands back in AcceptEvaluation
	}

	// Unreachable reports that a worker cannot send to another one, a peer of a round.
	Unreachable struct {
		Worker, Peer int
		Round        int64
		Reason       string
	}

	// Leaving is a worker that was signalled to terminate while it takes part in an all-reduce round. It exits when the
	// step in flight is complete, upon a Dismiss.
	Leaving struct{ Worker int }

	// Left is a worker that terminates in good order: it has sent all its results.
	Left struct{ Worker int }

	// Lost is a worker whose stream broke or that broke the protocol. The end of a stream after a last message, in either
	// direction, has the reason LostInOrder.
	Lost struct {
		Worker int
		Reason string
		Fault  bool // the worker, or its work, caused this, and the same may well happen again when it comes back
		Broken bool // its stream broke, and the worker may connect again
	}

	// Overflow is a worker that reads too slowly: the queue of messages to it was full and has been emptied.
	Overflow struct{ Worker int }

	// Behind reports whether the master has yet to apply several updates that it has published. No further step is
	// completed meanwhile, so that updates do not pile up.
	Behind struct{ Is bool }

	// StateHash is the hash of a worker's state at Step; with Worker −1, of the master's.
	StateHash struct {
		Worker int
		Step   int64
		Hash   string
	}

	// StateFetched is the state that a FetchState requested, received in full, and its hash.
	StateFetched struct {
		Worker  int
		Step    int64
		Hash    string
		Payload any // the state itself, which the coordinator hands back in AdoptState
	}

	// PodChanged is the newest known state of a worker's pod or process.
	PodChanged struct {
		Worker      int
		State       PodState
		Name        string // the pod's; "" for the usual name of a worker with this number
		Minimum     bool   // it is one of the minimum's pods, with their priority class
		Terminating bool   // it is being deleted
		Preempted   bool   // … by the scheduler or the queue, for a pod or job of higher priority
		Reason      string // why it is pending, or why it ended
		Disrupted   bool   // it ended for an external reason: deleted, preempted, SIGTERM, node lost

		Cause trainingjob.DisruptionCause // why it is terminating, or ended, for the record
	}

	// Resize is the user's new minimum and maximum of workers.
	Resize struct{ Min, Max int }

	// CheckpointRequested asks for a checkpoint of the newest state, now.
	CheckpointRequested struct{}

	// CheckpointWritten reports that the state of Step is on disk.
	CheckpointWritten struct{ Step int64 }

	// CheckpointNotWritten reports that writing it failed.
	CheckpointNotWritten struct {
		Step   int64
		Reason string
	}

	// ModelSaved reports that the final model and its description are on disk.
	ModelSaved struct{ SHA256 string }

	// ModelNotSaved reports that writing them failed.
	ModelNotSaved struct{ Reason string }

	// Unhealthy fails the job: a loss that is not finite, or data that changed during the run.
	Unhealthy struct{ Reason string }

	// Fenced reports that another master has taken over; its generation is the fencing token.
	Fenced struct{ Reason string }

	// Stop is SIGTERM to the master.
	Stop struct {
		Cause    StopCause
		ItsCause trainingjob.DisruptionCause // why its pod ends, for the record
	}

	// Tick is the passing of 100 ms. Heard lists the workers from which a frame came since the last tick. Late means that
	// the tick itself came more than 500 ms late: then the master was paused, and the silence of workers means nothing.
	Tick struct {
		Heard []int
		Late  bool
	}

	// Clock sets the time, since any fixed moment. It comes before each event whose latency matters, and at Deadline. A
	// run without Clock events has no speculation.
	Clock struct{ At time.Duration }
)

// LostInOrder is the Reason of a Lost that was expected.
const LostInOrder = "ended"

// Span is the virtual workers Lo ≤ v < Hi.
type Span struct{ Lo, Hi int }

// StopCause is why a master stops. It decides whether the workers stay: they do where the next master starts soon.
type StopCause int

// The causes. Without a master for long, workers would occupy their nodes for nothing.
const (
	Replaced  StopCause = iota // by another master at once, for instance because its node is drained
	Evicted                    // Kueue has evicted the Workload of the master and the minimum
	Suspended                  // the job was suspended
)

func (s StopCause) String() string {
	return [...]string{"the master is replaced", "the queue has evicted the master and the minimum workers", "the job is suspended"}[s]
}

// PodState is as much of a pod's phase as matters here.
type PodState int

// The states of a worker's pod.
const (
	PodPending PodState = iota
	PodRunning
	PodEnded // succeeded, failed, or no longer there
)

func (s PodState) String() string { return [...]string{"pending", "running", "ended"}[s] }

func (Start) event()                {}
func (Hello) event()                {}
func (Applied) event()              {}
func (Gradient) event()             {}
func (EvaluationPart) event()       {}
func (Unreachable) event()          {}
func (Leaving) event()              {}
func (Left) event()                 {}
func (Lost) event()                 {}
func (Overflow) event()             {}
func (Behind) event()               {}
func (StateHash) event()            {}
func (StateFetched) event()         {}
func (PodChanged) event()           {}
func (Resize) event()               {}
func (CheckpointRequested) event()  {}
func (CheckpointWritten) event()    {}
func (CheckpointNotWritten) event() {}
func (ModelSaved) event()           {}
func (ModelNotSaved) event()        {}
func (Unhealthy) event()            {}
func (Fenced) event()               {}
func (Stop) event()                 {}
func (Tick) event()                 {}
func (Clock) event()                {}

// Effect is something that has to be done.
type Effect interface{ effect() }

// The effects.
type (
	// Accept adds a Gradient to the sum of its step: it is the first result for its virtual workers.
	Accept struct {
		Worker  int
		Step    int64
		Lo, Hi  int
		Payload any // the Gradient's
	}

	// AcceptEvaluation uses an EvaluationPart: it is the first result for its range.
	AcceptEvaluation struct {
		Worker  int
		Step    int64
		Part    int
		Payload any // the EvaluationPart's
	}

	// Evaluated ends the evaluation at Step: all parts have come.
	Evaluated struct{ Step int64 }

	// Publish completes Step: apply the sum of its gradients, and send it to every subscribed worker, with what that
	// worker computes in the next step. With Hash the master and all workers hash the resulting state.
	Publish struct {
		Step int64
		Next map[int][]int // worker → virtual workers of Step+1
		Hash bool
	}

	// Round begins an all-reduce round: the owners compute a step and add its gradients themselves. Each computes what is
	// Assigned to it, unless it has that from an earlier round of the step, and finishes the sum of one slice, in the
	// order of Owners. Finished slices also go to the listeners, which are joining workers. With Hash all hash their state
	// first.
	Round struct {
		Number      int64 // greater than every earlier round's
		Step        int64
		Owners      []int
		Listeners   []int
		Assigned    map[int][]int // worker → virtual workers of Step
		HashReports map[int][]int // worker → those of its virtual workers whose hash it reports, as a Gradient
		Backups     map[int][]int // worker → those that it computes too, only to report the hash
		Hash        bool
	}

	// Relay makes a worker that has applied a step send its sum to others, as messages of Round.
	Relay struct {
		Round, Step int64
		From        int
		To          []int
	}

	// Advance reports that every worker has applied a step of an all-reduce. The master has not seen its sum.
	Advance struct{ Step int64 }

	// Assign assigns more virtual workers of the current step to a worker.
	Assign struct {
		Worker         int
		Step           int64
		VirtualWorkers []int
	}

	// Evaluate assigns ranges of validation data to a worker, for an evaluation at the state after Step updates. The
	// worker holds that state, or the updates to it are on their way.
	Evaluate struct {
		Worker int
		Step   int64
		Parts  []int
	}

	// SendState sends a worker the current state, and from then on every update.
	SendState struct{ Worker int }

	// SendUpdates sends a worker the retained updates from step From on, and from then on every update.
	SendUpdates struct {
		Worker int
		From   int64
	}

	// Subscribe sends a worker every update from now on: it holds the current state.
	Subscribe struct{ Worker int }

	// FetchState asks a worker for its state.
	FetchState struct{ Worker int }

	// AdoptState makes a fetched state the master's.
	AdoptState struct {
		Worker  int
		Step    int64
		Hash    string
		Payload any // the StateFetched's
	}

	// Refuse answers a hello with a reason and ends the stream.
	Refuse struct {
		Worker int
		Reason string
	}

	// Disconnect ends a worker's stream.
	Disconnect struct {
		Worker int
		Reason string
	}

	// Dismiss ends a worker, which exits 0: the job is over, or the step is complete after which the worker leaves.
	Dismiss struct{ Worker int }

	// CreatePod starts a worker.
	CreatePod struct {
		Worker  int
		Minimum bool
	}

	// DeletePod deletes a worker's pod; it receives SIGTERM.
	DeletePod struct {
		Worker int
		Reason string
	}

	// Checkpoint writes the current state, that of Step, to where the next master finds it. There is one at a time. The
	// newest checkpoint up to Trusted is never deleted: it remains if later ones are withdrawn.
	Checkpoint struct{ Step, Trusted int64 }

	// Withdraw makes the checkpoints of steps after After unusable, because a machine computes wrongly.
	Withdraw struct{ After int64 }

	// SaveModel writes the final model.
	SaveModel struct{}

	// Report writes the status now.
	Report struct{}

	// Notice is a message for users: a Kubernetes Event and a line of the log.
	Notice struct {
		Warning bool
		Reason  string // one word in CamelCase
		Message string
	}

	// Exit ends the master.
	Exit struct {
		Code   int
		Reason string
	}
)

// Reasons of Notices that report progress. Displays of the status may omit them, because the status shows the same.
const (
	ReasonCheckpointed = "Checkpointed"
	ReasonEvaluated    = "Evaluated"
	ReasonModelSaved   = "ModelSaved"
)

// ReasonRecovered is of a Notice that reports what a disruption cost. The record of disruptions gives it, no effect.
const ReasonRecovered = "Recovered"

// Exit codes of the master. Its Job ignores the second and gives up at the third.
const (
	ExitDone        = 0
	ExitInterrupted = 143
	ExitJobFailed   = 64
)

func (Accept) effect()           {}
func (AcceptEvaluation) effect() {}
func (Evaluated) effect()        {}
func (Publish) effect()          {}
func (Round) effect()            {}
func (Relay) effect()            {}
func (Advance) effect()          {}
func (Assign) effect()           {}
func (Evaluate) effect()         {}
func (SendState) effect()        {}
func (SendUpdates) effect()      {}
func (Subscribe) effect()        {}
func (FetchState) effect()       {}
func (AdoptState) effect()       {}
func (Refuse) effect()           {}
func (Disconnect) effect()       {}
func (Dismiss) effect()          {}
func (CreatePod) effect()        {}
func (DeletePod) effect()        {}
func (Checkpoint) effect()       {}
func (Withdraw) effect()         {}
func (SaveModel) effect()        {}
func (Report) effect()           {}
func (Notice) effect()           {}
func (Exit) effect()             {}
