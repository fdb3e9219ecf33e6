package quota

// why explains an entry's outcome.
func (en *entry) why() Explanation {
	x := Explanation{Flavors: en.a.trials}
	if en.hunt == nil {
		return x
	}
	x.Nobody = en.hunt.nobody
	if len(en.targets) > 0 {
		x.Nobody = ""
	}
	for _, v := range en.victims() {
		x.Victims = append(x.Victims, v.trial(true))
	}
	for _, v := range en.hunt.returned {
		x.Victims = append(x.Victims, v.trial(false))
	}
	return x
}

func (v victim) trial(evicted bool) VictimTrial {
	t := VictimTrial{Workload: v.w.NamespacedName, Priority: v.w.Priority, Reason: v.reason, Evicted: evicted}
	if v.w.heldIn != nil {
		t.ClusterQueue = v.w.heldIn.name
	}
	return t
}
