package group

// reconcileKeeping has the newest state written to a checkpoint where it would be lost otherwise: when the workers that
// hold it leave, or the master stops. Leaving workers go as soon as that is not needed, or done.
func (g *Group) reconcileKeeping() {
	if g.over > 0 || g.ended() {
		return
	}
	for _, id := range sorted(g.members) {
		if m := g.members[id]; m.leaving && m.idle && g.spare(id, m) {
			g.release(id)
		}
	}
	if g.keeper != noWorker || g.current != nil || g.cfg.Restart != nil {
		return
	}
	for _, id := range sorted(g.members) {
		m := g.members[id]
		if m.idle && m.held > g.newest && (g.stopped || m.leaving) && (g.keeper == noWorker || m.held > g.members[g.keeper].held) {
			g.keeper = id
		}
	}
	if g.keeper != noWorker {
		g.emit(Save{Worker: g.keeper, Step: g.members[g.keeper].held})
	}
}

// spare reports whether nothing is lost with a worker's state: a checkpoint or a worker that stays has one as new.
func (g *Group) spare(id int, m *member) bool {
	if g.cfg.Restart != nil || m.held <= max(g.newest, 0) {
		return true
	}
	for other, o := range g.members {
		if other != id && !o.leaving && o.held >= m.held {
			return true
		}
	}
	return false
}
