package coordinator

import "time"

// Event is something that happened.
type Event interface{ event() }

// The events.
type (
	// Start is the first event, after the PodChanged events of pods that were there before.
	Start struct{}

	// Hello is a worker that has loaded the job and says what it holds. OwnHash is the hash of the master's own
	// state, at the coordinator's step.
	Hello struct {
		Worker   int
		Identity Identity
		Step     int64 // updates applied to its state
		Hash     string
		OwnHash  string
		Machine  Machine // that it computes on
		InHand   []Span  // sums of Step that it has computed for an earlier master
	}

	// Applied is a worker's word that its state is at Step.
	Applied struct {
		Worker int
		Step   int64
	}

	// Gradient is the sum over virtual workers Lo ≤ v < Hi of a step, received in full. Hashes are of what the worker has
	// computed for each of them before it added them up: gradient, statistics and loss; nil where that is not known.
	Gradient struct {
		Worker    int
		Step      int64
		Lo, Hi    int
		Hashes    []uint32
		HashAlone bool // there is nothing to be added: it is an answer in a round
	}

	// EvaluationPart is the result of one range of validation data at the state after Step updates.
	EvaluationPart struct {
		Worker int
		Step   int64
		Part   int
	}

	// Unreachable is a worker's word that it cannot send to another one, a peer of a round.
	Unreachable struct {
		Worker, Peer int
		Round        int64
		Reason       string
	}

	// Leaving is a worker that is asked to end and takes part in a round: it goes when the step in hand is complete, and a
	// Dismiss has told it.
	Leaving struct{ Worker int }

	// Left is a worker that ends in good order: it has sent what it had.
	Left struct{ Worker int }

	// Lost is a worker whose stream broke or that broke the protocol. The end of a stream that has said its last word, or
	// was told it, is LostInOrder.
	Lost struct {
		Worker int
		Reason string
		Fault  bool // it, or what it was given, is at fault, and the same may well happen again when it comes back
	}

	// Overflow is a worker that reads too slowly: its outgoing queue was full and has been emptied.
	Overflow struct{ Worker int }

	// StateHash is a worker's hash of its state at Step; Own is the master's, with Worker −1.
	StateHash struct {
		Worker int
		Step   int64
		Hash   string
	}

	// StateFetched is the state of a worker that was asked for it, received in full, and its hash.
	StateFetched struct {
		Worker int
		Step   int64
		Hash   string
	}

	// PodChanged is the newest known state of a worker's pod or process.
	PodChanged struct {
		Worker      int
		State       PodState
		Name        string // the pod's; "" for the usual name of a worker with this number
		Floor       bool   // it carries the floor's priority class
		Terminating bool   // somebody has asked for its end
		Preempted   bool   // … and it was the scheduler or the queue, for another of higher priority
		Reason      string // why it is pending, or why it ended
		Disrupted   bool   // it ended through no fault of its own: deleted, preempted, SIGTERM, node lost
	}

	// Resize is the user's new floor and size.
	Resize struct{ Min, Max int }

	// CheckpointAsked is somebody's wish for a checkpoint of the newest state, now.
	CheckpointAsked struct{}

	// CheckpointWritten says that the state of Step is on disk.
	CheckpointWritten struct{ Step int64 }

	// CheckpointNotWritten says why it is not.
	CheckpointNotWritten struct {
		Step   int64
		Reason string
	}

	// ModelSaved says that the final model and its description are on disk.
	ModelSaved struct{ SHA256 string }

	// ModelNotSaved says why they are not.
	ModelNotSaved struct{ Reason string }

	// Unhealthy ends the job: a loss that is not finite, data that changed under the run, two answers that differ.
	Unhealthy struct{ Reason string }

	// GenerationLost says that another master has taken over.
	GenerationLost struct{ Reason string }

	// Stop is SIGTERM to the master.
	Stop struct{ Cause StopCause }

	// Tick is the passing of 100 ms. Heard lists the workers that a frame came from since the last one. Late says
	// that the tick itself came more than 500 ms late: then it was us who were stopped, and nobody is suspected.
	Tick struct {
		Heard []int
		Late  bool
	}

	// Clock tells the time, since any moment: before each event that it matters to, and when Deadline has come. A run
	// that is never told it has no stragglers.
	Clock struct{ At time.Duration }
)

// LostInOrder is the Reason of a Lost that is no news.
const LostInOrder = "ended"

// Span is the virtual workers Lo ≤ v < Hi.
type Span struct{ Lo, Hi int }

// StopCause is why a master is to stop, as far as it matters: whether there is another one soon.
type StopCause int

// The causes. Without a master for long, workers would hold their room for nothing.
const (
	Replaced  StopCause = iota // its node is drained, for instance: another comes at once
	Evicted                    // the queue has taken the master's quota back, and the floor's
	Suspended                  // somebody has suspended the job
)

func (s StopCause) String() string {
	return [...]string{"the master is replaced", "the queue has evicted the master and the floor", "the job is suspended"}[s]
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
func (StateHash) event()            {}
func (StateFetched) event()         {}
func (PodChanged) event()           {}
func (Resize) event()               {}
func (CheckpointAsked) event()      {}
func (CheckpointWritten) event()    {}
func (CheckpointNotWritten) event() {}
func (ModelSaved) event()           {}
func (ModelNotSaved) event()        {}
func (Unhealthy) event()            {}
func (GenerationLost) event()       {}
func (Stop) event()                 {}
func (Tick) event()                 {}
func (Clock) event()                {}

// Effect is something that has to be done.
type Effect interface{ effect() }

// The effects.
type (
	// Accept says that the gradient just received is the first answer for its virtual workers: add it to the sum.
	Accept struct {
		Worker int
		Step   int64
		Lo, Hi int
	}

	// AcceptEvaluation says the same of an evaluation part.
	AcceptEvaluation struct {
		Worker int
		Step   int64
		Part   int
	}

	// Evaluated says that all parts of the evaluation at Step are there.
	Evaluated struct{ Step int64 }

	// Publish says that all gradients of Step are there: apply the sum, and send it to every subscribed worker,
	// with what that worker computes in the next step. With Hash everybody, the master included, hashes the state
	// that results.
	Publish struct {
		Step int64
		Next map[int][]int // worker → virtual workers of Step+1
		Hash bool
	}

	// Round says that the owners compute a step and add it up between themselves: each of them what Deal gives it, whether
	// it has it already from an earlier round of the step or not, and each owns a slice of the sum, in the order of Owners.
	// Finished slices go to the listeners too, who join. With Hash everybody hashes its state first.
	Round struct {
		Number    int64 // greater than every earlier round's
		Step      int64
		Owners    []int
		Listeners []int
		Deal      map[int][]int // worker → virtual workers of Step
		Answers   map[int][]int // worker → those of them of which it says the hash, as a Gradient
		Seconds   map[int][]int // worker → those that it computes as well, to say the hash and contribute nothing
		Hash      bool
	}

	// Relay has a worker that has applied a step send its sum to others, as of a round.
	Relay struct {
		Round, Step int64
		From        int
		To          []int
	}

	// Advance says that every worker has applied a step, whose sum the master has never seen.
	Advance struct{ Step int64 }

	// Assign gives a worker more virtual workers of the current step.
	Assign struct {
		Worker         int
		Step           int64
		VirtualWorkers []int
	}

	// Evaluate gives a worker ranges of validation data, to be evaluated at the state after Step updates: it holds that
	// state, or the updates to it are on their way.
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

	// TakeState says that the state just fetched is the master's from now on.
	TakeState struct {
		Worker int
		Step   int64
		Hash   string
	}

	// Refuse answers a hello with a sentence and ends the stream.
	Refuse struct {
		Worker int
		Reason string
	}

	// Disconnect ends a worker's stream.
	Disconnect struct {
		Worker int
		Reason string
	}

	// Dismiss tells a worker that the job is over; it exits 0.
	Dismiss struct{ Worker int }

	// CreatePod starts a worker.
	CreatePod struct {
		Worker int
		Floor  bool
	}

	// DeletePod ends a worker's pod by SIGTERM.
	DeletePod struct {
		Worker int
		Reason string
	}

	// Checkpoint writes the current state, that of Step, to where the next master finds it. There is one at a time. The
	// newest one up to Trusted is kept, however many there are: it is what is left if what came later is withdrawn.
	Checkpoint struct{ Step, Trusted int64 }

	// Withdraw says that what was written after a step is not to be gone on from: a machine computes wrongly.
	Withdraw struct{ After int64 }

	// SaveModel writes the final model.
	SaveModel struct{}

	// Report says that the status should be written now.
	Report struct{}

	// Notice is for a person: a Kubernetes Event and a line of the log.
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

// Reasons of a master's own Notices that not everybody who is told wants to repeat: those who watch see each of them in the
// status too.
const (
	ReasonCheckpointed = "Checkpointed"
	ReasonEvaluated    = "Evaluated"
	ReasonModelSaved   = "ModelSaved"
)

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
func (TakeState) effect()        {}
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
