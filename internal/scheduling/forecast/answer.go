package forecast

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduling/placement"
)

// Outcome is what becomes of a job, in a word.
type Outcome string

// The outcomes, the best first.
const (
	Fits     Outcome = "fits"     // it starts at once, and nobody is evicted
	Preempts Outcome = "preempts" // it starts, and others are evicted for it
	Pends    Outcome = "waits"    // it does not start before others end
	Never    Outcome = "never"    // it cannot start as the cluster and its queues are, whoever ends
)

// State is what becomes of one pod.
type State string

// The states of a planned pod.
const (
	Starts  State = "starts"
	Waits   State = "waits"   // for room
	Queued  State = "queued"  // for quota
	Follows State = "follows" // it is made when others run, which wait
	Unfit   State = "never"   // no node could run it, even an empty one
)

// Answer is a forecast: what would become of a job, and of others for its sake, on the cluster as it was.
type Answer struct {
	Noun      string    `json:"noun,omitempty"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	AsOf      time.Time `json:"as_of"`
	Outcome   Outcome   `json:"outcome"`
	// Counting are the jobs that are planned before it and were counted.
	Counting []string `json:"counting,omitempty"`
	// Queues is what queues decide about its parts, in their order; empty for a job without a queue.
	Queues []Standing `json:"queues,omitempty"`
	// Pods are the planned ones, in the order in which they are made.
	Pods []PodForecast `json:"pods,omitempty"`
	// Alike are rows of pods by their roles that are alike to the scheduler, and that are made at the same time, in
	// whatever order: they may change places among each other.
	Alike [][]string `json:"alike,omitempty"`
	// Evicts are the pods and workloads that stop for it, in the order in which they do.
	Evicts []Eviction `json:"evicts,omitempty"`
	// Choices is in how many ways equal choices of the scheduler were followed to the end.
	Choices int `json:"choices"`
	// Estimate is when room is expected for what waits; nil where nothing says so.
	Estimate *Estimate `json:"estimate,omitempty"`
	// Approximate says what was not looked at, or not to the end, in a sentence each.
	Approximate []string `json:"approximate,omitempty"`
	// Asks are training jobs whose own ConfigMaps would make the answer more exact; see Snapshot.Jobs.
	Asks []types.NamespacedName `json:"-"`
}

// Standing is where a part of a job stands with its queue.
type Standing struct {
	Roles        []string `json:"roles,omitempty"`         // of its pods
	Queue        string   `json:"queue,omitempty"`         // the LocalQueue
	ClusterQueue string   `json:"cluster_queue,omitempty"` // "" where it leads to none
	Admitted     bool     `json:"admitted"`
	Pods         int      `json:"pods"`              // how many of its pods start, where it is admitted
	Flavors      []string `json:"flavors,omitempty"` // of its quota
	Borrows      bool     `json:"borrows,omitempty"`
	Checks       []string `json:"checks,omitempty"` // admission checks that are awaited
	Why          string   `json:"why,omitempty"`    // it waits
	Ahead        []string `json:"ahead,omitempty"`  // what is before it in its queue, while it waits
	Never        bool     `json:"never,omitempty"`  // not even an empty queue would admit it
}

// PodForecast is what becomes of a planned pod.
type PodForecast struct {
	Role     string `json:"role,omitempty"`
	Optional bool   `json:"optional,omitempty"` // its job can do without it
	State    State  `json:"state"`
	// Nodes are where it may start: where there are several, they are equal to the scheduler. Others is how many more. A pod
	// that waits has some where an equal choice of the scheduler lets it start.
	Nodes  []string `json:"nodes,omitempty"`
	Others int      `json:"others"`
	// After is who has to stop before it starts, and Grace how long that may take.
	After []string      `json:"after,omitempty"`
	Grace time.Duration `json:"grace_nanoseconds"`
	// Victims says that all of those are evicted for this pod.
	Victims bool   `json:"victims,omitempty"`
	Why     string `json:"why,omitempty"` // it waits
}

// Eviction is a pod, or a workload with its pods, that stops for a job.
type Eviction struct {
	Workload  bool          `json:"workload"`
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Node      string        `json:"node,omitempty"` // of a pod
	Priority  int32         `json:"priority"`
	Owner     string        `json:"owner,omitempty"` // "training job low-prio-job"; "" for a pod of its own
	OwnerKind string        `json:"owner_kind,omitempty"`
	OwnerName string        `json:"owner_name,omitempty"`
	Fate      string        `json:"fate,omitempty"`   // what becomes of the owner
	For       string        `json:"for,omitempty"`    // the role of the pod that evicts it
	Reason    string        `json:"reason,omitempty"` // of the queue, in Kueue's word
	Grace     time.Duration `json:"grace_nanoseconds"`
	Pods      []string      `json:"pods,omitempty"` // of a workload, namespace/name
	// Certain is false for one of several among which the scheduler chooses.
	Certain bool `json:"certain"`
	// Planned says that it is planned itself, and not in the cluster yet.
	Planned bool `json:"planned,omitempty"`
	// Own says that it is of the job that is forecast.
	Own bool `json:"own,omitempty"`
}

// Estimate is when something is expected.
type Estimate struct {
	At   time.Time `json:"at"`
	From string    `json:"from,omitempty"` // what it is reckoned from
}

// notes collects what makes an answer approximate, each once.
type notes struct {
	texts []string
}

func (n *notes) add(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(n.texts, text) {
		n.texts = append(n.texts, text)
	}
}

// answer puts together what all runs say.
func (f *forecast) answer(runs []*run) Answer {
	number := len(f.jobs) - 1
	job := f.jobs[number]
	a := Answer{Noun: job.Noun, Namespace: job.Namespace, Name: job.Name, AsOf: f.snapshot.AsOf, Choices: len(runs)}
	for _, other := range f.jobs[:number] {
		a.Counting = append(a.Counting, other.String())
	}
	asks := map[types.NamespacedName]bool{}
	a.Queues = f.standings(number)
	a.Pods = f.podForecasts(runs, number)
	a.Alike = f.alike(a.Pods, number)
	a.Evicts = f.evictions(runs, number, asks)
	a.Outcome = a.outcome()
	f.noteUnread(a, job)
	for _, r := range runs {
		if r.cut {
			f.notes.add("there are more equal choices than were followed to the end (%d)", len(runs))
			break
		}
	}
	a.Approximate = f.notes.texts
	a.Asks = slices.SortedFunc(maps.Keys(asks), func(x, y types.NamespacedName) int { return cmp.Compare(x.String(), y.String()) })
	return a
}

// noteUnread says where the answer depends on what could not be read.
func (f *forecast) noteUnread(a Answer, job Job) {
	for _, unread := range f.snapshot.Unread {
		switch {
		case unread.Kind == Budgets && slices.ContainsFunc(a.Evicts, func(e Eviction) bool { return !e.Workload }):
			f.notes.add("PodDisruptionBudgets could not be read (%s), and may spare some of the victims", unread.Verb)
		case unread.Kind == Namespaces && len(a.Queues) > 0 && f.queues != nil:
			queue := f.queues.objects.clusterQueueOf(job.Namespace, a.Queues[0].Queue)
			if queue != nil && queue.Spec.NamespaceSelector != nil && len(queue.Spec.NamespaceSelector.MatchLabels)+len(queue.Spec.NamespaceSelector.MatchExpressions) > 0 {
				f.notes.add("namespaces could not be read (%s), and ClusterQueue %s selects them by label", unread.Verb, queue.Name)
			}
		}
	}
}

// outcome is the worst that becomes of the pods that the job cannot do without.
func (a *Answer) outcome() Outcome {
	outcome := Fits
	if slices.ContainsFunc(a.Evicts, func(e Eviction) bool { return !e.Own }) {
		outcome = Preempts
	}
	for _, s := range a.Queues {
		if s.Never {
			return Never
		}
	}
	for _, pod := range a.Pods {
		switch {
		case pod.Optional && pod.State != Unfit:
		case pod.State == Unfit:
			return Never
		case pod.State != Starts:
			outcome = Pends
		}
	}
	return outcome
}

func (f *forecast) standings(job int) []Standing {
	var standings []Standing
	for _, step := range f.steps {
		if step.job != job {
			continue
		}
		for _, r := range step.rulings {
			s := Standing{
				Queue: r.part.Queue, ClusterQueue: r.queue, Admitted: r.admitted, Flavors: r.flavors, Borrows: r.borrows,
				Checks: r.checks, Why: r.why, Never: r.hopeless,
			}
			for _, pod := range r.part.Pods {
				s.Roles = append(s.Roles, pod.Role)
			}
			for _, n := range r.count {
				s.Pods += int(n)
			}
			for _, name := range r.ahead {
				s.Ahead = append(s.Ahead, f.nameOf(name))
			}
			standings = append(standings, s)
		}
	}
	return standings
}

// nameOf is what a workload stands for, as people know it.
func (f *forecast) nameOf(workload types.NamespacedName) string {
	if p, ok := f.queues.planned[workload]; ok {
		return p.job.String()
	}
	if o := f.ownerOfWorkload(workload); o.kind != "" {
		return o.String()
	}
	return "workload " + shortName(workload.Namespace, workload.Name)
}

// ownerOfWorkload is whose a workload is: the owner of its pods where it has some, else the Job that owns it.
func (f *forecast) ownerOfWorkload(name types.NamespacedName) owner {
	w := f.queues.known[name]
	if w == nil {
		return owner{}
	}
	for _, o := range w.OwnerReferences {
		if l, ok := f.at[o.UID]; ok {
			return ownerOf(l.pod.Object())
		}
	}
	for i := range w.Spec.PodSets {
		template := w.Spec.PodSets[i].Template
		if o := ownerOf(&corev1.Pod{ObjectMeta: template.ObjectMeta}); o.kind != "" {
			o.namespace = name.Namespace
			return o
		}
	}
	for _, o := range w.OwnerReferences {
		if o.Kind != "Pod" {
			return owner{kind: o.Kind, namespace: name.Namespace, name: o.Name}
		}
	}
	return owner{}
}

// podForecasts join what the runs say of each planned pod. The first run's choices come first.
func (f *forecast) podForecasts(runs []*run, job int) []PodForecast {
	var pods []PodForecast
	whys := map[string]string{} // by the word of a role: what is said of a worker holds for the others
	for _, step := range f.steps {
		if step.job != job {
			continue
		}
		for _, placed := range step.order {
			p := f.planned[placed]
			pod := PodForecast{Role: p.Role, Optional: p.Optional, Victims: true}
			for i, r := range runs {
				theirs := r.fates[placed]
				if i == 0 {
					pod.State, pod.Others = theirs.state, theirs.others
				}
				if theirs.state != Starts {
					pod.State = theirs.state // in some way it waits
					pod.Why = f.why(r, placed, theirs, whys)
					continue
				}
				for _, node := range theirs.nodes {
					if !slices.Contains(pod.Nodes, node) {
						pod.Nodes = append(pod.Nodes, node)
					}
				}
				for _, v := range theirs.after {
					pod.Victims = pod.Victims && v.by == p.Role
					if name := f.podName(v.pod); !slices.Contains(pod.After, name) {
						pod.After = append(pod.After, name)
						pod.Grace = max(pod.Grace, grace(v.pod.Object()))
					}
				}
			}
			pod.Victims = pod.Victims && len(pod.After) > 0
			if pod.State == Waits {
				if why, never := placement.Never(placed.Object(), f.snapshot.Nodes); never {
					pod.State, pod.Why = Unfit, why
				}
			}
			for _, text := range f.cluster.Schedule(placed).Approximate {
				f.notes.add("%s", text)
			}
			pods = append(pods, pod)
		}
	}
	return pods
}

// evictions are who stops for the job in some run. Those of the first run come first.
func (f *forecast) evictions(runs []*run, job int, asks map[types.NamespacedName]bool) []Eviction {
	var all []Eviction
	for _, step := range f.steps {
		for _, r := range step.rulings {
			for _, e := range r.evicted {
				if step.job == job {
					all = append(all, f.workloadEviction(runs[0], e, asks))
				}
			}
		}
	}
	seen := map[*placement.Pod]int{}
	times, chosen := map[int]int{}, map[int]bool{}
	for _, r := range runs {
		losses := f.losses(r, job)
		for _, v := range r.lost {
			if v.job != job || v.queue {
				continue
			}
			at, there := seen[v.pod]
			if !there {
				at = len(all)
				seen[v.pod] = at
				all = append(all, f.podEviction(v))
			}
			times[at]++
			chosen[at] = chosen[at] || v.chosen
			if o := ownerOf(v.pod.Object()); all[at].Fate == "" {
				all[at].Fate = f.fate(r, losses[o], asks)
			}
		}
	}
	for _, r := range runs {
		for _, v := range r.others {
			if _, there := seen[v.pod]; there || v.job != job {
				continue
			}
			seen[v.pod] = len(all)
			e := f.podEviction(v)
			l := loss{owner: ownerOf(v.pod.Object()), pods: 1}
			if isWorker(v.pod.Object()) {
				l.pods, l.workers = 0, 1
			}
			e.Fate = f.fate(r, l, asks)
			all = append(all, e)
		}
	}
	cut := slices.ContainsFunc(runs, func(r *run) bool { return r.cut })
	for at := range all {
		if !all[at].Workload {
			all[at].Certain = times[at] == len(runs) && (!cut || !chosen[at])
		}
	}
	return all
}

// alike are the pods of a stage that only their numbers tell apart, where not the same becomes of all of them.
func (f *forecast) alike(pods []PodForecast, job int) [][]string {
	type row struct {
		roles  []string
		fates  map[string]bool
		number int
	}
	rows := map[string]*row{}
	at := 0
	for stage, step := range f.steps {
		if step.job != job {
			continue
		}
		for _, placed := range step.order {
			pod := pods[at]
			at++
			word, _, _ := strings.Cut(pod.Role, " ")
			key := fmt.Sprintf("%d %s %d", stage, word, placed.Priority)
			if rows[key] == nil {
				rows[key] = &row{fates: map[string]bool{}, number: at}
			}
			rows[key].roles = append(rows[key].roles, pod.Role)
			rows[key].fates[string(pod.State)+strings.Join(pod.Nodes, ",")+strings.Join(pod.After, ",")] = true
		}
	}
	var alike [][]string
	for _, r := range slices.SortedFunc(maps.Values(rows), func(a, b *row) int { return cmp.Compare(a.number, b.number) }) {
		if len(r.fates) > 1 {
			alike = append(alike, r.roles)
		}
	}
	return alike
}

// why says what a planned pod waits for, in a run.
func (f *forecast) why(r *run, pod *placement.Pod, its *fate, known map[string]string) string {
	if its.state != Waits || its.why != "" {
		return its.why
	}
	word, _, _ := strings.Cut(its.role, " ")
	if why, said := known[word]; said {
		return why
	}
	known[word] = whyNot(r.cluster.Explain(pod))
	return known[word]
}

// maxNodesExplained bounds for how many nodes each is given its reason.
const maxNodesExplained = 4

func whyNot(e placement.Explanation) string {
	if len(e.Nodes) == 0 || len(e.Nodes) > maxNodesExplained {
		return strings.TrimSuffix(e.Message, ".")
	}
	var lines []string
	for _, node := range e.Nodes {
		lines = append(lines, node.String())
	}
	return strings.Join(lines, "; ")
}

// podName is namespace/name, and of a planned pod what it is of its job.
func (f *forecast) podName(pod *placement.Pod) string {
	if p, ok := f.planned[pod]; ok {
		return p.Role + " of " + f.jobs[p.job].String()
	}
	return pod.String()
}

func (f *forecast) podEviction(v victim) Eviction {
	o := ownerOf(v.pod.Object())
	e := Eviction{
		Namespace: v.pod.Namespace(), Name: v.pod.Name, Node: v.node, Priority: v.pod.Priority, For: v.by, Grace: grace(v.pod.Object()),
		Owner: o.String(), OwnerKind: o.kind, OwnerName: o.name,
	}
	if p, ok := f.planned[v.pod]; ok {
		e.Planned, e.Own = true, p.job == len(f.jobs)-1
		e.Name = p.Role + " of " + f.jobs[p.job].Name
		if o.kind == "" {
			e.Owner, e.OwnerKind, e.OwnerName = f.jobs[p.job].Noun+" "+f.jobs[p.job].String(), f.jobs[p.job].Noun, f.jobs[p.job].Name
		}
	} else if last := f.jobs[len(f.jobs)-1]; last.Grows && o.kind == last.Noun && o.key() == last.Key() {
		e.Own = true
	}
	return e
}

// burst says whether a workload is one worker of a training job, above its floor.
func (f *forecast) burst(name types.NamespacedName) bool {
	w := f.queues.known[name]
	return w != nil && len(w.OwnerReferences) == 1 && ownedByPods(w)
}

func (f *forecast) workloadEviction(r *run, w evictedWorkload, asks map[types.NamespacedName]bool) Eviction {
	o := f.ownerOfWorkload(w.name)
	e := Eviction{
		Workload: true, Certain: true, Namespace: w.name.Namespace, Name: w.name.Name, Priority: w.priority, Reason: w.reason,
		Owner: o.String(), OwnerKind: o.kind, OwnerName: o.name,
	}
	if p, ok := f.queues.planned[w.name]; ok {
		e.Planned, e.Own = true, p.number == len(f.jobs)-1
		e.Owner, e.OwnerKind, e.OwnerName = p.job.Noun+" "+p.job.String(), p.job.Noun, p.job.Name
	}
	for _, l := range f.podsOf(r, w.name) {
		e.Pods = append(e.Pods, l.pod.String())
		e.Grace = max(e.Grace, grace(l.pod.Object()))
	}
	slices.Sort(e.Pods)
	e.Fate = requeued(cmp.Or(e.Owner, "it"), w.ahead)
	if p, ok := f.queues.planned[w.name]; o.kind == aTrainingJob && f.burst(w.name) || ok && p.part.optional() {
		e.Fate = f.fate(r, f.losses(r, len(f.jobs)-1)[o], asks)
	}
	return e
}

// losses are what owners lose to the scheduler for a job, in one run: a pod that was made again, and has found a place,
// is not lost.
func (f *forecast) losses(r *run, job int) map[owner]loss {
	again := map[*placement.Pod]string{}
	for _, one := range r.fates {
		if one.instead != nil && one.bound != "" {
			again[one.instead] = one.bound
		}
	}
	losses := map[owner]loss{}
	for _, v := range r.lost {
		if v.job != job || v.queue && !f.single(v.pod) {
			continue
		}
		object := v.pod.Object()
		o := ownerOf(object)
		l := losses[o]
		l.owner = o
		switch node := again[v.pod]; {
		case node != "":
			l.again = append(l.again, node)
		case isWorker(object):
			l.workers++
		default:
			l.master = l.master || o.kind == aTrainingJob
			l.pods++
		}
		losses[o] = l
	}
	return losses
}

// fate says what becomes of an owner in a run, and asks for what is not known of it.
func (f *forecast) fate(r *run, l loss, asks map[types.NamespacedName]bool) string {
	if l.owner.kind != aTrainingJob {
		return l.fate(staff{}, 0)
	}
	if s, floor, isPlanned := f.plannedStaff(r, l.owner); isPlanned {
		s.running += l.workers
		return l.fate(s, floor)
	}
	s, floor := f.staff[l.owner.key()], 1
	details, known := f.snapshot.Jobs[l.owner.key()]
	switch {
	case known:
		s.all, floor = max(details.Workers.Max, s.running), details.Workers.Min
	case l.workers > 0:
		asks[l.owner.key()] = true
	}
	return l.fate(s, floor)
}

// plannedStaff is the workers of a job that is planned itself, as they are in a run, and its floor.
func (f *forecast) plannedStaff(r *run, o owner) (s staff, floor int, isPlanned bool) {
	at := slices.IndexFunc(f.jobs, func(job Job) bool { return !job.Grows && job.Noun == aTrainingJob && job.Key() == o.key() })
	if at < 0 {
		return s, 0, false
	}
	for pod, p := range f.planned {
		if p.job != at || !isWorker(pod.Object()) {
			continue
		}
		s.all++
		if !p.Optional {
			floor++
		}
		if its := r.fates[pod]; its != nil && its.bound != "" {
			s.running++
		}
	}
	return s, floor, true
}

// single says whether a pod is a workload by itself: its quota is taken away without anybody else's.
func (f *forecast) single(pod *placement.Pod) bool {
	return isWorker(pod.Object()) && pod.Object().Labels[kueue.PodGroupNameLabel] == ""
}

// Reasons are why some of the job waits or never runs, each once.
func (a Answer) Reasons() []string {
	var reasons []string
	add := func(reason string) {
		if reason != "" && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	for _, s := range a.Queues {
		add(s.Why)
	}
	for _, pod := range a.Pods {
		if pod.State != Starts {
			add(pod.Why)
		}
	}
	return reasons
}

// Ahead is how many workloads are before the first part of the job that waits in its queue; false when none does.
func (a Answer) Ahead() (ahead int, waits bool) {
	for _, s := range a.Queues {
		if !s.Admitted {
			return len(s.Ahead), true
		}
	}
	return 0, false
}
