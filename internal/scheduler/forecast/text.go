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
		if a.Exists && !slices.ContainsFunc(a.Pods, func(p PodForecast) bool { return p.State != Rejected }) {
			return name + " exists, and its changes are rejected"
		}
		return name + " can never run"
	case Pends:
		if len(a.grouped(Rejected)) > 0 && !slices.ContainsFunc(a.Pods, PodForecast.surelyWaits) {
			return name + a.perhapsRejected(evicts)
		}
		if slices.ContainsFunc(a.Pods, func(p PodForecast) bool { return p.expires }) && !slices.ContainsFunc(a.Pods, PodForecast.surelyWaits) {
			return name + " will preempt, and may reach its deadline before it starts"
		}
		perhaps := slices.ContainsFunc(a.Queues, func(s QueueStatus) bool { return s.Perhaps })
		switch {
		case perhaps && evicts:
			return name + " may preempt others, or wait"
		case perhaps:
			return name + " may wait"
		case evicts:
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
	case Fits:
		if a.Exists && len(a.Pods) == 0 {
			return name + " exists, and gets no new pods"
		}
	}
	return name + " will start without evicting any pods"
}

// perhapsRejected is the summary of a job whose pods a quota rejects if others are created before them.
func (a Answer) perhapsRejected(evicts bool) string {
	rejected := " be rejected"
	if slices.ContainsFunc(a.Pods, func(p PodForecast) bool { return p.State == Starts }) {
		rejected = " be rejected in part"
	}
	if evicts {
		return " may preempt, and may" + rejected
	}
	return " may" + rejected
}

// Text is the answer in lines: the decisions of its queue, the evictions and the outcomes for the evicted jobs, where
// and when its pods start, what waits and why, and how certain all this is.
func (a Answer) Text() string {
	var t text
	for _, s := range a.Queues {
		t.line("queue", s.text(len(a.Queues) > 1))
	}
	if a.Exists && slices.ContainsFunc(a.Pods, func(p PodForecast) bool { return p.State != Rejected }) {
		t.line("", fmt.Sprintf("%s exists: its pods stay, and these are added", shortName(a.Namespace, a.Name)))
	}
	if len(a.Adopts) > 0 {
		t.line("", fmt.Sprintf("%s takes over %s", shortName(a.Namespace, a.Name), join(a.Adopts)))
	}
	t.evictions(a)
	t.starts(a.Pods)
	for _, pod := range a.Pods {
		switch {
		case len(pod.Nodes) == 0:
		case pod.expires:
			t.line("perhaps", fmt.Sprintf("%s %s, or its job fails before: %s", pod.Role, pod.where(), pod.Why))
		case pod.State == Queued:
			t.line("perhaps", pod.Role+" "+pod.where()+", or it waits for quota")
		case pod.State == Follows:
			t.line("perhaps", pod.Role+" "+pod.where()+", or it is not created before others run")
		case pod.State == Waits:
			t.line("perhaps", pod.Role+" "+pod.where()+", or it waits: the scheduler breaks a tie")
		}
		if pod.State == Rejected && len(pod.Nodes) > 0 {
			t.line("perhaps", fmt.Sprintf("%s %s, or the API server refuses it, depending on the order of creation: %s", pod.Role, pod.where(), pod.Why))
		}
	}
	for _, row := range a.Alike {
		t.line("", join(runs(row))+" are interchangeable")
	}
	for _, group := range a.grouped(Waits, func(p PodForecast) bool { return !p.expires }) {
		t.line("waits", join(group.roles)+": "+group.why)
	}
	for _, group := range a.grouped(Rejected, PodForecast.surelyWaits) {
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
	for _, name := range a.Assumed {
		t.line("", fmt.Sprintf("counting %s, planned before it", name))
	}
	for _, name := range a.Beside {
		t.line("", fmt.Sprintf("counting %s, planned after it, which may come first", name))
	}
	for _, reason := range a.Approximate {
		t.line("", reason.line())
	}
	t.lines = append(t.lines, fmt.Sprintf("Based on the cluster state at %s; nothing is reserved.", clock(a.AsOf)))
	return strings.Join(t.lines, "\n")
}

// line is the reason with what it leaves open: all that users ask for, or the times and places of pods alone.
func (r Reason) line() string {
	if r.undermines(gatedClaims) {
		return "approximate: " + r.Text
	}
	return "approximate in " + join(r.Claims.Names()) + ": " + r.Text
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

func (s QueueStatus) text(several bool) string {
	of := ""
	if several {
		of = join(s.Roles) + " "
	}
	switch {
	case s.Admitted:
		return of + s.admittedText()
	case s.Perhaps && s.Why == "":
		return of + s.admittedText() + ", if other planned jobs do not reach their queues first"
	case s.Perhaps:
		return fmt.Sprintf("%s%s; or waits, %s, if other planned jobs reach their queues first: %s", of, s.admittedText(), s.place(), s.Why)
	}
	if s.Outside {
		return fmt.Sprintf("%swaits outside LocalQueue %s: %s", of, s.Queue, s.Why)
	}
	where := "LocalQueue " + s.Queue
	if s.ClusterQueue != "" {
		where = "ClusterQueue " + s.ClusterQueue
	}
	if s.Never {
		return fmt.Sprintf("%sis never admitted by %s, even if it were the only one: %s", of, where, s.Why)
	}
	return fmt.Sprintf("%swaits in %s, %s: %s", of, where, s.place(), s.Why)
}

// place is that of a part which waits in its queue.
func (s QueueStatus) place() string {
	if n := len(s.Ahead); n > 0 {
		return fmt.Sprintf("behind %d: %s", n, some(s.Ahead, maxAhead))
	}
	return "first in line"
}

// admittedText describes how a part is admitted.
func (s QueueStatus) admittedText() string {
	text := "admitted by ClusterQueue " + s.ClusterQueue
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
	if s.ReadyTimeout > 0 {
		text += fmt.Sprintf("; evicted and queued again %s after its admission if not all of its pods are ready", s.ReadyTimeout)
	}
	return text
}

// evictions are a line each; the candidates among which the scheduler chooses share one line.
func (t *text) evictions(a Answer) {
	var uncertain []Eviction
	var lines []string
	for _, e := range a.Evicts {
		switch {
		case e.Certain:
			lines = append(lines, e.text())
		case e.Workload:
			lines = append(lines, e.text()+" (perhaps: the order in which the planned jobs reach their queues decides)")
		default:
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
		case a.MaySpareAll && len(names) > 1:
			note = " (tie), or none of them"
		case len(names) == 1:
			note = " (perhaps: a tie may spare it)"
		case a.counted:
			note = fmt.Sprintf(" (%s of these %d)", a.Stops.text(), len(uncertain))
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
		return fmt.Sprintf("workload %s (priority %d): %s", e.what(), e.Priority, e.Outcome)
	}
	return fmt.Sprintf("%s (priority %d) on %s: %s", e.what(), e.Priority, e.Node, e.Outcome)
}

// starts are the pods that start, in one line, grouped by place and time.
func (t *text) starts(pods []PodForecast) {
	var groups []*group
	at := map[string]*group{} // by the place and time, whatever the order of the nodes
	for _, pod := range pods {
		if pod.State != Starts {
			continue
		}
		sorted := pod
		sorted.Nodes = slices.Sorted(slices.Values(pod.Nodes))
		if g := at[sorted.where()]; g != nil {
			g.roles = append(g.roles, pod.Role)
			continue
		}
		g := &group{roles: []string{pod.Role}, why: pod.where()}
		at[sorted.where()] = g
		groups = append(groups, g)
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

// surelyWaits reports whether a pod does not start, whatever is created first.
func (p PodForecast) surelyWaits() bool { return p.State != Starts && len(p.Nodes) == 0 }

// group is a list of pods with the same text.
type group struct {
	roles []string
	why   string
}

// grouped are the pods of a state that meet all conditions, those with the same reason together.
func (a Answer) grouped(state State, conditions ...func(PodForecast) bool) []group {
	var groups []group
	for _, pod := range a.Pods {
		fails := func(condition func(PodForecast) bool) bool { return !condition(pod) }
		if pod.State != state || slices.ContainsFunc(conditions, fails) {
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
