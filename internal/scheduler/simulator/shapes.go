package simulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// shape is what pods have in common that are equal to the scheduler. Where one of them finds no room, the others find
// none either.
type shape struct {
	template *placement.Pod
	priority int32
	requests []int64 // by number of the simulation's resources
	// wide means that room for it may come by what happens on other nodes than those that it could go to: it has
	// affinity to other pods.
	wide bool

	// waiting have no node and no victims; awaiting have made room for themselves, which is not free yet.
	waiting, awaiting queue
	// news are those of waiting that have not been found unschedulable.
	news []*pod
	// listed: it is among the simulation's shapes with pods that wait. open: they are to be tried. awaitingTried: the
	// first of awaiting was.
	listed, open, awaitingTried bool
	// message is the scheduler's last message about it.
	message string
}

// queue is pods by the order of their creation.
type queue struct {
	pods []*pod
	head int
}

func (q *queue) empty() bool { return q.head == len(q.pods) }

func (q *queue) first() *pod { return q.pods[q.head] }

func (q *queue) find(p *pod) (int, bool) {
	at, found := slices.BinarySearchFunc(q.pods[q.head:], p.id, func(other *pod, id int) int { return other.id - id })
	return q.head + at, found
}

func (q *queue) add(p *pod) {
	at, found := q.find(p)
	if !found {
		q.pods = slices.Insert(q.pods, at, p)
	}
}

func (q *queue) remove(p *pod) {
	at, found := q.find(p)
	switch {
	case !found:
	case at == q.head:
		q.pods[at] = nil
		if q.head++; q.head == len(q.pods) {
			q.pods, q.head = q.pods[:0], 0
		}
	default:
		q.pods = slices.Delete(q.pods, at, at+1)
	}
}

// flavorSelection is what the flavor that a workload got adds to its pods.
type flavorSelection struct {
	labels      map[string]string
	tolerations []corev1.Toleration
}

// shapeOf finds or makes the shape of a pod.
func (s *simulation) shapeOf(p *scenariofile.Pod, class string, selection flavorSelection) *shape {
	key := s.describe(p) + "\n" + class + "\n" + describeSelection(selection)
	if known := s.shapes[key]; known != nil {
		return known
	}
	object := podObject(p, s.classes[class], selection)
	made := &shape{template: s.cluster.Pod(object), requests: make([]int64, len(s.resources))}
	made.priority = made.template.Priority
	made.wide = p.Affinity != nil && (p.Affinity.PodAffinity != nil || p.Affinity.PodAntiAffinity != nil)
	for i, name := range s.resources {
		if amount, request := object.Spec.Containers[0].Resources.Requests[name]; request {
			made.requests[i] = amountOf(name, amount)
		}
	}
	made.requests[s.podSlot] = 1
	s.shapes[key] = made
	return made
}

// describe is a text that is equal for equal pods.
func (s *simulation) describe(p *scenariofile.Pod) string {
	if known, ok := s.described[p]; ok {
		return known
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.Requests)) {
		amount := p.Requests[name]
		fmt.Fprintf(&b, "%s=%s ", name, amount.String())
	}
	if p.Labels != nil || p.NodeSelector != nil || p.Tolerations != nil || p.Affinity != nil {
		text, err := json.Marshal([]any{p.Labels, p.NodeSelector, p.Tolerations, p.Affinity})
		if err != nil {
			panic(fmt.Sprintf("simulator: describe a pod: %v", err)) // plain data cannot fail
		}
		b.Write(text)
	}
	s.described[p] = b.String()
	return b.String()
}

func describeSelection(f flavorSelection) string {
	if f.labels == nil && f.tolerations == nil {
		return ""
	}
	return fmt.Sprint(f.labels, f.tolerations) // fmt prints maps in order
}

// podObject is a pod as the API has it.
func podObject(p *scenariofile.Pod, class *scenariofile.PriorityClass, selection flavorSelection) *corev1.Pod {
	selector := maps.Clone(p.NodeSelector)
	if len(selection.labels) > 0 {
		if selector == nil {
			selector = map[string]string{}
		}
		maps.Copy(selector, selection.labels)
	}
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: scenariofile.Namespace, Labels: p.Labels},
		Spec: corev1.PodSpec{
			Containers:   []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList(p.Requests)}}},
			NodeSelector: selector, Affinity: p.Affinity,
			Tolerations: slices.Concat(p.Tolerations, selection.tolerations),
			Priority:    new(int32(0)),
		},
	}
	if class != nil {
		object.Spec.Priority = &class.Value
		if class.PreemptionPolicy != "" {
			object.Spec.PreemptionPolicy = &class.PreemptionPolicy
		}
	}
	return object
}

// requestsText is what a pod asks for, as quantities.
func requestsText(p *scenariofile.Pod) map[string]string {
	texts := make(map[string]string, len(p.Requests))
	for name, amount := range p.Requests {
		texts[string(name)] = amount.String()
	}
	return texts
}
