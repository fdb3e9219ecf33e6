package forecast

import (
	"cmp"
	"slices"
)

// or is the answer if either of two may be true: what both say is certain, and everything else is possible.
func (a Answer) or(b Answer) Answer {
	merged := a
	merged.Queues = eitherQueues(a.Queues, b.Queues)
	merged.Pods = eitherPods(a.Pods, b.Pods)
	merged.Evicts = eitherEvicts(a.Evicts, b.Evicts)
	merged.MaySpareAll = a.sparesAllOf(merged.Evicts) || b.sparesAllOf(merged.Evicts)
	for _, row := range b.Alike {
		if !slices.ContainsFunc(a.Alike, func(other []string) bool { return slices.Equal(row, other) }) {
			merged.Alike = append(slices.Clip(merged.Alike), row)
		}
	}
	for _, reason := range b.Approximate {
		merged.Approximate = withReason(merged.Approximate, reason)
	}
	for _, name := range b.NeedsConfigMaps {
		if !slices.Contains(a.NeedsConfigMaps, name) {
			merged.NeedsConfigMaps = append(slices.Clip(merged.NeedsConfigMaps), name)
		}
	}
	merged.Replacements = slices.Concat(a.Replacements, b.Replacements)
	merged.Choices = a.Choices + b.Choices
	merged.Stops = Range{min(a.Stops.Min, b.Stops.Min), max(a.Stops.Max, b.Stops.Max)}
	if a.Estimate == nil || b.Estimate != nil && b.Estimate.At.After(a.Estimate.At) {
		merged.Estimate = b.Estimate
	}
	merged.Outcome = merged.outcome()
	return merged
}

// sparesAllOf reports whether none of the uncertain evictions among many may happen where the answer is true.
func (a Answer) sparesAllOf(evicts []Eviction) bool {
	uncertain, happens := false, false
	for _, e := range evicts {
		at := slices.IndexFunc(a.Evicts, e.sameVictim)
		if e.Certain || at < 0 {
			continue
		}
		happens = happens || a.Evicts[at].Certain
		uncertain = true
	}
	return !happens && (a.MaySpareAll || !uncertain)
}

func (e Eviction) sameVictim(other Eviction) bool {
	return e.Workload == other.Workload && e.Namespace == other.Namespace && e.Name == other.Name
}

// eitherEvicts are the evictions of either of two answers. Those of both are as certain as the less certain one.
func eitherEvicts(some, others []Eviction) []Eviction {
	merged := slices.Clone(some)
	for i := range merged {
		at := slices.IndexFunc(others, merged[i].sameVictim)
		merged[i].Certain = merged[i].Certain && at >= 0 && others[at].Certain
	}
	for _, e := range others {
		if !slices.ContainsFunc(some, e.sameVictim) {
			e.Certain = false
			merged = append(merged, e)
		}
	}
	return merged
}

// eitherPods combine the forecasts for the same pods, by their roles.
func eitherPods(some, others []PodForecast) []PodForecast {
	merged := slices.Clone(some)
	for i, pod := range merged {
		if at := slices.IndexFunc(others, func(p PodForecast) bool { return p.Role == pod.Role }); at >= 0 {
			merged[i] = pod.or(others[at])
		}
	}
	return merged
}

// severity orders states: of two that are possible, an answer has the one of which the user has to know more.
var severity = []State{Starts, Follows, Suspended, Queued, Waits, NotAdmitted, Rejected, Unfit}

// or is the forecast for a pod of which either of two may be true. The pod waits if it waits in one of them, and has the
// nodes on which it may start in the other.
func (p PodForecast) or(q PodForecast) PodForecast {
	worse, better := p, q
	if slices.Index(severity, q.State) > slices.Index(severity, p.State) {
		worse, better = q, p
	}
	merged := worse
	if worse.State == Unfit && better.State != Unfit { // not on the nodes of one of the flavors
		merged.State = Waits
	}
	merged.passing = p.passing || q.passing
	merged.expires = p.expires || q.expires
	merged.Victims = (p.Victims || len(p.After) == 0) && (q.Victims || len(q.After) == 0) && len(p.After)+len(q.After) > 0
	merged.Grace = max(p.Grace, q.Grace)
	merged.Others = max(p.Others, q.Others)
	merged.Nodes = joined(p.Nodes, q.Nodes)
	merged.After = joined(p.After, q.After)
	return merged
}

// eitherQueues combine the decisions about the same parts, by the roles of their pods. A part that only one of two answers
// admits is perhaps admitted.
func eitherQueues(some, others []QueueStatus) []QueueStatus {
	merged := slices.Clone(some)
	same := func(s QueueStatus) func(QueueStatus) bool {
		return func(o QueueStatus) bool { return s.Queue == o.Queue && slices.Equal(s.Roles, o.Roles) }
	}
	for i, s := range merged {
		if at := slices.IndexFunc(others, same(s)); at >= 0 {
			merged[i] = s.or(others[at])
		} else { // only one of them creates the part
			merged[i].Perhaps, merged[i].Admitted = s.Admitted || s.Perhaps, false
		}
	}
	for _, s := range others {
		if !slices.ContainsFunc(some, same(s)) {
			s.Perhaps, s.Admitted = s.Admitted || s.Perhaps, false
			merged = append(merged, s)
		}
	}
	return merged
}

// or is the decision about a part of which either of two may be true.
func (s QueueStatus) or(o QueueStatus) QueueStatus {
	merged := s
	merged.Admitted = s.Admitted && o.Admitted
	merged.Perhaps = !merged.Admitted && (s.Admitted || o.Admitted || s.Perhaps || o.Perhaps)
	merged.Never = s.Never && o.Never
	merged.ClusterQueue = cmp.Or(s.ClusterQueue, o.ClusterQueue)
	merged.Flavors = joined(s.Flavors, o.Flavors)
	merged.Borrows = s.Borrows || o.Borrows
	merged.Checks = joined(s.Checks, o.Checks)
	if merged.Pods = min(s.Pods, o.Pods); !s.Admitted || !o.Admitted {
		merged.Pods = max(s.Pods, o.Pods)
	}
	merged.Why = cmp.Or(s.Why, o.Why)
	if len(o.Ahead) > len(s.Ahead) {
		merged.Ahead = o.Ahead
	}
	merged.ReadyTimeout = max(s.ReadyTimeout, o.ReadyTimeout)
	return merged
}

// joined is a list with the items of another that it does not have.
func joined(some, others []string) []string {
	for _, item := range others {
		if !slices.Contains(some, item) {
			some = append(slices.Clip(some), item)
		}
	}
	return some
}
