// Package gang decides how the ranks of a task of several nodes start, stop and restart together. Each rank decides for
// itself, from the same two inputs: the task's pods, and one ConfigMap, the board. The package is pure:
// internal/trainer/runtime/rank watches, writes and runs commands as this package decides.
//
// A run is an attempt of all ranks together. Each rank writes to the board that it is ready for the next run. When all
// are ready, rank 0 writes the members of the run and their addresses, and each rank starts its command. The first rank
// that detects a failure writes it to the board, which ends the run. The rank whose command failed exits with the
// command's code, which the Job counts once, and the Job creates a new pod for it. The other ranks stop their commands
// and become ready for the next run. A command that succeeds waits for the others, so that no rank is complete before
// all are.
//
// A task may declare that its command can rejoin the others, as torchrun's can with an elastic rendezvous. Then the
// loss of a rank ends its own command only: its new pod takes its place in the same run. The exceptions are rank 0, by
// whose address the ranks find each other, and a run in which a command has already succeeded.
//
// The reason for which pods disappear does not matter. When Kueue suspends the Job and admits it again, all pods are
// new: the last run has no living members, and the next one begins.
package gang

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// BoardName is the name of the ConfigMap.
func BoardName(task string) string { return task + "-gang" }

// PodLabel of every pod of a Job has the Job's UID as its value; it is the Job controller's.
const PodLabel = "batch.kubernetes.io/controller-uid"

// RunKey is the board's key of the Run.
const RunKey = "run"

// RankKey is the board's key of what a rank says of itself.
func RankKey(rank int) string { return "rank-" + strconv.Itoa(rank) }

// Run is an attempt of all ranks together.
type Run struct {
	Number  int      `json:"number"`  // from 1; 0 before the first
	Members []Member `json:"members"` // by rank
	// Failure is the first one, which ended the run; nil while it continues, and when it has ended well.
	Failure *Failure `json:"failure,omitempty"`
}

// Member is a pod that takes part in a run.
type Member struct {
	Pod     types.UID `json:"pod"`
	Address string    `json:"address"` // its IP address
}

// Failure is why a run ended.
type Failure struct {
	Rank   int       `json:"rank"`
	Pod    types.UID `json:"pod"`
	Code   int       `json:"code,omitempty"` // the command's exit code; 0 when the pod was lost
	Reason string    `json:"reason"`
}

// Rank is what a rank says of itself.
type Rank struct {
	Pod     types.UID `json:"pod"`
	Address string    `json:"address"`
	Joined  int       `json:"joined"`         // the newest run that it is ready for
	Done    int       `json:"done,omitempty"` // the run in which its command ended well
}

// Board is the ConfigMap.
type Board struct {
	Run   Run
	Ranks map[int]Rank
}

// maxRuns is more than a task restarts, and its successor is a number. A process's exit code has eight bits: of a
// larger one the supervisor would end with the rest, which may be 0.
const (
	maxRuns     = 1 << 30
	maxExitCode = 255
)

// Decode reads a board from a ConfigMap's data. Keys of other ranks than there are, are somebody else's.
func Decode(data map[string]string, nodes int) (Board, error) {
	b := Board{Ranks: map[int]Rank{}}
	for key, text := range data {
		if key == RunKey {
			if err := json.Unmarshal([]byte(text), &b.Run); err != nil {
				return Board{}, fmt.Errorf("read %s: %w", key, err)
			}
			if err := b.Run.check(nodes); err != nil {
				return Board{}, fmt.Errorf("read %s: %w", key, err)
			}
			continue
		}
		digits, ok := strings.CutPrefix(key, "rank-")
		rank, err := strconv.Atoi(digits)
		if !ok || err != nil || rank < 0 || rank >= nodes {
			continue
		}
		var r Rank
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return Board{}, fmt.Errorf("read %s: %w", key, err)
		}
		b.Ranks[rank] = r
	}
	return b, nil
}

// check refuses a run that no rank has written: a ConfigMap can be edited by others.
func (r Run) check(nodes int) error {
	switch n := len(r.Members); {
	case r.Number < 0 || r.Number > maxRuns:
		return fmt.Errorf("%d is no number of a run", r.Number)
	case n != nodes && r.Number != 0:
		return fmt.Errorf("run %d has %d members and the task %d nodes", r.Number, n, nodes)
	}
	if f := r.Failure; f != nil && (f.Rank < 0 || f.Rank >= nodes || f.Code < 0 || f.Code > maxExitCode) {
		return fmt.Errorf("rank %d of %d cannot have failed with exit code %d", f.Rank, nodes, f.Code)
	}
	return nil
}

// done reports whether all ranks of the board's run have ended well.
func (b Board) done(nodes int) bool {
	if b.Run.Number == 0 || b.Run.Failure != nil {
		return false
	}
	for rank := range nodes {
		if b.Ranks[rank].Done != b.Run.Number {
			return false
		}
	}
	return true
}

// Command is what a rank's command does.
type Command struct {
	Run     int // the run that it was started for; 0 before the first
	Running bool
	Code    int // its exit code, when it is not running
}

// View is what one rank knows.
type View struct {
	Rank    int
	Nodes   int
	Pod     types.UID
	Address string
	Board   Board
	// Living are the task's pods that take part or may: neither failed nor being deleted. One that has succeeded lives.
	Living  map[types.UID]bool
	Command Command
	// Rejoin is true if the command of a rank may start anew while those of the others continue.
	Rejoin bool
}

// Action is what a rank has to do next; exactly one field is set, or none when it has to wait.
type Action struct {
	Say   *Rank // write this about oneself
	Write *Run  // write this in place of the run that was seen, unless another has written
	Start int   // start the command for the run of this number
	Stop  bool  // stop the command
	Exit  *int  // end with this code
}

// Decide is the next thing to do. It is called again after each action, and whenever anything that it looks at changes.
func Decide(v View) Action {
	run, me := v.Board.Run, v.Board.Ranks[v.Rank]
	going := run.Number > 0 && run.Failure == nil
	member := going && run.Members[v.Rank].Pod == v.Pod
	switch {
	case v.Command.Running && (!member || v.Command.Run != run.Number):
		return Action{Stop: true} // its run is over
	case v.Board.done(v.Nodes):
		return Action{Exit: new(0)}
	case run.Failure != nil && run.Failure.Pod == v.Pod && run.Failure.Code != 0:
		return Action{Exit: new(run.Failure.Code)} // the Job counts it, and makes a new pod
	case going && v.lost(run) >= 0:
		rank := v.lost(run)
		return Action{Write: run.failed(Failure{Rank: rank, Pod: run.Members[rank].Pod, Reason: "its pod is gone"})}
	case going && !member && v.rejoins(v.Rank) && !v.Living[run.Members[v.Rank].Pod]:
		return Action{Write: run.rejoined(v.Rank, Member{Pod: v.Pod, Address: v.Address})}
	case member && v.Command.Run != run.Number:
		return Action{Start: run.Number}
	case member && v.Command.Running:
		return Action{}
	case member && v.Command.Code != 0 && v.rejoins(v.Rank):
		return Action{Exit: &v.Command.Code} // the Job counts it, and makes a new pod
	case member && v.Command.Code != 0:
		return Action{Write: run.failed(Failure{Rank: v.Rank, Pod: v.Pod, Code: v.Command.Code, Reason: fmt.Sprintf("its command ended with exit code %d", v.Command.Code)})}
	case member && me.Done != run.Number:
		return Action{Say: &Rank{Pod: v.Pod, Address: v.Address, Joined: run.Number, Done: run.Number}}
	case member:
		return Action{} // until the others have ended well too
	}
	return v.join(run.Number + 1)
}

// join reports that this rank is ready for a run, and begins it when all are.
func (v View) join(number int) Action {
	if me := v.Board.Ranks[v.Rank]; me.Pod != v.Pod || me.Joined != number || me.Address != v.Address {
		return Action{Say: &Rank{Pod: v.Pod, Address: v.Address, Joined: number}}
	}
	if v.Rank != 0 {
		return Action{}
	}
	next := Run{Number: number}
	for rank := range v.Nodes {
		r := v.Board.Ranks[rank]
		if r.Joined != number || !v.Living[r.Pod] {
			return Action{}
		}
		next.Members = append(next.Members, Member{Pod: r.Pod, Address: r.Address})
	}
	return Action{Write: &next}
}

// lost is a rank of the run whose pod lives no more, or -1.
func (v View) lost(run Run) int {
	for rank, m := range run.Members {
		if !v.Living[m.Pod] && !v.rejoins(rank) {
			return rank
		}
	}
	return -1
}

// rejoins reports whether a rank that fails or is lost takes part in the same run again, with a new pod.
func (v View) rejoins(rank int) bool {
	if !v.Rejoin || rank == 0 {
		return false
	}
	for _, r := range v.Board.Ranks {
		if r.Done == v.Board.Run.Number {
			return false // its command has ended, so that there is nothing to rejoin
		}
	}
	return true
}

// rejoined is the run with a new pod of a rank.
func (r Run) rejoined(rank int, m Member) *Run {
	r.Members = slices.Clone(r.Members)
	r.Members[rank] = m
	return &r
}

func (r Run) failed(f Failure) *Run {
	r.Failure = &f
	return &r
}

// Addresses are those of a run's members, in order of rank.
func (r Run) Addresses() []string {
	out := make([]string, len(r.Members))
	for i, m := range r.Members {
		out[i] = m.Address
	}
	return out
}

// Waiting is who a rank waits for before the next run, in words.
func (b Board) Waiting(nodes int) string {
	var missing []string
	for rank := range nodes {
		if b.Ranks[rank].Joined <= b.Run.Number {
			missing = append(missing, strconv.Itoa(rank))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("run %d waits for rank %s of %d", b.Run.Number+1, strings.Join(missing, ", "), nodes)
}
