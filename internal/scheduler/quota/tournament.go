package quota

import "container/heap"

// tournaments decides the entries in the order of fair sharing: tree by tree, each time the winner of a tournament from
// the leaves up (Kueue's pkg/scheduler/fair_sharing_iterator.go).
func (e *Engine) tournaments(entries []*entry, decide func(*entry)) {
	var roots []*node
	byTree := map[*node][]*entry{}
	for _, en := range entries {
		if en.outcome == outNotSelected {
			continue
		}
		root := en.q.root()
		if byTree[root] == nil {
			roots = append(roots, root)
		}
		byTree[root] = append(byTree[root], en)
	}
	for _, root := range roots {
		newTournament(root, byTree[root]).play(decide)
	}
}

// tournament is played among the heads of a tree. What is decided about one changes the shares in its branch below the
// root only, so that each other branch keeps its winner until that winner's turn has come.
type tournament struct {
	root *node
	left map[*queue]*entry
	// shares has, for each entry and each cohort above it, the share of the cohort's branch to the entry, with what the
	// entry asks for.
	shares map[*entry]map[*node]share
	// branches are those below the root that have a head left, by their winners.
	branches []branch
}

// branch is a child of the root, and the entry that wins there.
type branch struct {
	child  *node
	winner *entry
}

func newTournament(root *node, entries []*entry) *tournament {
	t := &tournament{root: root, left: map[*queue]*entry{}, shares: map[*entry]map[*node]share{}}
	for _, en := range entries {
		t.left[en.q] = en
	}
	for _, child := range root.children {
		t.enter(child, t.winner(child))
	}
	for _, q := range root.queues {
		t.enter(&q.node, t.head(q))
	}
	if len(t.branches) == 0 { // a queue without a cohort
		t.branches = []branch{{root, entries[0]}}
	}
	heap.Init(t)
	return t
}

func (t *tournament) enter(child *node, winner *entry) {
	if winner != nil {
		t.branches = append(t.branches, branch{child, winner})
	}
}

// play decides all entries.
func (t *tournament) play(decide func(*entry)) {
	for len(t.branches) > 0 {
		b := &t.branches[0]
		delete(t.left, b.winner.q)
		decide(b.winner)
		if b.winner = t.winner(b.child); b.winner == nil {
			heap.Pop(t)
		} else {
			heap.Fix(t, 0)
		}
	}
}

func (t *tournament) Len() int      { return len(t.branches) }
func (t *tournament) Swap(i, j int) { t.branches[i], t.branches[j] = t.branches[j], t.branches[i] }
func (t *tournament) Push(x any)    { t.branches = append(t.branches, x.(branch)) }

func (t *tournament) Less(i, j int) bool {
	return t.beats(t.branches[i].winner, t.branches[j].winner, t.root)
}

func (t *tournament) Pop() any {
	last := t.branches[len(t.branches)-1]
	t.branches = t.branches[:len(t.branches)-1]
	return last
}

// winner of a cohort's subtree as things stand; nil if no head is left there.
func (t *tournament) winner(n *node) *entry {
	var best *entry
	consider := func(en *entry) {
		if en != nil && (best == nil || t.beats(en, best, n)) {
			best = en
		}
	}
	for _, child := range n.children {
		consider(t.winner(child))
	}
	for _, q := range n.queues {
		consider(t.head(q))
	}
	return best
}

// head gives a queue's entry, if it is left, with its shares as things stand.
func (t *tournament) head(q *queue) *entry {
	en := t.left[q]
	if en == nil {
		return nil
	}
	var above []*node
	for n := &q.node; n != nil; n = n.parent {
		above = append(above, n)
	}
	before := saveUsage(above)
	q.addAll(en.a.usage)
	shares := make(map[*node]share, len(above))
	for n := &q.node; n.parent != nil; n = n.parent {
		shares[n.parent] = n.share()
	}
	before.restore()
	t.shares[en] = shares
	return en
}

// beats reports whether an entry goes before another at a cohort: its branch does not borrow what it asks for, has the
// smaller share, or it has the higher priority, or is older.
func (t *tournament) beats(a, b *entry, at *node) bool {
	sa, sb := t.shares[a][at], t.shares[b][at]
	if x, y := sa.borrowsOf(a.a.usage), sb.borrowsOf(b.a.usage); x != y {
		return !x
	}
	if c := sa.compare(sb); c != 0 {
		return c < 0
	}
	if a.w.effective != b.w.effective {
		return a.w.effective > b.w.effective
	}
	return byAge(a.w, b.w) < 0
}
