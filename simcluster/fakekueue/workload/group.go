package workload

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// A Group is the pods of one group, in the order of their creation.
type Group struct {
	Namespace, Name string
	Pods            []*corev1.Pod
}

// A GroupError is the reason why a group has no workload; Event means that it is recorded as an event on the first pod.
type GroupError struct {
	Message string
	Event   bool
}

func (e *GroupError) Error() string { return e.Message }

// Total is the number of pods that the group's first pod says it has.
func (g Group) Total() (int, error) {
	if len(g.Pods) == 0 {
		return 0, errors.New("the group has no pod")
	}
	return GroupTotal(g.Pods[0])
}

// fast reports whether the group is admitted when its first pod is there.
func (g Group) fast() bool {
	return g.Pods[0].Annotations[kueue.PodGroupFastAdmissionAnnotation] == "true"
}

// runnable reports whether a pod counts as a member: it has not failed, and was not deleted before it ran.
func runnable(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil && pod.Spec.NodeName == "" {
		return false
	}
	return pod.Status.Phase != corev1.PodFailed
}

// partition splits the pods into members and others.
func (g Group) partition() (members, others []*corev1.Pod) {
	for _, pod := range g.Pods {
		if runnable(pod) {
			members = append(members, pod)
		} else {
			others = append(others, pod)
		}
	}
	return members, others
}

// A Composition is the Workload of a group that had none, and what becomes of pods that are not in it.
type Composition struct {
	// Workload is nil where Err says why there is none.
	Workload *kueue.Workload
	// Excess are pods beyond the group's total: finalizer and pod go.
	Excess []*corev1.Pod
	// Finalized are pods that ended: their finalizer goes.
	Finalized []*corev1.Pod
	Err       error
}

// Compose makes the Workload of a group, without its priority.
func (g Group) Compose() Composition {
	members, others := g.partition()
	c := Composition{Finalized: others}
	total, err := g.Total()
	if err != nil {
		c.Err = err
		return c
	}
	if err := g.check(members, total); err != nil {
		c.Err = err
		return c
	}
	slices.SortStableFunc(members, byWorth)
	if len(members) > total {
		members, c.Excess = members[:total], members[total:]
	}
	sets, err := podSetsByRole(members)
	if err == nil && g.fast() {
		if len(members) == 0 {
			err = errNoRunnablePod
		} else {
			role, roleErr := Role(members[0])
			set := podSet(kueue.PodSetReference(role), members[0])
			set.Count = int32(total)
			sets, err = []kueue.PodSet{set}, roleErr
		}
	}
	if err != nil {
		c.Err = err
		return c
	}
	if len(sets) > MaxPodSets {
		c.Err = &GroupError{Message: fmt.Sprintf("pod group can't include more than %d roles", MaxPodSets)}
		return c
	}
	w := forOwner(g.Name, g.Pods[0])
	metav1.SetMetaDataAnnotation(&w.ObjectMeta, kueue.IsGroupWorkloadAnnotation, "true")
	w.Spec.PodSets = sets
	AddOwners(w, members)
	c.Workload = w
	return c
}

// check refuses a group that is not complete, or whose pods contradict each other.
func (g Group) check(members []*corev1.Pod, total int) error {
	if !g.fast() && len(members) < total {
		return &GroupError{Message: fmt.Sprintf("'%s' group has fewer runnable pods than expected", g.Name), Event: true}
	}
	first := g.Pods[0]
	for _, pod := range g.Pods {
		if pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if a, b := first.Labels[kueue.QueueLabel], pod.Labels[kueue.QueueLabel]; a != b {
			return &GroupError{Message: fmt.Sprintf("pods '%s' and '%s' has different queue names: %s!=%s", first.Name, pod.Name, a, b)}
		}
		if theirs, err := GroupTotal(pod); err != nil || theirs != total {
			return &GroupError{Message: fmt.Sprintf("pods '%s' and '%s' has different '%s' values: %d!=%s",
				first.Name, pod.Name, kueue.PodGroupTotalCountAnnotation, total, pod.Annotations[kueue.PodGroupTotalCountAnnotation])}
		}
	}
	return nil
}

// AddOwners makes every pod an owner of the group's workload and returns how many were not before.
func AddOwners(w *kueue.Workload, pods []*corev1.Pod) (added int) {
	for _, pod := range pods {
		if !slices.ContainsFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == pod.UID }) {
			w.OwnerReferences = append(w.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID})
			added++
		}
	}
	return added
}

func podSetsByRole(pods []*corev1.Pod) ([]kueue.PodSet, error) {
	var sets []kueue.PodSet
	for _, pod := range pods {
		role, err := Role(pod)
		if err != nil {
			return nil, fmt.Errorf("failed to calculate pod role hash: %w", err)
		}
		name := kueue.PodSetReference(role)
		if i := slices.IndexFunc(sets, func(s kueue.PodSet) bool { return s.Name == name }); i >= 0 {
			sets[i].Count++
		} else {
			sets = append(sets, podSet(name, pod))
		}
	}
	slices.SortFunc(sets, func(a, b kueue.PodSet) int { return cmp.Compare(a.Name, b.Name) })
	return sets, nil
}

// A Match is what a group's pods are to its existing Workload.
type Match struct {
	// Fits is false for a workload that does not stand for these pods (any more): it is to be deleted.
	Fits bool
	// Kept are the pods that the workload stands for.
	Kept []*corev1.Pod
	// Excess are pods beyond their role's count: finalizer and pod go.
	Excess []*corev1.Pod
	// Replaced are pods that ended and have successors: their finalizer goes.
	Replaced []*corev1.Pod
	// Absent is how many pods are missing.
	Absent int
}

// Match compares the group with its Workload.
func (g Group) Match(w *kueue.Workload, now time.Time) (Match, error) {
	var m Match
	if ptr.Deref(w.Spec.MaximumExecutionTimeSeconds, -1) != ptr.Deref(maximumExecutionTime(g.Pods[0]), -1) {
		return m, nil
	}
	members, others := g.partition()
	roles := map[*corev1.Pod]kueue.PodSetReference{}
	for _, pod := range g.Pods {
		role, err := Role(pod)
		if err != nil {
			return m, fmt.Errorf("failed to calculate pod role hash: %w", err)
		}
		roles[pod] = kueue.PodSetReference(role)
	}
	for _, set := range w.Spec.PodSets {
		ofRole := func(pods []*corev1.Pod) []*corev1.Pod {
			return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return roles[p] != set.Name })
		}
		active, ended := ofRole(members), ofRole(others)
		slices.SortStableFunc(active, byWorth)
		slices.SortStableFunc(ended, func(a, b *corev1.Pod) int { return byLastActivity(a, b, now) })
		m.Absent += absent(int(set.Count), len(active), g.fast())
		keep := min(len(active), int(set.Count))
		m.Kept, m.Excess = append(m.Kept, active[:keep]...), append(m.Excess, active[keep:]...)
		replaced := max(0, min(len(ended), len(ended)+len(active)-int(set.Count)))
		m.Kept, m.Replaced = append(m.Kept, ended[:len(ended)-replaced]...), append(m.Replaced, ended[len(ended)-replaced:]...)
	}
	sets, err := podSetsByRole(slices.DeleteFunc(slices.Clone(m.Kept), func(p *corev1.Pod) bool { return !runnable(p) }))
	if err != nil {
		return m, err
	}
	m.Fits = len(m.Kept) > 0 && covers(w, sets)
	return m, nil
}

func absent(count, active int, fast bool) int {
	if fast {
		if count > 0 && active == 0 {
			return 1
		}
		return 0
	}
	return max(0, count-active)
}

// covers reports whether w has every set with at least as many pods; a finished one's numbers do not count.
func covers(w *kueue.Workload, sets []kueue.PodSet) bool {
	for _, set := range sets {
		i := slices.IndexFunc(w.Spec.PodSets, func(s kueue.PodSet) bool { return s.Name == set.Name })
		if i < 0 || !IsFinished(w) && w.Spec.PodSets[i].Count < set.Count {
			return false
		}
	}
	return true
}

// byWorth orders pods from the one to keep first to the one to give up first: those with our finalizer, those that run,
// the older.
func byWorth(a, b *corev1.Pod) int {
	return cmp.Or(
		boolFirst(hasFinalizer(a), hasFinalizer(b)),
		boolFirst(!Gated(a), !Gated(b)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
	)
}

// byLastActivity orders pods that ended from the one to keep first to the one to let go first.
func byLastActivity(a, b *corev1.Pod, now time.Time) int {
	return cmp.Or(
		boolFirst(hasFinalizer(a), hasFinalizer(b)),
		lastActive(b, now).Compare(lastActive(a, now)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
	)
}

// lastActive is when a pod was declared failed or deleted, whichever came first.
func lastActive(pod *corev1.Pod, now time.Time) time.Time {
	last := now
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.ContainersReady && c.Status == corev1.ConditionFalse && c.Reason == string(corev1.PodFailed) {
			last = c.LastTransitionTime.Time
		}
	}
	if deleted := pod.DeletionTimestamp; deleted != nil && deleted.Time.Before(last) {
		last = deleted.Time
	}
	return last
}

func hasFinalizer(pod *corev1.Pod) bool { return slices.Contains(pod.Finalizers, kueue.PodFinalizer) }

func boolFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// Finished reports whether the group has ended: all its pods succeeded or, where a pod says that none is replaced, all
// ended.
func (g Group) Finished() (message string, finished bool) {
	total, err := g.Total()
	if err != nil {
		return "", false
	}
	succeeded, running, retriable := 0, false, true
	for _, pod := range g.Pods {
		if pod.Status.Phase == corev1.PodSucceeded {
			succeeded++
		}
		running = running || !Terminated(pod)
		retriable = retriable && Retriable(pod)
	}
	if succeeded == total || !running && !retriable {
		return fmt.Sprintf("Pods succeeded: %d/%d.", succeeded, total), true
	}
	return "", false
}

// Running reports whether a pod of the group occupies its node: it runs, and if it is being deleted, its grace period
// has not passed.
func (g Group) Running(now time.Time) bool {
	return slices.ContainsFunc(g.Pods, func(pod *corev1.Pod) bool {
		if pod.Status.Phase != corev1.PodRunning {
			return false
		}
		if pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil {
			return !now.After(pod.DeletionTimestamp.Add(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second))
		}
		return true
	})
}

// Suspended reports whether a pod of the group is not running: gated, or ended.
func (g Group) Suspended() bool { return slices.ContainsFunc(g.Pods, PodSuspended) }

// Ready reports whether all pods of the group are there and ready.
func (g Group) Ready() bool {
	total, err := g.Total()
	return err == nil && len(g.Pods) >= total && !slices.ContainsFunc(g.Pods, func(p *corev1.Pod) bool { return !podReady(p) })
}

// Reclaimable counts, by role, the pods that have succeeded.
func (g Group) Reclaimable() []kueue.ReclaimablePod {
	var result []kueue.ReclaimablePod
	for _, pod := range g.Pods {
		role, err := Role(pod)
		if pod.Status.Phase != corev1.PodSucceeded || err != nil {
			continue
		}
		name := kueue.PodSetReference(role)
		if i := slices.IndexFunc(result, func(r kueue.ReclaimablePod) bool { return r.Name == name }); i >= 0 {
			result[i].Count++
		} else {
			result = append(result, kueue.ReclaimablePod{Name: name, Count: 1})
		}
	}
	return result
}

// NoteAbsent keeps the condition WaitingForReplacementPods of a group's workload and reports a change.
func NoteAbsent(w *kueue.Workload, absent int, now time.Time) bool {
	before := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadWaitingForReplacementPods)
	condition := metav1.Condition{
		Type: kueue.WorkloadWaitingForReplacementPods, ObservedGeneration: w.Generation, LastTransitionTime: metav1.NewTime(now),
		Status: metav1.ConditionTrue, Reason: "PodsFailed", Message: "Some Failed pods need replacement",
	}
	switch {
	case absent == 0 && (before == nil || before.Status == metav1.ConditionFalse):
		return false
	case absent == 0:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, kueue.WorkloadPodsReady, "No pods need replacement"
	case IsEvicted(w):
		evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
		condition.Reason, condition.Message = evicted.Reason, evicted.Message
	case before != nil && before.Status == metav1.ConditionTrue:
		return false // the reason stays that of the moment in which they went missing
	}
	return meta.SetStatusCondition(&w.Status.Conditions, condition)
}
