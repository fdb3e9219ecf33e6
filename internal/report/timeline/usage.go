package timeline

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// nodeUsage is what nodes had and pods held of one resource over time, in slices of time of equal length.
type nodeUsage struct {
	resource string
	from     time.Time
	slice    time.Duration
	capacity []float64 // of all nodes, on the average of each slice
	used     []float64
	byNode   map[string]*account
	// byClass are the parts of used by priority class, those with most first.
	byClass []classUse
}

// account is one node's part of the usage.
type account struct{ capacity, used []float64 }

type classUse struct {
	class string
	used  []float64
	total float64
}

// resources are what pods ask for and nodes have, the scarcest kind first: other resources, then cpu, then memory.
func resources(h *eventlog.History) []string {
	seen := map[string]bool{}
	for _, pod := range h.Pods {
		for name := range pod.Requests {
			seen[name] = true
		}
	}
	var all []string
	for name := range seen {
		if slices.ContainsFunc(h.Nodes, func(n *eventlog.NodeHistory) bool { return amount(has(n.Node, name)) > 0 }) {
			all = append(all, name)
		}
	}
	rank := func(name string) int { return slices.Index([]string{"cpu", "memory"}, name) }
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b)) })
	return all
}

// has is what a node has of a resource, as a quantity.
func has(n eventlog.Node, name string) string {
	switch name {
	case "cpu":
		return n.CPU
	case "memory":
		return n.Memory
	}
	return n.Other[name]
}

// amount reads a quantity; what is none counts for nothing.
func amount(text string) float64 {
	if text == "" {
		return 0
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0
	}
	return q.AsApproximateFloat64()
}

// audit computes the usage of a resource.
func audit(h *eventlog.History, name string, from, to time.Time, count int) *nodeUsage {
	l := &nodeUsage{
		resource: name, from: from, slice: max(to.Sub(from)/time.Duration(count), 1),
		capacity: make([]float64, count), used: make([]float64, count), byNode: map[string]*account{},
	}
	for _, n := range h.Nodes {
		a := &account{make([]float64, count), make([]float64, count)}
		l.byNode[n.Name] = a
		has := amount(has(n.Node, name))
		for _, span := range n.Present {
			l.spread(span.From, until(span.To, to), has, a.capacity, l.capacity)
		}
	}
	known := map[string]float64{}
	classes := map[string][]float64{}
	for _, pod := range h.Pods {
		text := pod.Requests[name]
		if text == "" || pod.Bound.IsZero() {
			continue
		}
		held, seen := known[text]
		if !seen {
			held = amount(text)
			known[text] = held
		}
		if classes[pod.PriorityClass] == nil {
			classes[pod.PriorityClass] = make([]float64, count)
		}
		into := [][]float64{l.used, classes[pod.PriorityClass]}
		if a := l.byNode[pod.Node]; a != nil {
			into = append(into, a.used)
		}
		l.spread(pod.Bound, pod.EndedBy(to), held, into...)
	}
	l.rank(classes)
	return l
}

func until(t, end time.Time) time.Time {
	if t.IsZero() {
		return end
	}
	return t
}

// spread adds an amount to the slices between two times, to those at the edges in part.
func (l *nodeUsage) spread(from, to time.Time, amount float64, into ...[]float64) {
	begin, end := float64(from.Sub(l.from))/float64(l.slice), float64(to.Sub(l.from))/float64(l.slice)
	begin, end = max(begin, 0), min(end, float64(len(l.used)))
	for i := int(begin); float64(i) < end; i++ {
		part := amount * (min(end, float64(i+1)) - max(begin, float64(i)))
		for _, slice := range into {
			slice[i] += part
		}
	}
}

func (l *nodeUsage) rank(classes map[string][]float64) {
	for class, used := range classes {
		total := 0.0
		for _, part := range used {
			total += part
		}
		l.byClass = append(l.byClass, classUse{class, used, total})
	}
	slices.SortFunc(l.byClass, func(a, b classUse) int {
		return cmp.Or(cmp.Compare(b.total, a.total), strings.Compare(a.class, b.class))
	})
}

// share is a part of a whole, 0 of nothing.
func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return min(part/whole, 1)
}
