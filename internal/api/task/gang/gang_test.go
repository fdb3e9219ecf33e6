package gang

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// world is a task of several nodes as it is in a cluster: the board, and a pod for each rank whose supervisor sees the
// board and the pods late.
type world struct {
	nodes    int
	rejoin   bool
	board    map[string]string
	version  int
	pods     []*pod // by rank; the living one
	made     int
	counted  int           // failures that the Job counts
	started  map[int][]int // by run, the ranks whose command was started
	ended    []bool        // by rank: the pod has succeeded
	exitZero int
}

type pod struct {
	uid     types.UID
	command Command
	seen    map[string]string // the board, as late as its watch
	version int
	living  map[types.UID]bool
}

func newWorld(nodes int) *world {
	w := &world{nodes: nodes, board: map[string]string{}, started: map[int][]int{}, ended: make([]bool, nodes), pods: make([]*pod, nodes)}
	for rank := range nodes {
		w.replace(rank)
	}
	return w
}

func (w *world) replace(rank int) {
	w.made++
	w.pods[rank] = &pod{uid: types.UID(fmt.Sprintf("pod-%d", w.made))}
	w.look(rank)
}

// look brings what a rank knows up to date.
func (w *world) look(rank int) {
	p := w.pods[rank]
	p.seen, p.version, p.living = map[string]string{}, w.version, map[types.UID]bool{}
	for k, v := range w.board {
		p.seen[k] = v
	}
	for _, other := range w.pods {
		if other != nil {
			p.living[other.uid] = true
		}
	}
}

func (w *world) write(key string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	w.board[key] = string(text)
	w.version++
}

// act lets a rank do the next thing; false when it waits.
func (w *world) act(t interface{ Fatalf(string, ...any) }, rank int) bool {
	p := w.pods[rank]
	if w.ended[rank] {
		return false
	}
	board, err := Decode(p.seen, w.nodes)
	if err != nil {
		t.Fatalf("%v", err)
	}
	a := Decide(View{Rank: rank, Nodes: w.nodes, Pod: p.uid, Address: "10.0.0." + fmt.Sprint(rank), Board: board, Living: p.living, Command: p.command, Rejoin: w.rejoin})
	switch {
	case a.Say != nil:
		w.write(RankKey(rank), a.Say)
		w.look(rank)
	case a.Write != nil:
		if p.version == w.version { // else the API server answers that it has changed
			w.write(RunKey, a.Write)
		}
		w.look(rank)
	case a.Start != 0:
		if p.command.Running {
			t.Fatalf("rank %d starts a second command", rank)
		}
		p.command = Command{Run: a.Start, Running: true}
		w.started[a.Start] = append(w.started[a.Start], rank)
	case a.Stop:
		p.command = Command{Run: p.command.Run, Code: 143}
	case a.Exit != nil && *a.Exit == 0:
		w.ended[rank] = true
		w.exitZero++
	case a.Exit != nil:
		w.counted++
		w.replace(rank)
	default:
		return false
	}
	return true
}

// settle lets all ranks act and look until all wait.
func (w *world) settle(t interface{ Fatalf(string, ...any) }) {
	for range 1000 {
		busy := false
		for rank := range w.nodes {
			w.look(rank)
			for range 20 {
				if !w.act(t, rank) {
					break
				}
				busy = true
			}
		}
		if !busy {
			return
		}
	}
	t.Fatalf("it continues for ever: %v", w.board)
}

func (w *world) end(rank, code int) {
	w.pods[rank].command = Command{Run: w.pods[rank].command.Run, Code: code}
}

func (w *world) run(t interface{ Fatalf(string, ...any) }) Run {
	b, err := Decode(w.board, w.nodes)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return b.Run
}

func (w *world) running() (n int) {
	for _, p := range w.pods {
		if p.command.Running {
			n++
		}
	}
	return n
}

func TestDecide(t *testing.T) {
	t.Run("all ranks start together, with each other's addresses", func(t *testing.T) {
		w := newWorld(3)
		w.settle(t)
		run := w.run(t)
		if diff := cmp.Diff([]string{"10.0.0.0", "10.0.0.1", "10.0.0.2"}, run.Addresses()); diff != "" || run.Number != 1 || w.running() != 3 {
			t.Errorf("run %d, %d commands, %s", run.Number, w.running(), diff)
		}
	})
	t.Run("no rank starts before all are there", func(t *testing.T) {
		w := newWorld(3)
		late := w.pods[2]
		w.pods[2] = &pod{uid: "not yet"}
		for range 5 {
			for rank := range 2 {
				w.look(rank)
				w.act(t, rank)
			}
		}
		if len(w.started) != 0 {
			t.Errorf("started: %v", w.started)
		}
		w.pods[2] = late
		w.settle(t)
		if w.running() != 3 {
			t.Errorf("%d commands", w.running())
		}
	})
	t.Run("one rank's failure ends the run for all, is counted once, and all run again", func(t *testing.T) {
		w := newWorld(3)
		w.settle(t)
		survivor := w.pods[0].uid
		w.end(1, 7)
		w.end(2, 1) // the others' commands often fail of it
		w.settle(t)
		if w.counted != 1 || w.running() != 3 || w.run(t).Number != 2 || !slices.Equal(w.started[2], []int{0, 1, 2}) && len(w.started[2]) != 3 {
			t.Errorf("counted %d, running %d, run %+v, started %v", w.counted, w.running(), w.run(t), w.started)
		}
		if w.pods[0].uid != survivor {
			t.Error("a rank that had not failed lost its pod")
		}
	})
	t.Run("a rank whose pod is taken away ends the run for all, and nothing is counted", func(t *testing.T) {
		w := newWorld(2)
		w.settle(t)
		w.replace(0)
		w.settle(t)
		if w.counted != 0 || w.running() != 2 || w.run(t).Number != 2 {
			t.Errorf("counted %d, running %d, run %+v", w.counted, w.running(), w.run(t))
		}
	})
	t.Run("when all pods are new, as after a suspension, the next run begins", func(t *testing.T) {
		w := newWorld(3)
		w.settle(t)
		for rank := range 3 {
			w.replace(rank)
		}
		w.settle(t)
		if w.counted != 0 || w.running() != 3 || w.run(t).Number < 2 {
			t.Errorf("counted %d, running %d, run %+v", w.counted, w.running(), w.run(t))
		}
	})
	t.Run("a rank that ended well waits for the others, and runs again when one of them fails", func(t *testing.T) {
		w := newWorld(2)
		w.settle(t)
		w.end(0, 0)
		w.settle(t)
		if w.exitZero != 0 {
			t.Fatal("rank 0 is complete before rank 1")
		}
		w.end(1, 3)
		w.settle(t)
		if w.running() != 2 || w.counted != 1 {
			t.Errorf("running %d, counted %d", w.running(), w.counted)
		}
		w.end(0, 0)
		w.end(1, 0)
		w.settle(t)
		if w.exitZero != 2 {
			t.Errorf("%d ranks are complete", w.exitZero)
		}
	})
	t.Run("a pod that comes when all has ended well ends well", func(t *testing.T) {
		w := newWorld(2)
		w.settle(t)
		w.end(0, 0)
		w.end(1, 0)
		w.look(0)
		w.act(t, 0)
		w.look(1)
		w.act(t, 1)
		w.replace(1) // its node died before the end was seen
		w.settle(t)
		if w.exitZero != 2 || len(w.started) != 1 {
			t.Errorf("%d ranks are complete, started %v", w.exitZero, w.started)
		}
	})
}

func TestRanksThatCanRejoin(t *testing.T) {
	begun := func(t *testing.T) *world {
		w := newWorld(3)
		w.rejoin = true
		w.settle(t)
		return w
	}
	commands := func(w *world) (of []Command) {
		for _, p := range w.pods {
			of = append(of, p.command)
		}
		return of
	}
	all := []Command{{Run: 1, Running: true}, {Run: 1, Running: true}, {Run: 1, Running: true}}
	for name, happens := range map[string]func(w *world){
		"whose pod is lost":    func(w *world) { w.replace(1) },
		"whose command failed": func(w *world) { w.end(1, 7) },
	} {
		t.Run("a rank "+name+" runs again, and the others continue", func(t *testing.T) {
			w := begun(t)
			before := []types.UID{w.pods[0].uid, w.pods[2].uid}
			happens(w)
			w.settle(t)
			if diff := cmp.Diff(all, commands(w)); diff != "" || !slices.Equal(w.started[1], []int{0, 1, 2, 1}) {
				t.Errorf("started %v, %s", w.started, diff)
			}
			if after := []types.UID{w.pods[0].uid, w.pods[2].uid}; !slices.Equal(before, after) {
				t.Errorf("other pods are %v, and were %v", after, before)
			}
			if run := w.run(t); run.Members[1].Pod != w.pods[1].uid {
				t.Errorf("the members are %v", run.Members)
			}
		})
	}
	t.Run("two ranks are replaced at the same time", func(t *testing.T) {
		w := begun(t)
		w.replace(1)
		w.end(2, 1)
		w.settle(t)
		if diff := cmp.Diff(all, commands(w)); diff != "" {
			t.Error(diff)
		}
	})
	for name, happens := range map[string]func(w *world){
		"rank 0 is lost, by whose address the others found each other": func(w *world) { w.replace(0) },
		"rank 0 fails": func(w *world) { w.end(0, 7) },
		"a rank fails after another one has succeeded": func(w *world) {
			w.end(2, 0)
			w.settle(t)
			w.end(1, 7)
		},
		"a rank that has succeeded is lost before all have": func(w *world) {
			w.end(2, 0)
			w.settle(t)
			w.replace(2)
		},
	} {
		t.Run("all run again when "+name, func(t *testing.T) {
			w := begun(t)
			happens(w)
			w.settle(t)
			if run := w.run(t); run.Number != 2 || len(w.started[2]) != 3 || w.running() != 3 {
				t.Errorf("run %d, started %v, running %d", run.Number, w.started, w.running())
			}
		})
	}
}

// Whatever fails and disappears, and however late each rank sees it: no rank is complete before all have ended well in
// one run, no run has a rank twice or more failures counted than one, and when nothing fails any more all run together.
// Where ranks rejoin, a run has each of them as often as it has lost its pod, or its command has failed.
func TestWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.IntRange(2, 4).Draw(t, "nodes"))
		w.rejoin = rapid.Bool().Draw(t, "rejoin")
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			rank := rapid.IntRange(0, w.nodes-1).Draw(t, "rank")
			switch rapid.SampledFrom([]string{"look", "look", "act", "act", "act", "end", "fail", "lose"}).Draw(t, "event") {
			case "look":
				w.look(rank)
			case "act":
				w.act(t, rank)
			case "end":
				if w.pods[rank].command.Running {
					w.end(rank, 0)
				}
			case "fail":
				if w.pods[rank].command.Running {
					w.end(rank, 1)
				}
			case "lose":
				if w.exitZero == 0 {
					w.replace(rank)
				}
			}
			if w.exitZero > 0 {
				break
			}
		}
		if w.exitZero > 0 {
			b, err := Decode(w.board, w.nodes)
			if err != nil || !b.done(w.nodes) {
				t.Fatalf("a rank is complete, and not all are: %+v, %v", b, err)
			}
		}
		w.settle(t)
		for number, ranks := range w.started {
			if w.rejoin {
				break
			}
			sorted := slices.Sorted(slices.Values(ranks))
			if len(slices.Compact(sorted)) != len(ranks) {
				t.Fatalf("run %d started rank twice: %v", number, ranks)
			}
		}
		if !w.rejoin && w.counted > w.run(t).Number {
			t.Fatalf("%d failures are counted in %d runs", w.counted, w.run(t).Number)
		}
		for rank, p := range w.pods { // what still runs ends well, and then so does all
			if p.command.Running {
				w.end(rank, 0)
			}
		}
		w.settle(t)
		if w.exitZero != w.nodes {
			for rank, p := range w.pods {
				if p.command.Running {
					w.end(rank, 0)
				}
			}
			w.settle(t)
		}
		if w.exitZero != w.nodes {
			t.Fatalf("%d of %d ranks are complete: %v", w.exitZero, w.nodes, w.board)
		}
	})
}

func TestDecode(t *testing.T) {
	for name, data := range map[string]map[string]string{
		"a run that is no JSON":           {RunKey: "{"},
		"a rank that is no JSON":          {RankKey(0): "["},
		"a run of another number of pods": {RunKey: `{"number":1,"members":[{"pod":"a"}]}`},
		"a run before the first":          {RunKey: `{"number":-1,"members":[{"pod":"a"},{"pod":"b"}]}`},
		"a run without a next one":        {RunKey: `{"number":9223372036854775807,"members":[{"pod":"a"},{"pod":"b"}]}`},
		"a failure of no rank":            {RunKey: `{"number":1,"members":[{"pod":"a"},{"pod":"b"}],"failure":{"rank":2,"code":1}}`},
		"an exit code that ends as 0":     {RunKey: `{"number":1,"members":[{"pod":"a"},{"pod":"b"}],"failure":{"rank":1,"code":256}}`},
	} {
		t.Run(name+" is an error", func(t *testing.T) {
			if _, err := Decode(data, 2); err == nil {
				t.Error("there is none")
			}
		})
	}
	t.Run("keys of somebody else are not looked at", func(t *testing.T) {
		b, err := Decode(map[string]string{"note": "{", "rank-9": "{", "rank-x": "{"}, 2)
		if err != nil || len(b.Ranks) != 0 {
			t.Error(b, err)
		}
	})
}

// FuzzDecode reads boards that anybody may have edited: what is accepted leads to actions, and to runs that are read
// again.
func FuzzDecode(f *testing.F) {
	f.Add(`{"number":1,"members":[{"pod":"a","address":"10.0.0.1"},{"pod":"b","address":"10.0.0.2"}]}`, `{"pod":"a","address":"10.0.0.1","joined":1}`, uint8(2))
	f.Add(`{"number":2,"members":[{"pod":"a"}],"failure":{"rank":0,"pod":"a","code":3,"reason":"x"}}`, `{"pod":"a","joined":2,"done":2}`, uint8(1))
	f.Add(`{"number":0}`, `{}`, uint8(3))
	f.Fuzz(func(t *testing.T, run, rank string, count uint8) {
		nodes := 1 + int(count%8)
		board, err := Decode(map[string]string{RunKey: run, RankKey(0): rank, RankKey(nodes): "{"}, nodes)
		if err != nil || board.Run.Number == maxRuns { // whose next one would be refused
			return
		}
		_, _, _ = board.Waiting(nodes), board.Run.Addresses(), board.done(nodes)
		for me := range nodes {
			for _, command := range []Command{{}, {Run: board.Run.Number}, {Run: board.Run.Number, Running: true}, {Run: board.Run.Number, Code: 255}} {
				living := map[types.UID]bool{"a": true, board.Ranks[0].Pod: true}
				action := Decide(View{Rank: me, Nodes: nodes, Pod: "a", Address: "10.0.0.1", Board: board, Living: living, Command: command})
				if action.Exit != nil && (*action.Exit < 0 || *action.Exit > 255) {
					t.Fatalf("exit code %d", *action.Exit)
				}
				if action.Write == nil {
					continue
				}
				text, err := json.Marshal(action.Write)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := Decode(map[string]string{RunKey: string(text)}, nodes); err != nil {
					t.Fatalf("%s is written and not read: %v", text, err)
				}
			}
		}
	})
}
