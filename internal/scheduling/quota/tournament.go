package quota

// tournaments decides the entries in the order of fair sharing: tree by tree, each time the winner of a tournament from the leaves up
// (Kueue's pkg/scheduler/fair_sharing_iterator.go).
func (e *Engine) tournaments(entries []*entry, decide func(*entry)) {
	var roots []*node
	byTree := map[*node]map[*queue]*entry{}
	for _, en := range entries {
		if en.outcome == outNotSelected {
			continue
		}
		root := en.q.root()
		if byTree[root] == nil {
			byTree[root] = map[*queue]*entry{}
			roots = append(roots, root)
		}
		byTree[root][en.q] = en
	}
	for _, root := range roots {
		left := byTree[root]
		for len(left) > 0 {
			winner := (&tournament{left: left, shares: map[*entry]map[*node]share{}}).winner(root)
			if winner == nil { // a queue without a cohort
				for _, en := range left {
					winner = en
				}
			}
			delete(left, winner.q)
			decide(winner)
		}
	}
}

// tournament is one round among the heads that are left.
type tournament struct {
	left map[*queue]*entry
	// shares has, for each entry and each cohort above it, the share of the cohort's branch to the entry, with what the entry asks for.
	shares map[*entry]map[*node]share
}

// winner of a cohort's subtree; nil if no head is left there.
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
		if en := t.left[q]; en != nil {
			t.measure(en)
			consider(en)
		}
	}
	return best
}

// measure computes an entry's shares all the way up.
func (t *tournament) measure(en *entry) {
	shares := map[*node]share{}
	var above []*node
	for n := &en.q.node; n != nil; n = n.parent {
		above = append(above, n)
	}
	before := saveUsage(above)
	en.q.addAll(en.a.usage)
	for n := &en.q.node; n.parent != nil; n = n.parent {
		shares[n.parent] = n.share()
	}
	before.restore()
	t.shares[en] = shares
}

// beats tells whether an entry goes before another at a cohort: its branch does not borrow what it asks for, has the smaller share, or it has the
// higher priority, or is older.
func (t *tournament) beats(a, b *entry, at *node) bool {
	sa, sb := t.shares[a][at], t.shares[b][at]
	if x, y := sa.borrowsOf(a.a.usage), sb.borrowsOf(b.a.usage); x != y {
		return !x
	}
	if c := sa.compare(sb); c != 0 {
		return c < 0
	}
	if a.w.Priority != b.w.Priority {
		return a.w.Priority > b.w.Priority
	}
	return byAge(a.w, b.w) < 0
}
