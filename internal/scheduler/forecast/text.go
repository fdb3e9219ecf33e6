package forecast

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits of the items that a text names; a data source has all of them.
const (
	maxLines  = 10 // of evictions
	maxStarts = 6  // groups of pods
	maxEqual  = 4  // equal nodes
	maxAhead  = 5  // workloads ahead in a queue
)

// Summary describes the outcome for the job in a few words. It names the job, so that no two jobs' summaries are equal.
func (a Answer) Summary() string {
	name := shortName(a.Namespace, a.Name)
	evicts := slices.ContainsFunc(a.Evicts, func(e Eviction) bool { return !e.Own })
	switch a.Outcome {
	case Never:
		return name + " can never run"
	case Pends:
		if evicts {
			return name + " will preempt, and still wait"
		}
		if slices.ContainsFunc(a.Pods, func(p PodForecast) bool { return p.State == NotAdmitted }) {
			return name + " will be rejected by its node"
		}
		return name + " will wait"
	case Preempts:
		if a.MaySpareAll && !slices.ContainsFunc(a.Evicts, func(e Eviction) bool { return !e.Own && e.Certain }) {
			return name + " may preempt"
		}
		return name + " will preempt"
	default:
		return name + " will start without evicting any pods"
	}
}

// Text is the answer in lines: the decisions of its queue, the evictions and the outcomes for the evicted jobs, where
// and when its pods start, what waits and why, and how certain all this is.
func (a Answer) Text() string {
	var t text
	for _, s := range a.Queues {
		t.line("queue", s.text(len(a.Queues) > 1))
	}
	t.evictions(a.Evicts, a.MaySpareAll)
	t.starts(a.Pods)
	for _, pod := range a.Pods {
		if pod.State == Waits && len(pod.Nodes) > 0 {
			t.line("perhaps", pod.Role+" "+pod.where()+", or it waits: the scheduler breaks a tie")
		}
	}
	for _, row := range a.Alike {
		t.line("", join(runs(row))+" are interchangeable")
	}
	for _, group := range a.grouped(Waits) {
		t.line("waits", join(group.roles)+": "+group.why)
	}
	for _, group := range a.grouped(Rejected) {
		t.line("refused", join(group.roles)+", by the API server: "+group.why)
	}
	for _, group := range a.grouped(NotAdmitted) {
		t.line("refused", join(group.roles)+", by "+group.why)
	}
	for _, group := range a.grouped(Suspended) {
		t.line("waits", join(group.roles)+": the job is made suspended, and makes no pods before it is resumed")
	}
	for _, group := range a.grouped(Unfit) {
		verb := "fits"
		if len(group.roles) > 1 {
			verb = "fit"
		}
		t.line("never", fmt.Sprintf("%s %s on no node, even an empty one: %s", join(group.roles), verb, group.why))
	}
	if follows := a.grouped(Follows); len(follows) > 0 {
		t.line("then", join(follows[0].roles)+", made when what comes before runs")
	}
	if a.Estimate != nil {
		t.line("expects", a.Estimate.text(a.AsOf))
	}
	for _, name := range a.Counting {
		t.line("", fmt.Sprintf("counting %s, planned before it", name))
	}
	for _, name := range a.Beside {
		t.line("", fmt.Sprintf("counting %s, planned after it, which may come first", name))
	}
	for _, note := range a.Approximate {
		t.line("", "approximate: "+note.Text)
	}
	t.lines = append(t.lines, fmt.Sprintf("Based on the cluster state at %s; nothing is reserved.", clock(a.AsOf)))
	return strings.Join(t.lines, "\n")
}

func (e *Estimate) text(now time.Time) string {
	const day, minute = "2006-01-02 ", "15:04Z"
	at, early, late := e.At.UTC(), e.Earliest.UTC(), e.Latest.UTC()
	text := fmt.Sprintf("to start at about %s (in %s", at.Format(day+minute), at.Sub(now).Round(time.Minute))
	form := day + minute
	if early.Format(day) == at.Format(day) && late.Format(day) == at.Format(day) {
		form = minute
	}
	if early.Format(form) != late.Format(form) {
		text += fmt.Sprintf("; with a probability of 80 %% between %s and %s", early.Format(form), late.Format(form))
	}
	return text + "): " + e.From
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05Z") }

// text is lines with a word before each. Lines that begin with a blank are not broken by Terraform.
type text struct {
	lines []string
}

func (t *text) line(word, rest string) {
	t.lines = append(t.lines, strings.TrimRight(fmt.Sprintf("  %-8s%s", word, rest), " "))
}

func (s Standing) text(several bool) string {
	of := ""
	if several {
		of = join(s.Roles) + " "
	}
	if s.Admitted {
		text := fmt.Sprintf("%sadmitted by ClusterQueue %s", of, s.ClusterQueue)
		if len(s.Flavors) > 0 {
			text += " with quota of " + join(s.Flavors)
		}
		if s.Borrows {
			text += ", borrowed from its cohort"
		}
		if s.Pods < len(s.Roles) {
			text += fmt.Sprintf(", with %d of %d pods", s.Pods, len(s.Roles))
		}
		if len(s.Checks) > 0 {
			text += "; it starts when admission checks are ready: " + join(s.Checks)
		}
		return text
	}
	where := "LocalQueue " + s.Queue
	if s.ClusterQueue != "" {
		where = "ClusterQueue " + s.ClusterQueue
	}
	place := "first in line"
	if n := len(s.Ahead); n > 0 {
		place = fmt.Sprintf("behind %d: %s", n, some(s.Ahead, maxAhead))
	}
	verb := "waits in"
	if s.Never {
		verb = "is never admitted by"
		place = "even if it were the only one"
	}
	return fmt.Sprintf("%s%s %s, %s: %s", of, verb, where, place, s.Why)
}

// evictions are a line each; the candidates among which the scheduler chooses share one line.
func (t *text) evictions(all []Eviction, maySpareAll bool) {
	var uncertain []Eviction
	var lines []string
	for _, e := range all {
		if e.Certain {
			lines = append(lines, e.text())
		} else {
			uncertain = append(uncertain, e)
		}
	}
	if len(uncertain) > 0 {
		var names []string
		for i, e := range uncertain {
			if i == maxLines {
				names = append(names, fmt.Sprintf("%d more", len(uncertain)-maxLines))
				break
			}
			names = append(names, e.text())
		}
		note := " (tie)"
		switch {
		case maySpareAll && len(names) > 1:
			note = " (tie), or none of them"
		case len(names) == 1:
			note = " (perhaps: a tie may spare it)"
		}
		lines = append(lines, strings.Join(names, "\n          or ")+note)
	}
	for i, line := range lines {
		if i == maxLines && len(lines) > maxLines+1 {
			t.line("evicts", fmt.Sprintf("%d more; data.elastic_forecast names all", len(lines)-maxLines))
			return
		}
		t.line("evicts", line)
	}
}

// what names a victim: namespace/name, or its role in its job if it does not exist yet.
func (e Eviction) what() string {
	if e.Planned {
		return e.Name
	}
	return e.Namespace + "/" + e.Name
}

func (e Eviction) text() string {
	if e.Workload {
		return fmt.Sprintf("workload %s (priority %d): %s", e.what(), e.Priority, e.Fate)
	}
	return fmt.Sprintf("%s (priority %d) on %s: %s", e.what(), e.Priority, e.Node, e.Fate)
}

// starts are the pods that start, in one line, grouped by place and time.
func (t *text) starts(pods []PodForecast) {
	var groups []*group
	for _, pod := range pods {
		if pod.State != Starts {
			continue
		}
		where := pod.where()
		if at := slices.IndexFunc(groups, func(g *group) bool { return g.why == where }); at >= 0 {
			groups[at].roles = append(groups[at].roles, pod.Role)
			continue
		}
		groups = append(groups, &group{roles: []string{pod.Role}, why: where})
	}
	var texts []string
	for _, g := range groups {
		texts = append(texts, join(runs(g.roles))+" "+g.why)
	}
	if len(texts) > maxStarts {
		rest := 0
		for _, g := range groups[maxStarts:] {
			rest += len(g.roles)
		}
		texts = append(texts[:maxStarts], fmt.Sprintf("%d more pods", rest))
	}
	if len(texts) > 0 {
		t.line("starts", strings.Join(texts, "; "))
	}
}

// where is the place of a pod and the time of its start.
func (p PodForecast) where() string {
	nodes := some(p.Nodes, maxEqual)
	all := len(p.Nodes) + p.Others
	switch {
	case all > maxEqual:
		nodes = fmt.Sprintf("%s or another of %d equal nodes", p.Nodes[0], all)
	case all > 1:
		nodes = strings.Join(p.Nodes, " or ") + " (tie)"
	}
	switch {
	case len(p.After) == 0:
		return fmt.Sprintf("on %s immediately", nodes)
	case p.Victims && len(p.After) == 1:
		return fmt.Sprintf("on %s after its victim has terminated (grace period %s)", nodes, p.Grace)
	case p.Victims && len(p.Nodes) > 1: // one or the other
		return fmt.Sprintf("on %s after its victim there has terminated (grace period %s)", nodes, p.Grace)
	case p.Victims:
		return fmt.Sprintf("on %s after its %d victims have terminated (grace period %s)", nodes, len(p.After), p.Grace)
	case len(p.After) == 1:
		return fmt.Sprintf("on %s after %s has terminated (grace period %s)", nodes, p.After[0], p.Grace)
	default:
		return fmt.Sprintf("on %s after %s have terminated (grace period %s)", nodes, some(p.After, maxEqual), p.Grace)
	}
}

// group is a list of pods with the same text.
type group struct {
	roles []string
	why   string
}

func (a Answer) grouped(state State) []group {
	var groups []group
	for _, pod := range a.Pods {
		if pod.State != state {
			continue
		}
		if at := slices.IndexFunc(groups, func(g group) bool { return g.why == pod.Why }); at >= 0 {
			groups[at].roles = append(groups[at].roles, pod.Role)
			continue
		}
		groups = append(groups, group{roles: []string{pod.Role}, why: pod.Why})
	}
	for i := range groups {
		groups[i].roles = runs(groups[i].roles)
	}
	return groups
}

// runs abbreviates consecutive numbered roles: "worker 0", "worker 1" and "worker 2" are "worker 0 to 2".
func runs(roles []string) []string {
	var short []string
	for i := 0; i < len(roles); {
		word, first, numbered := number(roles[i])
		j := i + 1
		for numbered && j < len(roles) {
			w, n, ok := number(roles[j])
			if !ok || w != word || n != first+j-i {
				break
			}
			j++
		}
		if j-i > 2 {
			short = append(short, fmt.Sprintf("%s %d to %d", word, first, first+j-i-1))
		} else {
			short = append(short, roles[i:j]...)
		}
		i = j
	}
	return short
}

func number(role string) (word string, n int, ok bool) {
	word, digits, found := strings.Cut(role, " ")
	if !found {
		return role, 0, false
	}
	if _, err := fmt.Sscanf(digits, "%d", &n); err != nil {
		return role, 0, false
	}
	return word, n, true
}

// join is "a", "a and b", "a, b and c".
func join(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// some joins the first of many words.
func some(words []string, most int) string {
	if len(words) <= most {
		return join(words)
	}
	return strings.Join(words[:most], ", ") + fmt.Sprintf(" and %d more", len(words)-most)
}
