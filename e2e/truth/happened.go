package truth

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Happened is the result of applying a planned job file, for its objects and for others.
type Happened struct {
	// Evicted are the pods that had a node and lost it, in the order of their names. Those that were planned are not
	// among them.
	Evicted []Evicted
	// Workloads are those that lost their quota, as namespace/name.
	Workloads []string
	// Planned are the pods of each object of the job file, as they are at the end.
	Planned map[Owner][]Place
	// Refused is the reason why the API server refused an object of the job file; "" if it accepted all.
	Refused string
	// Before and After are all pods, and what others wait for, for a reader.
	Before, After []string
}

// Owner is the owner of a pod, or the pod itself if nothing owns it.
type Owner struct{ Kind, Namespace, Name string }

func (o Owner) String() string { return fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name) }

// Evicted is a pod that lost its node.
type Evicted struct {
	Namespace, Name, Node string
	Owner                 Owner
	// New is true if it had no node when the forecast was made, or did not exist.
	New bool
}

func (e Evicted) String() string { return e.Namespace + "/" + e.Name }

// Place is the node of a planned pod.
type Place struct {
	Name  string
	Node  string // "" while it waits
	Index int    // among the pods of its owner, or unnumbered
}

// unnumbered is the index of a pod that its owner distinguishes from the others by its name alone.
const unnumbered = -1

// moment is the state before a job file is applied.
type moment struct {
	known     map[types.UID]record // all pods that were ever seen
	placed    map[types.UID]*corev1.Pod
	workloads map[types.UID]bool // that hold quota
	pods      []string
}

func (v *view) moment() moment {
	v.forgetEvictions()
	m := moment{known: v.recorded(), placed: map[types.UID]*corev1.Pod{}, workloads: map[types.UID]bool{}, pods: v.described()}
	for _, pod := range alive(v.pods.all()) {
		if pod.Spec.NodeName != "" {
			m.placed[pod.UID] = pod
		}
	}
	for _, object := range v.workloads.all() {
		if w, err := decode[kueue.Workload](object); err == nil && w.Status.Admission != nil {
			m.workloads[w.UID] = true
		}
	}
	return m
}

// happened is the result of a job file that was applied after a moment.
func (v *view) happened(before moment, job []*unstructured.Unstructured) Happened {
	h := Happened{Planned: map[Owner][]Place{}, Before: before.pods, After: v.described()}
	for _, object := range job {
		name := cmp.Or(groupOf(object), object.GetName())
		h.Planned[Owner{object.GetKind(), cmp.Or(object.GetNamespace(), metav1.NamespaceDefault), name}] = nil
	}
	for uid, r := range v.recorded() {
		was, there := before.placed[uid]
		owner := v.ownerOf(r.pod)
		_, planned := h.Planned[owner]
		planned = planned && !there
		switch {
		case planned && !r.lost():
			h.Planned[owner] = append(h.Planned[owner], Place{r.pod.Name, r.pod.Spec.NodeName, indexOf(r.pod)})
		case planned || !r.lost() || r.pod.Spec.NodeName == "":
		case there:
			h.Evicted = append(h.Evicted, Evicted{was.Namespace, was.Name, was.Spec.NodeName, owner, false})
		default:
			if was, known := before.known[uid]; !known || !was.lost() {
				h.Evicted = append(h.Evicted, Evicted{r.pod.Namespace, r.pod.Name, r.pod.Spec.NodeName, owner, true})
			}
		}
	}
	for uid, name := range v.evictions() {
		if before.workloads[uid] {
			h.Workloads = append(h.Workloads, name)
		}
	}
	slices.Sort(h.Workloads)
	slices.SortFunc(h.Evicted, func(a, b Evicted) int { return cmp.Compare(a.String(), b.String()) })
	for _, places := range h.Planned {
		slices.SortFunc(places, func(a, b Place) int { return cmp.Compare(a.Name, b.Name) })
	}
	return h
}

// ownerOf is the outermost object that a pod belongs to.
func (v *view) ownerOf(pod *corev1.Pod) Owner {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		return Owner{"Pod", pod.Namespace, cmp.Or(groupOf(pod), pod.Name)}
	}
	for further := v.controllerOf(controller); further != nil; further = v.controllerOf(controller) {
		controller = further
	}
	return Owner{controller.Kind, pod.Namespace, controller.Name}
}

// groupOf is the pod group that Kueue admits together with a pod; "" if there is none.
func groupOf(object metav1.Object) string { return object.GetLabels()["kueue.x-k8s.io/pod-group-name"] }

// controllerOf is the owner of an owner; nil if there is none that matters here, such as a CronJob.
func (v *view) controllerOf(owner *metav1.OwnerReference) *metav1.OwnerReference {
	switch owner.Kind {
	case "ReplicaSet":
		return controllerAmong(v.replicaSets.all(), owner.UID)
	case "Job":
		if further := controllerAmong(v.jobs.all(), owner.UID); further != nil && further.Kind != "CronJob" {
			return further
		}
	default:
		for _, kind := range v.others {
			if further := controllerAmong(kind.all(), owner.UID); further != nil {
				return further
			}
		}
	}
	return nil
}

// controllerAmong is the controller of the object of a UID.
func controllerAmong[T metav1.Object](objects []T, uid types.UID) *metav1.OwnerReference {
	for _, object := range objects {
		if object.GetUID() == uid {
			return metav1.GetControllerOfNoCopy(object)
		}
	}
	return nil
}

func indexOf(pod *corev1.Pod) int {
	label := cmp.Or(pod.Labels[batchv1.JobCompletionIndexAnnotation], pod.Labels["apps.kubernetes.io/pod-index"])
	if index, err := strconv.Atoi(label); err == nil {
		return index
	}
	return unnumbered
}

// described are all pods, what waits for quota, and what could not be created, a line each.
func (v *view) described() []string {
	var lines []string
	for _, pod := range v.pods.all() {
		var priority int32
		if pod.Spec.Priority != nil {
			priority = *pod.Spec.Priority
		}
		line := fmt.Sprintf("%s/%-28s %-6s %-9s %d", pod.Namespace, pod.Name, cmp.Or(pod.Spec.NodeName, "-"), pod.Status.Phase, priority)
		if pod.DeletionTimestamp != nil {
			line += " terminating"
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				line += " " + c.Message
			}
		}
		lines = append(lines, line)
	}
	lines = append(lines, v.waiting()...)
	slices.Sort(lines)
	return lines
}

// waiting says what waits for quota, and what could not be created, a line each.
func (v *view) waiting() []string {
	var lines []string
	for _, object := range v.workloads.all() {
		w, err := decode[kueue.Workload](object)
		if err == nil && unreserved(w) != "" {
			lines = append(lines, fmt.Sprintf("Workload %s/%s: %s", w.Namespace, w.Name, unreserved(w)))
		}
	}
	for _, e := range v.events.all() {
		if of := e.InvolvedObject; e.Reason == failedCreate {
			lines = append(lines, fmt.Sprintf("%s %s/%s: %s", of.Kind, of.Namespace, of.Name, e.Message))
		}
	}
	return lines
}

// String describes what happened, for a reader.
func (h Happened) String() string {
	var b strings.Builder
	section := func(title string, lines []string) {
		fmt.Fprintf(&b, "%s:\n", title)
		for _, line := range lines {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	section("before", h.Before)
	if h.Refused != "" {
		section("refused", []string{h.Refused})
	}
	section("after", h.After)
	var evicted []string
	for _, e := range h.Evicted {
		evicted = append(evicted, fmt.Sprintf("%s on %s", e, e.Node))
	}
	section("evicted", append(evicted, h.Workloads...))
	for _, owner := range slices.SortedFunc(maps.Keys(h.Planned), func(a, b Owner) int { return cmp.Compare(a.String(), b.String()) }) {
		var places []string
		for _, p := range h.Planned[owner] {
			places = append(places, fmt.Sprintf("%s on %s", p.Name, cmp.Or(p.Node, "no node")))
		}
		section(owner.String(), places)
	}
	return b.String()
}
