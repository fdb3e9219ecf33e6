package group

import (
	"fmt"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// world is a model of everything around a group: processes with scripts, the process groups that they form, checkpoints,
// pods and the network. Each of its actions is one small thing that happens, so that a schedule of actions can end a
// process at any point of a step. It checks the invariants where states change.
type world struct {
	fatalf      func(format string, args ...any)
	cfg         Config
	k           int // virtual workers of a step
	g           *Group
	now         time.Duration
	processes   map[int]*process
	pending     map[int]bool // pods without a process
	groups      map[int64]*processGroup
	sums        int
	checkpoints []state // states that were written, by all workers' scripts to one volume
	exit        *coordinator.Exit
	committed   int64          // steps, since the newest generation began
	tally       map[string]int // how often something happened
}

// state is the history of a script's parameters: the sum that each step has applied.
type state []*sum

// sum is what one reduction adds up: which virtual workers.
type sum struct {
	id    int
	step  int64
	count []int // of each virtual worker
}

// processGroup is the members of a generation, as far as they have come.
type processGroup struct {
	begin  Begin
	broken bool        // a member left during a collective: the others fail, or hang until the master aborts the generation
	met    map[int]int // worker → collectives that it has entered: 0 none, 1 the broadcast, 2 the reduction of step, …
	sum    *sum        // of the reduction in progress
	reads  state       // what the source sends
}

// Points of a script.
const (
	waits    = "waits"    // for a generation
	meets    = "meets"    // at the store, and receives the state
	computes = "computes" // its share
	reduces  = "reduces"  // has contributed its share
	holds    = "holds"    // holds the sum, and waits for the commit
	ends     = "ends"     // holds the state of the last step, and waits for Finish
	finishes = "finishes" // runs what follows the last step
)

// point is where in a step a process is, for the tally of what happened there.
func (p *process) point() string {
	switch {
	case p.at == waits && (p.state == nil || !p.connected):
		return "joining"
	case p.at == waits:
		return "between two generations"
	case p.at == meets && p.pg.met[p.id] == 0:
		return "meeting the others"
	case p.at == meets:
		return "broadcasting"
	case p.at == computes && p.sum == nil && p.state != nil && len(p.state) > int(p.pg.begin.Step):
		return "computing, after a commit"
	case p.at == computes:
		return "computing"
	case p.at == reduces:
		return "reducing"
	case p.at == holds && slices.ContainsFunc(p.in, func(e Effect) bool { _, is := e.(Commit); return is }):
		return "holding the sum, with the commit on its way"
	case p.at == holds:
		return "between reduce and commit"
	}
	return "finishing"
}

// process is a worker's process and its script.
type process struct {
	id        int
	connected bool
	paused    bool
	leaves    bool // it has received SIGTERM
	in        []Effect
	out       []Event
	at        string
	state     state // nil: it has just started, or its state is incomplete
	pg        *processGroup
	of        int64
	sum       *sum
	saves     state // a checkpoint that is being written
	saver     bool
}

func newWorld(cfg Config, k int, fatalf func(string, ...any)) *world {
	w := &world{fatalf: fatalf, cfg: cfg, k: k, processes: map[int]*process{}, pending: map[int]bool{}, groups: map[int64]*processGroup{}, tally: map[string]int{}}
	w.g = New(cfg)
	if cfg.MinPodsExternal {
		for id := range cfg.Min {
			w.pending[id] = true
			w.do(coordinator.PodChanged{Worker: id, Minimum: true, State: coordinator.PodPending})
		}
	}
	w.do(coordinator.Start{})
	return w
}

func (w *world) do(e Event) {
	if w.exit != nil {
		return
	}
	for _, e := range []Event{coordinator.Clock{At: w.now}, e} {
		for _, effect := range append([]Effect{}, w.g.Step(e)...) { // Step's result is valid until the next call only
			w.effect(effect)
		}
	}
}

func (w *world) effect(e Effect) {
	switch e := e.(type) {
	case Begin:
		w.begin(e)
	case Commit:
		if e.Step != w.committed {
			w.fatalf("step %d was committed after step %d", e.Step, w.committed-1)
		}
		w.committed = e.Step + 1
		for _, id := range e.Members {
			if p := w.processes[id]; p != nil && p.connected && (p.at != holds && !w.sent(p)) {
				w.fatalf("step %d was committed and worker %d %s", e.Step, id, p.at)
			}
			w.send(id, e)
		}
	case Abort:
		for _, id := range e.Members {
			w.send(id, e)
		}
	case Finish:
		w.send(e.Worker, e)
	case Save:
		w.send(e.Worker, e)
	case coordinator.Dismiss:
		w.send(e.Worker, e)
	case coordinator.Disconnect:
		if p := w.processes[e.Worker]; p != nil {
			w.disconnect(p)
		}
	case coordinator.Refuse:
		w.fatalf("worker %d was refused: %s", e.Worker, e.Reason)
	case coordinator.CreatePod:
		if w.pending[e.Worker] || w.processes[e.Worker] != nil {
			w.fatalf("pod %d was created twice", e.Worker)
		}
		w.pending[e.Worker] = true
	case coordinator.DeletePod:
		if w.pending[e.Worker] {
			delete(w.pending, e.Worker)
		} else if p := w.processes[e.Worker]; p != nil {
			p.leaves = true
		}
	case coordinator.Exit:
		w.exit = &e
	}
}

// sent reports whether a process has sent that it holds the sum.
func (w *world) sent(p *process) bool { return p.sum != nil }

func (w *world) begin(e Begin) {
	if alone := e.Step == w.cfg.Steps && len(e.Members) == 1; !alone && (len(e.Members) < w.g.pods.min || len(e.Members) > max(w.g.pods.max, w.g.pods.min) || len(e.Members)%w.cfg.Multiple != 0) {
		w.fatalf("generation %d has %d members, and %d to %d in multiples of %d were asked for", e.Generation, len(e.Members), w.g.pods.min, w.g.pods.max, w.cfg.Multiple)
	}
	pg := &processGroup{begin: e, met: map[int]int{}}
	w.groups[e.Generation] = pg
	if e.Store != address(e.Members[0]) {
		w.fatalf("generation %d meets at %s", e.Generation, e.Store)
	}
	w.goesOn(e)
	for _, id := range e.Members {
		w.send(id, e)
	}
}

// goesOn checks that no generation begins before a step that was committed, unless nobody whom the master knows holds the
// state of that step any more.
func (w *world) goesOn(e Begin) {
	if e.Step < w.g.written {
		w.fatalf("generation %d begins at step %d, and a checkpoint is of step %d", e.Generation, e.Step, w.g.written)
	}
	for _, id := range sorted(w.g.members) {
		held := w.g.members[id].held
		if p := w.processes[id]; p != nil && slices.Contains(e.Members, id) {
			held = p.held() // the group expects it to be replaced
		}
		if held > e.Step {
			w.fatalf("generation %d begins at step %d, and worker %d holds the state of step %d", e.Generation, e.Step, id, held)
		}
	}
	if e.Step < w.committed {
		w.tally["begins before a step that was committed: "+w.whereIs(w.committed)]++
	}
	w.committed = e.Step
}

// whereIs says who has the state of a step that the master does not know of.
func (w *world) whereIs(step int64) string {
	for _, id := range sorted(w.processes) {
		switch p := w.processes[id]; {
		case p.held() < step:
		case p.paused:
			return "a worker that does not respond holds it"
		case !p.connected:
			return "a worker that is not connected holds it"
		default:
			return "a worker that has not been heard holds it"
		}
	}
	return "nobody is left who holds it"
}

func address(worker int) string { return fmt.Sprintf("worker-%d:29500", worker) }

func (w *world) send(id int, e Effect) {
	if p := w.processes[id]; p != nil && p.connected {
		p.in = append(p.in, e)
	}
}

// step of the state that a script holds.
func (p *process) held() int64 {
	if p.state == nil {
		return NoState
	}
	return int64(len(p.state))
}

func (w *world) newestCheckpoint() state {
	var newest state
	for _, s := range w.checkpoints {
		if len(s) > len(newest) {
			newest = s
		}
	}
	return newest
}

// connect makes a script that waits ready.
func (w *world) connect(p *process) {
	p.connected, p.in, p.out = true, nil, nil
	checkpoint := NoState
	if c := w.newestCheckpoint(); c != nil {
		checkpoint = int64(len(c))
	}
	p.out = append(p.out, Ready{Worker: p.id, Held: p.held(), Of: p.of, Checkpoint: checkpoint, Finishing: p.at == finishes, Address: address(p.id)})
	if p.leaves {
		p.out = append(p.out, coordinator.Leaving{Worker: p.id})
	}
}

// disconnect ends a stream: what is on its way is lost, and the script unwinds.
func (w *world) disconnect(p *process) {
	p.connected, p.in, p.out = false, nil, nil
	if p.at != finishes {
		w.unwind(p)
	}
}

// unwind takes a script out of its generation.
func (w *world) unwind(p *process) {
	if p.pg != nil && p.at != holds && p.at != ends {
		p.pg.broken = true
	}
	if p.at == meets && p.pg.begin.Broadcast && p.pg.begin.Members[p.pg.begin.Source] != p.id && p.pg.met[p.id] > 0 {
		p.state = nil // some of it has been overwritten
	}
	p.at, p.pg, p.sum = waits, nil, nil
}

// kill ends a process at once.
func (w *world) kill(p *process, code string) {
	if p.pg != nil && p.at != ends {
		p.pg.broken = true
	}
	delete(w.processes, p.id)
	external := w.cfg.MinPodsExternal && p.id < w.cfg.Min
	if p.connected {
		for _, e := range p.out { // what was sent arrives before the end
			w.do(e)
		}
		w.do(coordinator.Lost{Worker: p.id, Reason: code})
	}
	w.do(coordinator.PodChanged{Worker: p.id, Minimum: external, State: coordinator.PodEnded, Disrupted: true})
	if external {
		w.pending[p.id] = true
		w.do(coordinator.PodChanged{Worker: p.id, Minimum: true, State: coordinator.PodPending})
	}
}

// actions are what can happen next without a disturbance, by name, in a fixed order.
func (w *world) actions() (out []action) {
	if w.exit != nil {
		return nil
	}
	for _, id := range sorted(w.pending) {
		out = append(out, action{fmt.Sprintf("pod %d starts", id), func() {
			delete(w.pending, id)
			p := &process{id: id, at: waits}
			w.processes[id] = p
			w.do(coordinator.PodChanged{Worker: id, Minimum: w.cfg.MinPodsExternal && id < w.cfg.Min, State: coordinator.PodRunning})
			w.connect(p)
		}})
	}
	for _, id := range sorted(w.processes) {
		p := w.processes[id]
		if p.paused {
			continue
		}
		if !p.connected {
			out = append(out, action{fmt.Sprintf("worker %d connects", id), func() { w.connect(p) }})
			continue
		}
		if len(p.out) > 0 {
			out = append(out, action{fmt.Sprintf("the master hears worker %d", id), func() {
				e := p.out[0]
				p.out = p.out[1:]
				w.do(e)
			}})
		}
		if len(p.in) > 0 {
			out = append(out, action{fmt.Sprintf("worker %d hears", id), func() {
				e := p.in[0]
				p.in = p.in[1:]
				w.hear(p, e)
			}})
		}
		if p.saves != nil {
			out = append(out, action{fmt.Sprintf("worker %d has saved", id), func() {
				w.checkpoints = append(w.checkpoints, p.saves)
				p.out = append(p.out, Saved{Worker: id, Step: int64(len(p.saves))})
				p.saves = nil
			}})
		}
		out = append(out, w.scriptActions(p)...)
	}
	return out
}

// action is one thing that can happen.
type action struct {
	name string
	do   func()
}

// scriptActions are what a script can do next.
func (w *world) scriptActions(p *process) (out []action) {
	add := func(name string, do func()) {
		out = append(out, action{fmt.Sprintf("worker %d %s", p.id, name), do})
	}
	fails := func() {
		held := p.held()
		generation := p.pg.begin.Generation
		w.unwind(p)
		if p.held() != held && p.state != nil {
			w.fatalf("worker %d lost its state", p.id)
		}
		p.out = append(p.out, Idle{Worker: p.id, Generation: generation, Held: p.held(), Of: p.of, Reason: "connection closed by peer"})
	}
	switch p.at {
	case meets:
		if p.pg.met[p.id] == 0 {
			add("meets the others", func() {
				p.pg.met[p.id] = 1
				if b := p.pg.begin; b.Members[b.Source] == p.id {
					if b.Load {
						p.state = slices.Clone(w.newestCheckpoint())
					} else if p.state == nil {
						p.state = state{}
					}
					if int64(len(p.state)) < b.Step || (!b.Load && int64(len(p.state)) != b.Step) {
						w.fatalf("the source of generation %d, worker %d, holds step %d, not %d", b.Generation, p.id, len(p.state), b.Step)
					}
					p.state = p.state[:b.Step:b.Step]
					p.pg.reads = p.state
				}
			})
			return out
		}
		if len(p.pg.met) == len(p.pg.begin.Members) {
			add("has the state", func() {
				if b := p.pg.begin; b.Broadcast {
					p.state = slices.Clone(p.pg.reads)
				} else if p.held() != b.Step {
					w.fatalf("worker %d holds step %d, and generation %d begins at %d without a broadcast", p.id, p.held(), b.Generation, b.Step)
				}
				p.of = p.pg.begin.Generation
				w.next(p)
			})
		}
		if p.pg.broken {
			add("cannot meet the others", fails)
		}
	case computes:
		add("contributes", func() {
			pg := p.pg
			if pg.sum == nil || pg.sum.step != p.held() {
				w.sums++
				pg.sum = &sum{id: w.sums, step: p.held(), count: make([]int, w.k)}
			}
			lo, hi := Share(w.k, len(pg.begin.Members), slices.Index(pg.begin.Members, p.id))
			for v := lo; v < hi; v++ {
				pg.sum.count[v]++
			}
			pg.met[p.id] = int(p.held()) + 2
			p.at = reduces
		})
	case reduces:
		whole := true
		for _, id := range p.pg.begin.Members {
			whole = whole && p.pg.met[id] >= int(p.held())+2
		}
		if whole {
			add("has the sum", func() {
				p.at, p.sum = holds, p.pg.sum
				p.out = append(p.out, Reduced{Worker: p.id, Generation: p.pg.begin.Generation, Step: p.held(), Records: 1})
			})
		}
		if p.pg.broken {
			add("cannot add the gradients", fails)
		}
	case finishes:
		if p.saver {
			add("saves the last state", func() {
				p.saver = false
				w.checkpoints = append(w.checkpoints, slices.Clone(p.state))
				p.out = append(p.out, Saved{Worker: p.id, Step: p.held()})
			})
			return out
		}
		if len(p.out) == 0 || p.out[len(p.out)-1] != (Finished{Worker: p.id}) {
			add("is done", func() { p.out = append(p.out, Finished{Worker: p.id}) })
		}
	}
	if p.leaves && !slices.ContainsFunc(p.out, func(e Event) bool { return e == coordinator.Leaving{Worker: p.id} }) {
		if m := w.g.members[p.id]; m != nil && !m.leaving {
			add("asks to leave", func() { p.out = append(p.out, coordinator.Leaving{Worker: p.id}) })
		}
	}
	return out
}

// next is a script's next step.
func (w *world) next(p *process) {
	p.at, p.sum = computes, nil
	if p.held() == w.cfg.Steps {
		p.at = ends
	}
}

// hear is a message of the master.
func (w *world) hear(p *process, e Effect) {
	switch e := e.(type) {
	case Begin:
		if p.at != waits {
			w.fatalf("generation %d begins and worker %d %s", e.Generation, p.id, p.at)
		}
		p.at, p.pg = meets, w.groups[e.Generation]
	case Commit:
		if p.at != holds || p.pg.begin.Generation != e.Generation || p.held() != e.Step {
			w.fatalf("worker %d, which %s at step %d, received the commit of step %d", p.id, p.at, p.held(), e.Step)
		}
		for v, n := range p.sum.count {
			if n != 1 {
				w.fatalf("virtual worker %d counts %d times in step %d", v, n, e.Step)
			}
		}
		p.state = append(slices.Clone(p.state), p.sum)
		if e.Save && e.Members[0] == p.id {
			p.saves = slices.Clone(p.state)
		}
		w.next(p)
		if e.Last {
			p.at, p.pg, p.sum = waits, nil, nil
		}
	case Abort:
		if p.pg == nil || p.pg.begin.Generation != e.Generation {
			return // it has failed by itself
		}
		w.unwind(p)
		p.out = append(p.out, Idle{Worker: p.id, Generation: e.Generation, Held: p.held(), Of: p.of})
	case Save:
		if p.at != waits || p.held() != e.Step {
			w.fatalf("worker %d %s with the state of step %d, and was asked to save step %d", p.id, p.at, p.held(), e.Step)
		}
		p.saves = slices.Clone(p.state)
	case Finish:
		if p.pg == nil || p.pg.begin.Generation != e.Generation {
			return
		}
		if p.at == meets { // it comes to the end first
			p.in = append([]Effect{e}, p.in...)
			return
		}
		p.at, p.saver = finishes, e.Saver
	case coordinator.Dismiss:
		delete(w.processes, p.id)
		if p.pg != nil && p.at != ends && p.at != finishes {
			p.pg.broken = true
		}
		w.do(coordinator.Lost{Worker: p.id, Reason: coordinator.LostInOrder})
		external := w.cfg.MinPodsExternal && p.id < w.cfg.Min
		w.do(coordinator.PodChanged{Worker: p.id, Minimum: external, State: coordinator.PodEnded, Disrupted: p.leaves})
		if external && p.leaves {
			w.pending[p.id] = true
			w.do(coordinator.PodChanged{Worker: p.id, Minimum: true, State: coordinator.PodPending})
		}
	}
	w.agree()
}

// agree checks that the members of the current generation hold the same state, or one that differs by a step whose commit
// is on its way.
func (w *world) agree() {
	c := w.g.current
	if c == nil {
		return
	}
	var first *process
	for _, id := range c.members {
		p := w.processes[id]
		if p == nil || p.pg == nil || p.pg.begin.Generation != c.number || p.at == meets {
			continue
		}
		if first == nil {
			first = p
			continue
		}
		n := min(len(first.state), len(p.state))
		if !slices.Equal(first.state[:n], p.state[:n]) || max(len(first.state), len(p.state)) > n+1 {
			w.fatalf("workers %d and %d hold different states", first.id, p.id)
		}
	}
}

// tick lets 100 ms pass.
func (w *world) tick() {
	w.now += 100 * time.Millisecond
	var received []int
	for id, p := range w.processes {
		if p.connected && !p.paused {
			received = append(received, id)
		}
	}
	slices.Sort(received)
	w.do(coordinator.Tick{Heard: received})
}

// restartMaster loses the group, and begins another one that knows the pods.
func (w *world) restartMaster() {
	if w.g.over > 0 {
		return // the master has noted that the job is done before it lets the workers go
	}
	cfg := w.cfg
	cfg.LastGeneration = w.g.number
	cfg.Restarted, cfg.LastWorkerID, cfg.Min, cfg.Max = true, w.g.pods.lastID, w.g.pods.min, w.g.pods.max
	w.g, w.groups = New(cfg), map[int64]*processGroup{}
	for _, id := range sorted(w.processes) {
		w.disconnect(w.processes[id])
		w.do(coordinator.PodChanged{Worker: id, Minimum: id < cfg.Min, State: coordinator.PodRunning})
	}
	for _, id := range sorted(w.pending) {
		w.do(coordinator.PodChanged{Worker: id, Minimum: id < cfg.Min, State: coordinator.PodPending})
	}
	w.do(coordinator.Start{})
}

// dump is what the processes do, for messages.
func (w *world) dump() (text string) {
	for _, id := range sorted(w.processes) {
		p := w.processes[id]
		text += fmt.Sprintf("\n  worker %d %s at step %d, connected %t, leaves %t, %d messages to it, %d from it; member %+v, group %+v", id, p.at, p.held(), p.connected, p.leaves, len(p.in), len(p.out), w.g.members[id], p.pg)
	}
	return text
}
