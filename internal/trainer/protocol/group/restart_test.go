package group

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// commands is a model of everything around a group whose command is restarted: workers that start and stop the command,
// their streams, and masters. Each action is one small thing that happens.
type commands struct {
	fatalf  func(format string, args ...any)
	cfg     Config
	g       *Group
	now     time.Duration
	workers map[int]*commandWorker
	pending map[int]bool
	exit    *coordinator.Exit
	counts  map[int64]map[int]bool // ranks that have ended well, by generation
	worlds  map[int64]int
	began   time.Duration // of the newest generation
	joins   bool          // the newest Abort is because workers joined
}

// States of a worker's command.
const (
	runs    = "runs"
	stops   = "stops" // has received SIGTERM
	exited  = "exited with code 0"
	crashed = "crashed"
)

type commandWorker struct {
	id          int
	connected   bool
	paused      bool
	leaves      bool
	in          []Effect
	out         []Event
	at          string // waits, runs, stops, exited, crashed
	generation  int64
	rank, world int
	held        int64
	finished    bool
}

func newCommands(cfg Config, fatalf func(string, ...any)) *commands {
	w := &commands{fatalf: fatalf, cfg: cfg, workers: map[int]*commandWorker{}, pending: map[int]bool{}, counts: map[int64]map[int]bool{}, worlds: map[int64]int{}}
	w.g = New(cfg)
	w.do(coordinator.Start{})
	return w
}

func (w *commands) do(e Event) {
	for _, e := range []Event{coordinator.Clock{At: w.now}, e} {
		if w.exit != nil {
			return
		}
		for _, effect := range append([]Effect{}, w.g.Step(e)...) {
			w.effect(effect)
		}
	}
}

func (w *commands) send(id int, e Effect) {
	if p := w.workers[id]; p != nil && p.connected {
		p.in = append(p.in, e)
	}
}

func (w *commands) effect(e Effect) {
	switch e := e.(type) {
	case Begin:
		if alone := e.Step == 1 && len(e.Members) == 1; !alone && (len(e.Members) < w.g.pods.min || len(e.Members) > w.g.pods.max || len(e.Members)%w.cfg.Multiple != 0) {
			w.fatalf("generation %d has %d members", e.Generation, len(e.Members))
		}
		w.worlds[e.Generation], w.began = len(e.Members), w.now
		for _, id := range e.Members {
			w.send(id, e)
		}
	case Commit:
		// The commit is right if every rank of one generation has ended well.
		if ended := w.counts[e.Generation]; len(ended) != w.worlds[e.Generation] {
			w.fatalf("the job counts as done, and of generation %d ranks %v of %d have ended with code 0", e.Generation, sorted(ended), w.worlds[e.Generation])
		}
		for _, id := range e.Members {
			w.send(id, e)
		}
	case Abort:
		if w.joins && w.now-w.began < w.cfg.JoinInterval {
			w.fatalf("generation %d was ended after %v for workers that join", e.Generation, w.now-w.began)
		}
		w.joins = false
		for _, id := range e.Members {
			w.send(id, e)
		}
	case Finish:
		w.send(e.Worker, e)
	case coordinator.Notice:
		w.joins = e.Reason == "CommandStopped" && strings.Contains(e.Message, "more workers are ready")
	case coordinator.Dismiss:
		w.send(e.Worker, e)
	case coordinator.Disconnect:
		if p := w.workers[e.Worker]; p != nil {
			p.connected, p.in, p.out = false, nil, nil
		}
	case coordinator.Refuse:
		w.fatalf("worker %d was refused: %s", e.Worker, e.Reason)
	case Save:
		w.fatalf("worker %d was asked for a checkpoint", e.Worker)
	case coordinator.CreatePod:
		w.pending[e.Worker] = true
	case coordinator.DeletePod:
		if w.pending[e.Worker] {
			delete(w.pending, e.Worker)
		} else if p := w.workers[e.Worker]; p != nil {
			p.leaves = true
		}
	case coordinator.Exit:
		w.exit = &e
	}
}

func (w *commands) connect(p *commandWorker) {
	p.connected, p.in, p.out = true, nil, nil
	ready := Ready{Worker: p.id, Held: p.held, Checkpoint: NoState, Finishing: p.finished, Address: address(p.id)}
	if p.at == runs || p.at == exited && p.held == 0 {
		ready.Running, ready.Rank, ready.World = p.generation, p.rank, p.world
	}
	p.out = append(p.out, ready)
	if p.at == exited && p.held == 0 {
		p.out = append(p.out, Reduced{Worker: p.id, Generation: p.generation})
	}
	if p.finished {
		p.out = append(p.out, Finished{Worker: p.id})
	}
	if p.leaves {
		p.out = append(p.out, coordinator.Leaving{Worker: p.id})
	}
}

func (w *commands) actions() (out []action) {
	for _, id := range sorted(w.pending) {
		out = append(out, action{fmt.Sprintf("pod %d starts", id), func() {
			delete(w.pending, id)
			p := &commandWorker{id: id, at: waits}
			w.workers[id] = p
			w.do(coordinator.PodChanged{Worker: id, State: coordinator.PodRunning})
			w.connect(p)
		}})
	}
	for _, id := range sorted(w.workers) {
		p := w.workers[id]
		if p.paused {
			continue
		}
		add := func(name string, do func()) {
			out = append(out, action{fmt.Sprintf("worker %d %s", id, name), do})
		}
		if !p.connected && p.at != stops && p.at != crashed {
			add("connects", func() { w.connect(p) })
		}
		if len(p.out) > 0 {
			add("is heard", func() { e := p.out[0]; p.out = p.out[1:]; w.do(e) })
		}
		if len(p.in) > 0 {
			add("hears", func() { e := p.in[0]; p.in = p.in[1:]; w.hear(p, e) })
		}
		switch p.at {
		case runs:
			add("ends well", func() {
				p.at = exited
				if w.counts[p.generation] == nil {
					w.counts[p.generation] = map[int]bool{}
				}
				w.counts[p.generation][p.rank] = true
				if p.connected {
					p.out = append(p.out, Reduced{Worker: id, Generation: p.generation})
				}
			})
		case stops, crashed:
			add("has stopped", func() {
				why := ""
				if p.at == crashed {
					why = "rank 0 exited with code 1"
				}
				p.at = waits
				if p.connected {
					p.out = append(p.out, Idle{Worker: id, Generation: p.generation, Reason: why})
				}
			})
		}
		if m := w.g.members[id]; p.leaves && p.connected && m != nil && !m.leaving && len(p.out) == 0 {
			add("asks to leave", func() { p.out = append(p.out, coordinator.Leaving{Worker: id}) })
		}
	}
	return out
}

func (w *commands) hear(p *commandWorker, e Effect) {
	switch e := e.(type) {
	case Begin:
		if p.at != waits && p.held == 0 {
			w.fatalf("generation %d begins while the command of worker %d %s (generation %d)", e.Generation, p.id, p.at, p.generation)
		}
		p.generation, p.rank, p.world = e.Generation, slices.Index(e.Members, p.id), len(e.Members)
		if e.Step == 0 {
			p.at = runs
		}
	case Abort:
		switch {
		case e.Generation != p.generation || p.at == waits || p.at == crashed || p.at == stops:
		case p.at == exited:
			p.at = waits
			p.out = append(p.out, Idle{Worker: p.id, Generation: p.generation})
		default:
			p.at = stops
		}
	case Commit:
		if p.at != exited || p.generation != e.Generation {
			w.fatalf("worker %d, whose command %s in generation %d, heard that generation %d has ended well", p.id, p.at, p.generation, e.Generation)
		}
		p.held = 1
	case Finish:
		p.finished = true
		p.out = append(p.out, Finished{Worker: p.id})
	case coordinator.Dismiss:
		w.end(p, coordinator.Lost{Worker: p.id, Reason: coordinator.LostInOrder})
	}
}

func (w *commands) end(p *commandWorker, lost coordinator.Lost) {
	delete(w.workers, p.id)
	if p.connected {
		for _, e := range p.out {
			w.do(e)
		}
		w.do(lost)
	}
	w.do(coordinator.PodChanged{Worker: p.id, State: coordinator.PodEnded, Disrupted: true})
}

func (w *commands) tick() {
	w.now += 100 * time.Millisecond
	var received []int
	for _, id := range sorted(w.workers) {
		if p := w.workers[id]; p.connected && !p.paused {
			received = append(received, id)
		}
	}
	w.do(coordinator.Tick{Heard: received})
}

// restartMaster replaces the master, whose workers go on.
func (w *commands) restartMaster() {
	if w.g.over > 0 || w.g.step > 0 {
		return
	}
	cfg := w.cfg
	cfg.LastGeneration = w.g.number
	cfg.Restarted, cfg.LastWorkerID, cfg.Min, cfg.Max = true, w.g.pods.lastID, w.g.pods.min, w.g.pods.max
	w.g = New(cfg)
	for _, id := range sorted(w.workers) {
		p := w.workers[id]
		p.connected, p.in, p.out = false, nil, nil
		w.do(coordinator.PodChanged{Worker: id, State: coordinator.PodRunning})
	}
	for _, id := range sorted(w.pending) {
		w.do(coordinator.PodChanged{Worker: id, State: coordinator.PodPending})
	}
	w.do(coordinator.Start{})
}

func restartConfig() Config {
	return Config{
		Steps: 1, Min: 1, Max: 3, Multiple: 1, LastWorkerID: -1, Gather: 3 * time.Second, JoinInterval: 5 * time.Second,
		Settle: 200 * time.Millisecond, IdleTimeout: 30 * time.Second, RetryInterval: time.Second, MaxFailures: 1000, SilentTicks: 100,
		Restart: &Restart{LastCall: time.Second, Settle: time.Second, Reconnect: 5 * time.Second, Stable: time.Minute},
	}
}

// TestACommandCountsAsDoneWhenAllItsRanksHaveEndedWellWhateverHappensToItsWorkers runs random schedules: workers are
// killed, stopped and signalled to leave, commands crash, streams break and masters are replaced. Then all of that
// ceases, and the job has to end. `go test -rapid.checks=20000` runs as many.
func TestACommandCountsAsDoneWhenAllItsRanksHaveEndedWellWhateverHappensToItsWorkers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := restartConfig()
		cfg.Multiple = rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "multiple")
		cfg.Min = cfg.Multiple * rapid.IntRange(1, 2).Draw(t, "minimum")
		cfg.Max = cfg.Min + rapid.IntRange(0, 3).Draw(t, "burst")
		w := newCommands(cfg, t.Fatalf)
		for range rapid.IntRange(0, 150).Draw(t, "events") {
			if w.exit != nil {
				break
			}
			w.disturbed(t)
		}
		for _, p := range w.workers {
			p.paused = false
		}
		for i := 0; w.exit == nil; i++ {
			if i > 20_000 {
				t.Fatalf("the job does not end: %s", w.dump())
			}
			if actions := w.actions(); len(actions) > 0 && i%5 > 0 {
				actions[i%len(actions)].do()
			} else {
				w.tick()
			}
		}
		if w.exit.Code != coordinator.ExitDone {
			t.Fatalf("the job ended with %d: %s", w.exit.Code, w.exit.Reason)
		}
	})
}

func (w *commands) disturbed(t *rapid.T) {
	what := rapid.SampledFrom([]string{"act", "act", "act", "act", "act", "act", "tick", "wait", "kill", "leave", "pause", "break", "crash", "restart", "resize"}).Draw(t, "what")
	ids := sorted(w.workers)
	if len(ids) == 0 && what != "restart" && what != "resize" {
		what = "act"
	}
	var p *commandWorker
	if len(ids) > 0 {
		p = w.workers[rapid.SampledFrom(ids).Draw(t, "worker")]
	}
	switch what {
	case "kill":
		p.out = p.out[:rapid.IntRange(0, len(p.out)).Draw(t, "sent")]
		w.end(p, coordinator.Lost{Worker: p.id, Reason: "was lost", Broken: true})
	case "leave":
		p.leaves = true
	case "pause":
		p.paused = !p.paused
	case "break":
		if p.connected {
			p.connected, p.in, p.out = false, nil, nil
			w.do(coordinator.Lost{Worker: p.id, Reason: "was lost (its stream broke)", Broken: true})
		}
	case "crash":
		if p.at == runs {
			p.at = crashed
		}
	case "tick":
		w.tick()
	case "wait":
		for range 60 {
			w.tick()
		}
	case "restart":
		w.restartMaster()
	case "resize":
		w.do(coordinator.Resize{Min: w.cfg.Min, Max: w.cfg.Min + rapid.IntRange(0, 3).Draw(t, "burst")})
	default:
		actions := w.actions()
		actions = slices.DeleteFunc(actions, func(a action) bool {
			return len(a.name) > 4 && a.name[len(a.name)-4:] == "well" && rapid.IntRange(0, 9).Draw(t, "too early") > 0
		})
		if len(actions) == 0 {
			w.tick()
			return
		}
		rapid.SampledFrom(actions).Draw(t, "action").do()
	}
}

func (w *commands) dump() (text string) {
	for _, id := range sorted(w.workers) {
		p := w.workers[id]
		text += fmt.Sprintf("\n  worker %d: %s in generation %d, connected %t, leaves %t, %d messages to it, %d from it; member %+v", id, p.at, p.generation, p.connected, p.leaves, len(p.in), len(p.out), w.g.members[id])
	}
	return fmt.Sprintf("phase %v, step %d, current %+v, %d pending pods, now %v, earliest %v, unwindBy %v%s", w.g.phase, w.g.step, w.g.current, len(w.pending), w.now, w.g.earliest, w.g.unwindBy, text)
}

// TestACommandGoesOnWhileItsMasterIsReplaced replaces the master while two ranks run: no rank is stopped.
func TestACommandGoesOnWhileItsMasterIsReplaced(t *testing.T) {
	cfg := restartConfig()
	cfg.Min, cfg.Max = 2, 2
	w := newCommands(cfg, t.Fatalf)
	until := func(what string, done func() bool) {
		for i := 0; !done(); i++ {
			if i > 1000 {
				t.Fatalf("never %s: %s", what, w.dump())
			}
			if actions := slices.DeleteFunc(w.actions(), func(a action) bool { return a.name[len(a.name)-4:] == "well" }); len(actions) > 0 {
				actions[0].do()
			} else {
				w.tick()
			}
		}
	}
	both := func() bool {
		return len(w.workers) == 2 && w.workers[0].at == runs && w.workers[1].at == runs && w.workers[0].connected && w.workers[1].connected
	}
	until("two ranks", both)
	before := w.workers[0].generation
	w.restartMaster()
	until("two ranks of the next master", func() bool { return both() && w.g.current != nil })
	for range 200 {
		w.tick()
	}
	if w.g.current.number != before || w.workers[0].generation != before || w.workers[1].at != runs {
		t.Errorf("the command was started again: generation %d instead of %d", w.g.current.number, before)
	}
}

// TestACommandIsNotStoppedForAStreamThatBreaksAndComesBack breaks a stream for less than Reconnect, and then for
// longer.
func TestACommandIsNotStoppedForAStreamThatBreaksAndComesBack(t *testing.T) {
	for _, c := range []struct {
		away    time.Duration
		stopped bool
	}{{3 * time.Second, false}, {6 * time.Second, true}} {
		cfg := restartConfig()
		cfg.Min, cfg.Max = 2, 2
		g := New(cfg)
		step := func(e Event) (effects []Effect) { return append(effects, g.Step(e)...) }
		step(coordinator.Start{})
		for id := range 2 {
			step(coordinator.PodChanged{Worker: id, State: coordinator.PodRunning})
			step(Ready{Worker: id, Address: address(id), Checkpoint: NoState})
		}
		generation := g.current.number
		step(coordinator.Lost{Worker: 1, Reason: "was lost (its stream broke)", Broken: true})
		step(coordinator.Clock{At: c.away})
		aborted := g.current == nil
		if aborted != c.stopped {
			t.Errorf("after %v without a stream the command was stopped: %t", c.away, aborted)
		}
		effects := step(Ready{Worker: 1, Address: address(1), Checkpoint: NoState, Running: generation, Rank: 1, World: 2})
		aborted = slices.ContainsFunc(effects, func(e Effect) bool { a, ok := e.(Abort); return ok && slices.Equal(a.Members, []int{1}) })
		if aborted != c.stopped {
			t.Errorf("after %v the worker that reconnected received Abort: %t", c.away, aborted)
		}
	}
}
