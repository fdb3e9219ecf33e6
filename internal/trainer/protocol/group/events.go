package group

// Event is something that happened: one of the types below, or one of package coordinator's: Start, Clock, Tick,
// PodChanged, Resize, Leaving, Left, Lost, Unhealthy, Fenced and Stop.
type Event any

// The events of a group.
type (
	// Ready is a worker whose script is ready to be a member: it has built its model, and waits.
	Ready struct {
		Worker   int
		Identity Identity
		// Held is the number of steps in the state that the script holds; NoState for a script that has just started.
		Held int64
		// Of is the newest generation in which it received, or already had, the state of all members; 0 for none.
		// Two workers with the same Held and Of hold the same state. With another Of the state may be of a step that was
		// computed twice, because all who had computed it the first time were thought to be lost.
		Of int64
		// Checkpoint is the step of the newest checkpoint that the script can read, NoState without one.
		Checkpoint int64
		// Finishing means that its script received Finish before the stream or the master was lost, and is finishing.
		Finishing bool
		Address   string // host:port of its store, at which a generation of which it is rank 0 meets
		// Running is the generation whose command still runs on the worker, with its Rank of World; 0 for none. See Restart.
		Running     int64
		Rank, World int
	}

	// Idle is a member that has left a generation which was not ended by a commit. There is one for each member and
	// generation. Reason names the collective that failed; it is empty if the master aborted the generation.
	Idle struct {
		Worker     int
		Generation int64
		Held       int64 // NoState if the state was being received
		Of         int64 // as in Ready
		Reason     string
		Address    string // as in Ready; "" if it is the same
	}

	// Reduced reports that a rank holds the sum of a step's gradients and waits for the commit.
	Reduced struct {
		Worker     int
		Generation int64
		Step       int64
		LossSum    float64 // over the records of its share
		Records    int
	}

	// Saved reports that the state of Step is in a checkpoint.
	Saved struct {
		Worker int
		Step   int64
	}

	// Finished is a script that has ended without an error after a Finish.
	Finished struct{ Worker int }
)

// NoState is the Held or Checkpoint of a worker that has none.
const NoState int64 = -1

// Effect is something that has to be done: one of the types below, or one of package coordinator's: Refuse, Disconnect,
// Dismiss, CreatePod, DeletePod, Notice, Report and Exit.
type Effect any

// The effects of a group.
type (
	// Begin forms a process group. All members meet at Store; then, if Broadcast, the member of rank Source sends its state
	// to the others. With Load the source reads its newest checkpoint first. Then they compute Step, unless Step is the
	// number of the job's steps.
	Begin struct {
		Generation int64
		Members    []int // workers, by rank
		Store      string
		Step       int64
		Source     int // a rank
		Load       bool
		Broadcast  bool
	}

	// Commit makes a step count: each member applies the sum that it holds. With Last the generation ends with it, and the
	// members wait. Otherwise they compute the next step. With Save the member of rank 0 writes a checkpoint of the result.
	Commit struct {
		Generation int64
		Step       int64
		Members    []int // by rank
		Last       bool
		Save       bool
		Again      bool    // for a member that may not have received it
		LossSum    float64 // added in the order of ranks
		Records    int
	}

	// Abort ends a generation within a step, which does not count. Each member answers with Idle.
	Abort struct {
		Generation int64
		Members    []int
	}

	// Save has a worker that waits write a checkpoint of the state that it holds.
	Save struct {
		Worker int
		Step   int64
	}

	// Finish lets a worker's script go on to what follows its last step. The Saver writes the final checkpoint before.
	Finish struct {
		Generation int64
		Worker     int
		Saver      bool
	}
)
