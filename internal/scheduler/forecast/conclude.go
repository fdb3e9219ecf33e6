package forecast

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// conclude combines the results of all runs.
func (f *forecast) conclude(runs []*run) Answer {
	number := f.number
	job := f.jobs[number]
	a := Answer{Noun: job.Noun, Namespace: job.Namespace, Name: job.Name, AsOf: f.snapshot.AsOf, Choices: len(runs)}
	for _, other := range f.jobs[:number] {
		a.Assumed = append(a.Assumed, other.String())
	}
	for _, other := range f.jobs[number+1:] {
		a.Beside = append(a.Beside, other.String())
	}
	a.DryRun = job.answered()
	a.Adopts = job.adopts
	a.Replacements = f.replacementsIn(runs)
	a.Exists = job.Grows && job.Stored != nil && job.Stored.Exists
	needs := map[types.NamespacedName]bool{}
	a.Queues = f.queueStatuses(number)
	a.Pods = f.podForecasts(runs, number)
	a.Alike = f.alike(a.Pods, number)
	a.Evicts, a.MaySpareAll, a.Stops = f.evictions(runs, number, needs)
	f.applyDeadline(runs, &a, job)
	a.Outcome = a.outcome()
	if version := placement.Untested(f.snapshot.Version); version != "" {
		f.notes.add(UntestedVersion, "", "the forecast was compared with Kubernetes %s, and this cluster is %s", placement.Tested(), version)
	}
	f.noteGrowth(a)
	f.noteChecks(a)
	f.noteUnread(a, job)
	f.notePlannedBudgets(a)
	f.noteOverlaps(runs)
	cut := slices.ContainsFunc(runs, func(r *run) bool { return r.cut })
	if cut || f.unnamed {
		f.count(&a)
	}
	if f.unnamed && !a.counted {
		f.notes.addAbout(ClaimEvictions, TooManyChoices, "", "more pods are equal to the scheduler than are named (%d)", maxPossible)
	}
	if cut {
		f.notes.addAbout(f.open(a), TooManyChoices, "", "%s", tooManyChoices(runs))
	}
	if slices.ContainsFunc(runs, func(r *run) bool { return len(r.lost) > 0 }) {
		for _, text := range f.overlooked {
			f.notes.addAbout(f.open(a), TooManyChoices, "", "%s", text)
		}
	}
	f.noteExisting(a, job)
	f.noteFreedQuota(runs)
	f.noteExceeded(runs)
	f.noteExitCodes(runs)
	f.noteSuccesses(runs)
	f.noteAdopted(runs, job)
	for _, r := range runs {
		if open := r.cluster.OpenVolumes(); open != "" {
			f.notes.addAbout(beyondQueue, TooManyChoices, "PersistentVolume", "%s", open)
			break
		}
	}
	a.Approximate = f.notes.reasons
	a.NeedsConfigMaps = slices.SortedFunc(maps.Keys(needs), func(x, y types.NamespacedName) int {
		return cmp.Compare(x.String(), y.String())
	})
	return a
}

// tooManyChoices says why runs were cut, and what may help.
func tooManyChoices(runs []*run) string {
	if runs[0].wasLate {
		return "the time limit came before all equal choices, and orders of events, were followed; a longer one may help"
	}
	return fmt.Sprintf("there are more equal choices, or orders of events, than were followed to the end (%d)", len(runs))
}

// replacementsIn are the pods that controllers create in the place of victims, one for each controller.
func (f *forecast) replacementsIn(runs []*run) []*corev1.Pod {
	var pods []*corev1.Pod
	seen := map[types.UID]bool{}
	for _, r := range runs {
		for pod, its := range r.outcomes {
			if controller := metav1.GetControllerOfNoCopy(pod.Object()); its.instead != nil && controller != nil && !seen[controller.UID] {
				seen[controller.UID] = true
				pods = append(pods, pod.Object())
			}
		}
	}
	return pods
}

// applyDeadline takes into account that the deadline of a Job may come before its victims have stopped: the pods that need
// their room may not start.
func (f *forecast) applyDeadline(runs []*run, a *Answer, job Job) {
	object, read := job.Object.(*unstructured.Unstructured)
	if !read || job.Noun != aJob {
		return
	}
	seconds, limited, err := unstructured.NestedInt64(object.Object, "spec", "activeDeadlineSeconds")
	deadline := time.Duration(seconds) * time.Second
	late := func(p PodForecast) bool { return len(p.After) > 0 && p.Grace+startDelay >= deadline }
	if !limited || err != nil || !slices.ContainsFunc(a.Pods, late) {
		return
	}
	if !f.evictsAtOnce(runs) {
		f.notes.add(NotModelled, "Job "+job.String(), "its activeDeadlineSeconds of %d may be over before the pods that make room for it have stopped", seconds)
		return
	}
	for i := range a.Pods {
		if pod := &a.Pods[i]; pod.State == Starts && late(*pod) {
			pod.State, pod.expires = Waits, true
			pod.Why = fmt.Sprintf("its activeDeadlineSeconds of %d may be over before the pods that make room for it have stopped", seconds)
		}
	}
}

// evictsAtOnce reports whether all victims are those of planned pods of one job, each of which evicts on one node only: then
// all are evicted before any of them has stopped, whatever happens to the job afterwards.
func (f *forecast) evictsAtOnce(runs []*run) bool {
	if len(f.jobs) > 1 {
		return false
	}
	for _, r := range runs {
		nodes := map[string]string{} // by the role that evicts
		for _, v := range r.lost {
			of, again := nodes[v.by]
			byPlanned := slices.ContainsFunc(slices.Collect(maps.Values(f.planned)), func(p planned) bool { return p.Role == v.by })
			if v.job != noJob && (!byPlanned || again && of != v.node) {
				return false
			}
			nodes[v.by] = v.node
		}
	}
	return true
}

// startDelay is the time that a pod may need to start after its victims have stopped: its back-off in the scheduler.
const startDelay = 10 * time.Second

// noteFreedQuota notes that evictions may free a ResourceQuota which rejects pods now.
func (f *forecast) noteFreedQuota(runs []*run) {
	for _, r := range runs {
		waits := slices.ContainsFunc(f.rejectedIn(r), func(pod *corev1.Pod) bool { return !f.exceededAfter(r, pod) })
		for _, v := range r.lost {
			if waits && r.apiServer.Covers(v.pod.Object()) {
				f.notes.add(QuotaMayFree, "Namespace "+v.pod.Namespace(), "when %s has stopped, its quota may let pods be created that are rejected now", f.podName(v.pod))
				return
			}
		}
	}
}

// rejectedIn are the pods of the job that exhausted quotas reject in a run.
func (f *forecast) rejectedIn(r *run) (rejected []*corev1.Pod) {
	for pod, outcome := range r.outcomes {
		if outcome.job == f.number && outcome.state == Rejected && outcome.passing {
			rejected = append(rejected, pod.Object())
		}
	}
	return rejected
}

// spread adds to a pod's nodes those that are equivalent.
func (f *forecast) spread(pod *PodForecast) {
	all := slices.Clone(pod.Nodes)
	for _, node := range pod.Nodes {
		for _, other := range f.symmetry.alikes(node) {
			if !slices.Contains(all, other) {
				all = append(all, other)
			}
		}
	}
	pod.Others = max(pod.Others, len(all)-maxNodesNamed)
	pod.Nodes = all[:min(len(all), maxNodesNamed)]
}

// noteSpecial notes decisions about a planned pod that components other than kube-scheduler make, or that the engine
// does not model.
func (f *forecast) noteSpecial(pod *placement.Pod) {
	of := f.podName(pod)
	spec := &pod.Object().Spec
	if name := spec.SchedulerName; name != "" && name != corev1.DefaultSchedulerName {
		f.notes.add(OtherScheduler, "scheduler "+name, "%s is placed by the scheduler %s, which is not known here", of, name)
	}
	for _, text := range f.cluster.Approximate(pod) {
		f.notes.add(NotModelled, "Pod "+of, "%s", text)
	}
}

// notePlannedBudgets notes planned PodDisruptionBudgets if pods are evicted: how many disruptions
// they allow is known only once their controller has counted.
func (f *forecast) notePlannedBudgets(a Answer) {
	if !slices.ContainsFunc(a.Evicts, func(e Eviction) bool { return !e.Workload }) {
		return
	}
	for _, name := range f.snapshot.PlannedBudgets {
		f.notes.addAbout(beyondQueue&^ClaimOutcome, PlannedUnknown, "PodDisruptionBudget "+name, "PodDisruptionBudget %s is planned, and how many disruptions it allows is not known yet", name)
	}
}

// noteUnread notes where the answer depends on objects that could not be read.
func (f *forecast) noteUnread(a Answer, job Job) {
	for _, unread := range f.snapshot.Unread {
		switch {
		case unread.Kind == Pods:
			f.notes.add(NotAllRead, string(unread.Kind), "pods could not be read (%s), and count as not there", unread.Verb)
		case unread.Kind == PriorityClasses:
			f.notes.add(NotAllRead, string(unread.Kind), "PriorityClasses could not be read (%s), which decide about priorities", unread.Verb)
		case unread.Kind.ofQueues() && len(a.Queues) > 0:
			f.notes.add(NotAllRead, string(unread.Kind), "Kueue's objects of kind %s could not be read (%s), and count as not there", unread.Kind, unread.Verb)
		case job.answered() && (unread.Kind == LimitRanges || unread.Kind == RuntimeClasses || unread.Kind == MutatingWebhooks || unread.Kind == ValidatingWebhooks):
		case unread.Kind == MutatingWebhooks || unread.Kind == ValidatingWebhooks:
			f.notes.add(NotAllRead, string(unread.Kind), "%ss could not be read (%s), and may change or reject its pods; no dry run has asked them", unread.Kind, unread.Verb)
		case unread.Kind == LimitRanges || unread.Kind == ResourceQuotas:
			f.notes.add(NotAllRead, string(unread.Kind), "%ss could not be read (%s), and may change or reject its pods", unread.Kind, unread.Verb)
		case unread.Kind.ofDevices() && f.anyPod(func(pod *corev1.Pod) bool { return len(pod.Spec.ResourceClaims) > 0 || f.unoffered(pod) }):
			f.notes.add(NotAllRead, string(unread.Kind), "%ss could not be read (%s), which decide about devices that its pods ask for", unread.Kind, unread.Verb)
		case unread.Kind.ofVolumes() && f.anyPod(hasClaims):
			f.notes.add(NotAllRead, string(unread.Kind), "%ss could not be read (%s), which decide where its pods can have their volumes", unread.Kind, unread.Verb)
		case unread.Kind == Services && slices.ContainsFunc(a.Pods, func(p PodForecast) bool { return len(p.Nodes) > 0 && p.spread }):
			f.notes.addAbout(f.open(a), NotAllRead, string(unread.Kind), "Services could not be read (%s), by which pods without spread constraints are spread", unread.Verb)
		case slices.ContainsFunc(a.Evicts, func(e Eviction) bool { return dependsOn(e, unread.Kind) }):
			f.notes.addAbout(beyondQueue&^ClaimOutcome, NotAllRead, string(unread.Kind), "%ss could not be read (%s), which decide what becomes of evicted pods", unread.Kind, unread.Verb)
		case unread.Kind == Budgets && slices.ContainsFunc(a.Evicts, func(e Eviction) bool { return !e.Workload }):
			f.notes.addAbout(beyondQueue&^ClaimOutcome, NotAllRead, string(unread.Kind), "PodDisruptionBudgets could not be read (%s), and may spare some of the victims", unread.Verb)
		case unread.Kind == Namespaces && len(a.Queues) > 0 && f.queues != nil:
			queue := f.queues.objects.clusterQueueOf(job.Namespace, a.Queues[0].Queue)
			if queue != nil && queue.Spec.NamespaceSelector != nil && len(queue.Spec.NamespaceSelector.MatchLabels)+len(queue.Spec.NamespaceSelector.MatchExpressions) > 0 {
				f.notes.add(NotAllRead, string(unread.Kind), "namespaces could not be read (%s), and ClusterQueue %s selects them by label", unread.Verb, queue.Name)
			}
		}
	}
}

// dependsOn reports whether the outcome for a victim depends on objects of a kind.
func dependsOn(e Eviction, kind Kind) bool {
	switch kind {
	case ReplicaSets:
		return e.OwnerKind == "Deployment" || e.OwnerKind == string(ReplicaSets)
	case BatchJobs, StatefulSets, Replications:
		return e.OwnerKind == string(kind)
	default:
		return false
	}
}

func (f *forecast) queueStatuses(job int) []QueueStatus {
	var statuses []QueueStatus
	for _, step := range f.steps {
		if step.job != job {
			continue
		}
		for _, r := range step.admissions {
			s := QueueStatus{
				Queue: r.part.Queue, ClusterQueue: r.queue, Admitted: r.admitted, Flavors: r.flavors, Borrows: r.borrows,
				Checks: r.checks, Why: r.why, Never: r.neverAdmissible, Outside: r.outside,
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
			statuses = append(statuses, s)
		}
	}
	return statuses
}

// podForecasts combines the results of the runs for each planned pod. The first run's choices come first.
func (f *forecast) podForecasts(runs []*run, job int) []PodForecast {
	var pods []PodForecast
	whys := map[string]string{} // by their sort: what holds for a worker holds for the others
	for _, step := range f.steps {
		if step.job != job {
			continue
		}
		for _, placed := range step.order {
			p := f.planned[placed]
			pod := PodForecast{Role: p.Role, Optional: p.Optional, Victims: true, spread: len(placed.Object().Spec.TopologySpreadConstraints) == 0 && len(placed.Object().Labels) > 0}
			for i, r := range runs {
				theirs := r.outcomes[placed]
				if i == 0 {
					pod.State, pod.Others = theirs.state, theirs.others
				}
				if theirs.state != Starts {
					// In some run it waits. That a quota rejects it in others is less: it is created there later.
					if theirs.state != Rejected || !theirs.passing || pod.State == Starts || pod.State == Rejected {
						pod.State = theirs.state
						pod.Why, pod.passing = f.why(r, placed, theirs, whys), theirs.passing
					}
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
			slices.Sort(pod.After) // several may stop at a time
			f.spread(&pod)
			pod.Victims = pod.Victims && len(pod.After) > 0
			if pod.State == Waits {
				if why, never := f.cluster.Never(placed, f.snapshot.Nodes); never {
					pod.State, pod.Why = Unfit, why
				}
			}
			f.noteSpecial(placed)
			f.noteBound(runs, placed)
			f.noteWebhooks(p.Pod)
			pods = append(pods, pod)
		}
	}
	return pods
}

// alike returns the pods of a stage that differ only in their numbers and that have different outcomes.
func (f *forecast) alike(pods []PodForecast, job int) [][]string {
	type row struct {
		roles    []string
		outcomes map[string]bool
		number   int
	}
	rows := map[string]*row{}
	made := f.jobs[job].byRole()
	at := 0
	for stage, step := range f.steps {
		if step.job != job {
			continue
		}
		for _, placed := range step.order {
			pod := pods[at]
			at++
			key := fmt.Sprintf("%d %d %s", stage, placed.Priority, sortOf(pod.Role, made[pod.Role]))
			if rows[key] == nil {
				rows[key] = &row{outcomes: map[string]bool{}, number: at}
			}
			rows[key].roles = append(rows[key].roles, pod.Role)
			rows[key].outcomes[string(pod.State)+strings.Join(pod.Nodes, ",")+strings.Join(pod.After, ",")] = true
		}
	}
	var alike [][]string
	for _, r := range slices.SortedFunc(maps.Values(rows), func(a, b *row) int { return cmp.Compare(a.number, b.number) }) {
		if len(r.outcomes) > 1 {
			alike = append(alike, r.roles)
		}
	}
	return alike
}

// why returns the reason for which a planned pod waits in a run.
func (f *forecast) why(r *run, pod *placement.Pod, its *podOutcome, known map[string]string) string {
	if its.state != Waits || its.why != "" {
		return its.why
	}
	sort := sortOf(its.role, pod.Object())
	if why, ok := known[sort]; ok {
		return why
	}
	e := r.cluster.Explain(pod)
	if node, tied := tiedTo(pod.Object()); tied {
		e.Nodes = slices.DeleteFunc(e.Nodes, func(n placement.NodeExplanation) bool { return n.Node != node })
	}
	known[sort] = whyNot(e)
	return known[sort]
}

// sortOf is equal for pods of a job that differ in nothing that decides where they fit: those of a DaemonSet are tied to
// their nodes, and those of a group may have names alike and nothing else.
func sortOf(role string, pod *corev1.Pod) string {
	word, _, _ := strings.Cut(role, " ")
	spec := &pod.Spec
	text, err := json.Marshal([]any{spec.NodeName, spec.NodeSelector, spec.Affinity, spec.Tolerations, scheduler.PodRequests(spec)})
	if err != nil {
		return role
	}
	return word + " " + string(text)
}

// tiedTo is the node to which the DaemonSet controller ties a pod.
func tiedTo(pod *corev1.Pod) (node string, tied bool) {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, field := range term.MatchFields {
				if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
					return field.Values[0], true
				}
			}
		}
	}
	return "", false
}

// maxNodesExplained bounds the number of nodes for which a text gives separate reasons.
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

// nameOf is the name of the object that a workload belongs to, as users know it.
func (f *forecast) nameOf(workload types.NamespacedName) string {
	if p, ok := f.queues.planned[workload]; ok {
		return p.job.String()
	}
	if o := f.ownerOfWorkload(workload); o.kind != "" {
		return o.String()
	}
	return "workload " + shortName(workload.Namespace, workload.Name)
}

// podName is namespace/name, or, for a planned pod, its role in its job.
func (f *forecast) podName(pod *placement.Pod) string {
	if p, ok := f.planned[pod]; ok {
		return p.Role + " of " + f.jobs[p.job].String()
	}
	return pod.String()
}
