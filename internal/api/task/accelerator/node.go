package accelerator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Placement is how a pod asks for accelerators: so many of one resource, on nodes of this affinity.
type Placement struct {
	Resource corev1.ResourceName
	Count    int64
	Affinity *corev1.NodeAffinity
}

// Options of Place.
type Options struct {
	// Ordered prefers nodes of the earlier requests.
	Ordered bool
	// Refuse are label values, by key, that no node may have if they name other accelerators: those of the flavors
	// that Kueue may choose from. Kueue looks only at the label keys that a flavor has, and takes a term without any of
	// them for one that every flavor satisfies; so every term says under every such key what it is not.
	Refuse map[string][]string
}

// maxChoices bounds the terms that a pod's affinity grows to.
const maxChoices = 32

// Place returns how a pod asks for any one of the requested accelerators: one term for each label key, which nodes are
// free to satisfy by any of them. All requests must be for the same number of the same resource, because a pod's
// request is one, whichever node it lands on.
func (t *Table) Place(requests []Request, o Options) (Placement, error) {
	if len(requests) == 0 {
		return Placement{}, errors.New("no accelerator is requested")
	}
	if len(requests) > maxChoices {
		return Placement{}, fmt.Errorf("%d accelerators are offered as alternatives; at most %d can be", len(requests), maxChoices)
	}
	choices := make([]choice, len(requests))
	for i, r := range requests {
		c, err := t.choose(r)
		if err != nil {
			return Placement{}, err
		}
		if first := choices[0]; i > 0 && (c.resource() != first.resource() || c.Count != first.Count) {
			return Placement{}, different(first.Request, first.need(), c.Request, c.need())
		}
		choices[i] = c
	}
	p := Placement{Resource: corev1.ResourceName(choices[0].resource()), Count: int64(choices[0].Count)}
	p.Affinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: t.terms(choices, o.Refuse)}}
	if o.Ordered {
		weight := int32(100) // the highest there is
		for i := range choices[:len(choices)-1] {
			for _, term := range t.terms(choices[i:i+1], nil) {
				p.Affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(p.Affinity.PreferredDuringSchedulingIgnoredDuringExecution,
					corev1.PreferredSchedulingTerm{Weight: weight, Preference: term})
			}
			// The scheduler adds up the weights of all terms that a node satisfies, and nodes have up to three of the
			// labels: a quarter keeps a later choice with three below an earlier one with one.
			weight = max(1, weight/4)
		}
	}
	return p, nil
}

// DifferentCounts is the error of alternatives that request different numbers of accelerators.
func DifferentCounts(a, b Request) error {
	return different(a, strconv.Itoa(a.Count), b, strconv.Itoa(b.Count))
}

func different(a Request, needOfA string, b Request, needOfB string) error {
	return fmt.Errorf("%s needs %s and %s needs %s, but a pod has one request, whichever node it lands on: offer alternatives of the same number and kind, or make a task of each",
		a, needOfA, b, needOfB)
}

// choice is a request with its row of the table.
type choice struct {
	Request
	Definition
	topology string // "" where the accelerator has none
}

func (c choice) need() string { return fmt.Sprintf("%d %s", c.Count, c.resource()) }

func (t *Table) choose(r Request) (choice, error) {
	if err := r.check(); err != nil {
		return choice{}, err
	}
	name, d, err := t.Lookup(r.Name)
	if err != nil {
		return choice{}, err
	}
	c := choice{Request: Request{Name: name, Count: r.Count}, Definition: d}
	if len(d.Topologies) > 0 {
		if c.topology = d.Topologies[r.Count]; c.topology == "" {
			return choice{}, fmt.Errorf("accelerators %q: a node has %s of them, never %d", c.Request, oneOf(slices.Sorted(maps.Keys(d.Topologies))), r.Count)
		}
	}
	return c, nil
}

// terms are the choices' terms, merged: under one label key, with one topology, the values of all choices are one term.
func (t *Table) terms(choices []choice, refuse map[string][]string) []corev1.NodeSelectorTerm {
	type group struct{ key, topology string }
	values := map[group][]string{}
	for _, c := range choices {
		for key, v := range c.Labels {
			g := group{key, c.topology}
			values[g] = append(values[g], v...)
		}
	}
	groups := slices.SortedFunc(maps.Keys(values), func(a, b group) int {
		return strings.Compare(a.key+"\x00"+a.topology, b.key+"\x00"+b.topology)
	})
	var terms []corev1.NodeSelectorTerm
	for _, g := range groups {
		term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{in(g.key, values[g])}}
		if g.topology != "" {
			term.MatchExpressions = append(term.MatchExpressions, in(TopologyKey, []string{g.topology}))
		}
		term.MatchExpressions = append(term.MatchExpressions, t.others(choices, refuse, g.key)...)
		terms = append(terms, term)
	}
	return terms
}

// others refuse, under every key but one, the values that name other accelerators than the choices.
func (t *Table) others(choices []choice, refuse map[string][]string, except string) []corev1.NodeSelectorRequirement {
	var out []corev1.NodeSelectorRequirement
	for _, key := range slices.Sorted(maps.Keys(refuse)) {
		var foreign []string
		for _, value := range refuse[key] {
			if !slices.ContainsFunc(choices, func(c choice) bool { return !t.contradicts(key, value, c.Name) }) {
				foreign = append(foreign, value)
			}
		}
		if len(foreign) > 0 && key != except {
			r := in(key, foreign)
			r.Operator = corev1.NodeSelectorOpNotIn
			out = append(out, r)
		}
	}
	return out
}

func in(key string, values []string) corev1.NodeSelectorRequirement {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: slices.Compact(sorted)}
}

func oneOf(counts []int) string {
	words := make([]string, len(counts))
	for i, n := range counts {
		words[i] = fmt.Sprint(n)
	}
	return strings.Join(words, " or ")
}
