package differential

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A Run is what has become of a world when nothing changes any more.
type Run struct {
	// Evicted are the pods, namespace/name, that the scheduler has evicted for the planned job.
	Evicted []string
	// Nodes are those of the planned pods, in the order of the world; "" for one that waits, or was never created.
	Nodes []string
}

func (r Run) String() string { return fmt.Sprintf("on %q, evicting %q", r.Nodes, r.Evicted) }

// errTooMany is the error of a world in which more may happen than is enumerated.
var errTooMany = errors.New("more may happen than is enumerated")

const (
	// mostDecisions is how many decisions of the scheduler an enumeration takes, and mostOrders in how many orders of the
	// pods in its cache each of them is made.
	mostDecisions = 2000
	mostOrders    = 24
)

// Enumerate follows everything that may happen in a world, with kube-scheduler deciding each time: any waiting pod is tried
// next, the job's own in the order of their creation; a pod that stops is gone; the scheduler's cache gets to know that the
// victims of one of its decisions are stopping; it reads the next status of the disruption budgets. The pods of a later stage
// are created once those of the earlier ones run.
func Enumerate(ctx context.Context, world *Snapshot) ([]Run, error) {
	e := &enumeration{world: world, decisions: map[string][]possible{}, seen: map[string]bool{}, runs: map[string]Run{}}
	start := e.start()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.ctx = ctx
	var err error
	if e.process, err = newProcess(ctx, e.snapshot(start)); err != nil {
		return nil, err
	}
	defer e.process.stop(cancel)
	e.shown, e.allowed = make([]string, len(e.pods)), start.budgets[0]
	for i, p := range start.pods {
		e.shown[i] = p.look()
	}
	if err := e.findIndependent(start); err != nil {
		return nil, err
	}
	open := []state{start}
	for len(open) > 0 {
		last := len(open) - 1
		s := open[last]
		open = open[:last]
		next, err := e.next(s)
		if err != nil {
			return nil, err
		}
		for _, n := range next {
			if key := n.key(); !e.seen[key] {
				e.seen[key] = true
				open = append(open, n)
			}
		}
		if len(next) == 0 {
			run := e.run(s)
			e.runs[run.String()] = run
		}
	}
	var runs []Run
	for _, key := range slices.Sorted(maps.Keys(e.runs)) {
		runs = append(runs, e.runs[key])
	}
	return runs, nil
}

// findIndependent tries the pods that wait in the cluster until none loses the node that is reserved for it.
func (e *enumeration) findIndependent(s state) error {
	e.independent = make([]bool, len(e.pods))
	for changed := true; changed; {
		changed = false
		for i, p := range s.pods {
			if p.phase != waiting || !waits(e.pods[i]) {
				continue
			}
			all, err := e.decide(s, i)
			if err != nil {
				return err
			}
			e.independent[i] = e.independent[i] || all[0].Node != "" || all[0].Nominated != ""
			if all[0].Node == "" && all[0].Nominated == "" && all[0].nominated != p.nominated {
				s, changed = e.apply(s, i, all[0]), true
			}
		}
	}
	return nil
}

type enumeration struct {
	ctx     context.Context
	process *process
	// shown are the looks of the pods that the scheduler knows, and allowed is what budgets allow as it reads them.
	shown     []string
	allowed   []int32
	world     *Snapshot
	pods      []*corev1.Pod // of the world
	decisions map[string][]possible
	seen      map[string]bool
	runs      map[string]Run
	// independent are the pending pods of the cluster that find a node or victims without the job: what they evict is not
	// evicted for it.
	independent []bool
}

// phase is how far a pod is.
type phase byte

const (
	absent      phase = iota // a planned pod that is not created yet
	waiting                  // for a node
	running                  // on its node
	unnoticed                // evicted, and the scheduler's cache does not show it yet
	terminating              // on its node still
	gone
)

// podState is what changes of a pod.
type podState struct {
	phase           phase
	node, nominated string
	by              int  // the index of the pod that has evicted it
	forJob          bool // it was evicted for the job
}

// state is all that changes of a world.
type state struct {
	pods []podState
	// budgets is how many disruptions each budget allows: as the scheduler reads it, and then as it has become since.
	budgets [][]int32
}

func (s state) key() string { return fmt.Sprint(s) }

func (s state) clone() state {
	return state{slices.Clone(s.pods), slices.Clone(s.budgets)}
}

func (e *enumeration) start() state {
	s := state{budgets: [][]int32{nil}}
	for _, pod := range e.world.Pods {
		p := podState{node: pod.Spec.NodeName, nominated: pod.Status.NominatedNodeName, phase: running, by: -1}
		switch {
		case finished(pod):
			p.phase = gone
		case isPlanned(pod):
			p.phase = absent
		case p.node == "":
			p.phase = waiting
		case pod.DeletionTimestamp != nil:
			p.phase = terminating
		}
		e.pods, s.pods = append(e.pods, pod), append(s.pods, p)
	}
	for _, budget := range e.world.Budgets {
		s.budgets[0] = append(s.budgets[0], budget.Status.DisruptionsAllowed)
	}
	return s
}

// next are the states that may come next; none where nothing changes any more.
func (e *enumeration) next(s state) (all []state, err error) {
	same := s.key()
	add := func(n state) {
		if n.key() != same {
			all = append(all, n)
		}
	}
	try := func(s state, i int) error {
		decisions, err := e.decide(s, i)
		for _, d := range decisions {
			add(e.apply(s, i, d))
		}
		return err
	}
	evicting := map[int]bool{}
	for _, p := range s.pods {
		if p.phase == unnoticed {
			evicting[p.by] = true
		}
	}
	for i, p := range s.pods {
		switch {
		case p.phase == waiting && waits(e.pods[i]) && !evicting[i]:
			if err := try(s, i); err != nil {
				return nil, err
			}
		case p.phase == terminating:
			n := s.clone()
			n.pods[i] = podState{phase: gone, by: -1, forJob: p.forJob}
			add(n)
		}
	}
	if i := e.toCreate(s); i >= 0 {
		n := s.clone()
		n.pods[i].phase = waiting
		if err := try(n, i); err != nil {
			return nil, err
		}
	}
	for by := range evicting {
		n := s.clone()
		for i := range n.pods {
			if n.pods[i].phase == unnoticed && n.pods[i].by == by {
				n.pods[i].phase, n.pods[i].by = terminating, -1
			}
		}
		add(n)
	}
	if len(s.budgets) > 1 {
		n := s.clone()
		n.budgets = n.budgets[1:]
		add(n)
	}
	return all, nil
}

// toCreate is the planned pod that is created next; -1 if there is none.
func (e *enumeration) toCreate(s state) int {
	hasMaster := slices.ContainsFunc(e.pods, isMaster)
	for i, pod := range e.pods {
		if s.pods[i].phase != absent {
			continue
		}
		for j, earlier := range e.pods {
			if isPlanned(earlier) && stageOf(earlier, hasMaster) < stageOf(pod, hasMaster) && s.pods[j].phase != running {
				return -1
			}
		}
		return i
	}
	return -1
}

// possible is what the scheduler may decide, and the nomination that the pod has then where it is not bound.
type possible struct {
	Decision
	nominated string
}

// decide is everything that the scheduler may decide about a pod.
func (e *enumeration) decide(s state, i int) ([]possible, error) {
	key := e.seenKey(s, i)
	if known, ok := e.decisions[key]; ok {
		return known, nil
	}
	orders := e.cacheOrders(s, *e.pods[i].Spec.Priority)
	if len(orders) == 0 || len(e.decisions)+len(orders) > mostDecisions {
		return nil, errTooMany
	}
	var all []possible
	for _, order := range orders {
		decision, err := e.decideIn(s, i, order)
		if err != nil {
			return nil, err
		}
		for _, d := range decision.possible() {
			if !slices.ContainsFunc(all, func(p possible) bool { return sameDecision(p.Decision, d) }) {
				all = append(all, possible{d, decision.nominated})
			}
		}
	}
	e.decisions[key] = all
	return all, nil
}

// decideIn has the scheduler decide about a pod, with some pods in an order in its cache.
func (e *enumeration) decideIn(s state, i int, order []int) (d possible, err error) {
	if err := e.show(s); err != nil {
		return d, err
	}
	p, pod := e.process, e.pods[i]
	var arranged []*corev1.Pod
	for _, j := range order {
		arranged = append(arranged, p.find(e.pods[j].Namespace, e.pods[j].Name))
	}
	if err := p.arrange(arranged); err != nil {
		return d, err
	}
	if err := p.try(e.ctx, pod); err != nil {
		return d, err
	}
	d.Decision, d.nominated = p.decision(), p.find(pod.Namespace, pod.Name).Status.NominatedNodeName
	d.Equals = p.choice.equals(e.ctx)
	for j, other := range e.pods {
		now := p.lookUp(other.Namespace, other.Name)
		if j == i || slices.Contains(d.Victims, nameOf(other).String()) || now >= 0 && p.pods[now].Status.NominatedNodeName != s.pods[j].nominated {
			e.shown[j] = "changed"
		}
	}
	return d, nil
}

// show lets the scheduler know a state.
func (e *enumeration) show(s state) error {
	var added []*corev1.Pod
	for i, p := range s.pods {
		look, pod := p.look(), e.pods[i]
		if look == e.shown[i] {
			continue
		}
		if e.shown[i] != "" {
			if err := e.process.remove(e.ctx, pod); err != nil {
				return err
			}
		}
		if e.shown[i] = look; look != "" {
			added = append(added, e.object(i, p))
		}
	}
	for _, pod := range added {
		if err := e.process.add(e.ctx, pod); err != nil {
			return err
		}
	}
	allowed := e.allowed
	e.allowed = s.budgets[0]
	return e.process.allow(e.ctx, e.world.Budgets, allowed, e.allowed)
}

// look is what the scheduler knows of a pod; "" for nothing.
func (p podState) look() string {
	switch p.phase {
	case absent, gone:
		return ""
	case unnoticed:
		p.phase = running
	}
	return fmt.Sprint(p.phase, p.node, " ", p.nominated)
}

// seenKey is equal where the scheduler sees the same when it tries a pod.
func (e *enumeration) seenKey(s state, i int) string {
	looks := make([]string, len(s.pods))
	for j, p := range s.pods {
		looks[j] = p.look()
	}
	return fmt.Sprint(i, looks, s.budgets[0])
}

// snapshot is what the scheduler sees.
func (e *enumeration) snapshot(s state) *Snapshot {
	now := *e.world
	now.Pods = nil
	for i, p := range s.pods {
		if p.look() != "" {
			now.Pods = append(now.Pods, e.object(i, p))
		}
	}
	return &now
}

// object is a pod as it is.
func (e *enumeration) object(i int, p podState) *corev1.Pod {
	pod := e.pods[i].DeepCopy()
	pod.Status.NominatedNodeName = p.nominated
	if pod.Spec.NodeName == "" && p.node != "" {
		start := metav1.NewTime(epoch.Add(5 * time.Hour)) // after all that ran before, in the same second
		pod.Spec.NodeName, pod.Status.Phase, pod.Status.StartTime = p.node, corev1.PodRunning, &start
	}
	if p.phase == terminating && pod.DeletionTimestamp == nil {
		at, grace := metav1.NewTime(epoch.Add(5*time.Hour)), int64(30)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &grace
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
		})
	}
	return pod
}

// apply carries a decision out.
func (e *enumeration) apply(s state, i int, d possible) state {
	n := s.clone()
	me := &n.pods[i]
	switch {
	case d.Node != "":
		me.phase, me.node, me.nominated = running, d.Node, ""
		return n
	case d.Nominated == "":
		me.nominated = d.nominated
		return n
	}
	me.nominated = d.Nominated
	last := n.budgets[len(n.budgets)-1]
	left := slices.Clone(last)
	for j, other := range e.pods {
		p := &n.pods[j]
		switch {
		case slices.Contains(d.Victims, nameOf(other).String()) && p.phase == running:
			p.phase, p.by, p.forJob = unnoticed, i, isPlanned(e.pods[i]) || !e.independent[i]
			disrupt(e.world.Budgets, left, other)
		case len(d.Victims) > 0 && p.phase == waiting && p.nominated == d.Nominated && *other.Spec.Priority < *e.pods[i].Spec.Priority:
			p.nominated = ""
		}
	}
	if !slices.Equal(left, last) {
		n.budgets = append(n.budgets, left)
	}
	return n
}

// disrupt takes the disruption of a pod from what budgets allow.
func disrupt(budgets []*policyv1.PodDisruptionBudget, left []int32, pod *corev1.Pod) {
	for j, budget := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		_, disrupted := budget.Status.DisruptedPods[pod.Name]
		covers := err == nil && budget.Namespace == pod.Namespace && !disrupted && len(pod.Labels) > 0 && !selector.Empty() && selector.Matches(labels.Set(pod.Labels))
		if covers && left[j] > 0 {
			left[j]--
		}
	}
}

func (e *enumeration) run(s state) (r Run) {
	for i, p := range s.pods {
		if isPlanned(e.pods[i]) {
			r.Nodes = append(r.Nodes, p.node)
		} else if p.forJob {
			r.Evicted = append(r.Evicted, nameOf(e.pods[i]).String())
		}
	}
	slices.Sort(r.Evicted)
	return r
}

// cacheOrders are the orders of pods in the scheduler's cache that may make a difference to what is evicted for a pod of a
// priority: those of pods on one node that start and priority do not order. None if there are too many.
func (e *enumeration) cacheOrders(s state, below int32) [][]int {
	tied := map[string][]int{}
	for i, p := range s.pods {
		if p.look() == "" || p.node == "" || *e.pods[i].Spec.Priority >= below {
			continue
		}
		start := "none"
		if at := e.object(i, p).Status.StartTime; at != nil {
			start = at.String()
		}
		key := fmt.Sprint(p.node, *e.pods[i].Spec.Priority, start)
		tied[key] = append(tied[key], i)
	}
	orders := [][]int{nil}
	for _, key := range slices.Sorted(maps.Keys(tied)) {
		if len(tied[key]) < 2 {
			continue
		}
		var longer [][]int
		for _, order := range orders {
			for _, permutation := range permutations(tied[key]) {
				longer = append(longer, slices.Concat(order, permutation))
			}
		}
		if orders = longer; len(orders) > mostOrders {
			return nil
		}
	}
	return orders
}

func permutations[T any](list []T) (all [][]T) {
	if len(list) == 0 {
		return [][]T{nil}
	}
	for i := range list {
		rest := slices.Delete(slices.Clone(list), i, i+1)
		for _, others := range permutations(rest) {
			all = append(all, append([]T{list[i]}, others...))
		}
	}
	return all
}
