// Package accelerator maps the name of an accelerator ("T4") to the node labels by which cloud providers, GPU feature
// discovery and users mark nodes that have it. Users can extend the table.
//
// SkyPilot detects which labels a cluster uses and writes one of them. Here a pod accepts a node with any of the
// labels, so the same task runs on every cluster, also on one with different kinds of labels.
package accelerator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Request asks for so many accelerators of a kind in each pod: SkyPilot's "T4:4".
type Request struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

func (r Request) String() string { return fmt.Sprintf("%s:%d", r.Name, r.Count) }

// Definition is one row of the table.
type Definition struct {
	// Resource is what a pod requests: "nvidia.com/gpu", "google.com/tpu" or "amd.com/gpu". "" is nvidia.com/gpu.
	Resource string `json:"resource,omitempty"`
	// Labels are the values by label key, any of which marks a node that has the accelerator.
	Labels map[string][]string `json:"labels"`
	// Topologies, by count, are what GKE's TPU nodes say in TopologyKey besides. Where there are any, no other count
	// exists.
	Topologies map[int]string `json:"topologies,omitempty"`
}

// DefaultResource is what most accelerators are requested by.
const DefaultResource = "nvidia.com/gpu"

// maxCount is more accelerators than any node has.
const maxCount = 1 << 10

// ParseRequest reads "T4:4"; "T4" asks for one.
func ParseRequest(text string) (Request, error) {
	name, count, counted := strings.Cut(strings.TrimSpace(text), ":")
	r := Request{Name: strings.TrimSpace(name), Count: 1}
	if r.Name == "" {
		return Request{}, fmt.Errorf("accelerators %q names none; write NAME or NAME:COUNT, such as T4:4", text)
	}
	if counted {
		n, err := strconv.Atoi(strings.TrimSpace(count))
		if err != nil {
			return Request{}, fmt.Errorf("accelerators %q: %q is not a whole number; Kubernetes gives whole accelerators to a pod", text, count)
		}
		r.Count = n
	}
	return r, r.check()
}

func (r Request) check() error {
	if r.Count < 1 || r.Count > maxCount {
		return fmt.Errorf("accelerators %q asks for %d; it must be 1 to %d", r.Name, r.Count, maxCount)
	}
	return nil
}

// Table is the built-in table with a user's extension. It is not changed after New.
type Table struct {
	rows  map[string]Definition // by the name as it is written
	names map[string]string     // the name as it is written, by its lower case
	marks map[mark][]string     // the names of the rows that a label's value names
}

// mark is a label of a node.
type mark struct{ key, value string }

// New is the built-in table, extended: a new name adds a row, a known one (in any case) adds values to its labels and
// replaces its resource and topologies where they are given.
func New(extension map[string]Definition) (*Table, error) {
	t := &Table{rows: builtin(), names: map[string]string{}}
	for name := range t.rows {
		t.names[strings.ToLower(name)] = name
	}
	for _, name := range slices.Sorted(maps.Keys(extension)) {
		d := extension[name]
		if err := d.check(); err != nil {
			return nil, fmt.Errorf("accelerator %q: %w", name, err)
		}
		known, there := t.names[strings.ToLower(name)]
		if !there {
			if len(d.Labels) == 0 {
				return nil, fmt.Errorf("accelerator %q: it has no labels; name those of the nodes that have it, such as {\"nvidia.com/gpu.product\" = [\"…\"]}", name)
			}
			t.names[strings.ToLower(name)], t.rows[name] = name, d
			continue
		}
		t.rows[known] = t.rows[known].extended(d)
	}
	t.marks = map[mark][]string{}
	for name, d := range t.rows {
		for key, values := range d.Labels {
			for _, value := range values {
				t.marks[mark{key, value}] = append(t.marks[mark{key, value}], name)
			}
		}
	}
	return t, nil
}

func (d Definition) check() error {
	if d.Resource != "" && !strings.Contains(d.Resource, "/") {
		return fmt.Errorf("resource %q is none of a device; it has a domain, as nvidia.com/gpu has", d.Resource)
	}
	if d.Resource != "" && len(validation.IsQualifiedName(d.Resource)) > 0 {
		return fmt.Errorf("resource %q is no name of a resource", d.Resource)
	}
	for _, key := range slices.Sorted(maps.Keys(d.Labels)) {
		if errs := validation.IsQualifiedName(key); len(errs) > 0 {
			return fmt.Errorf("%q is no label key: %s", key, errs[0])
		}
		if len(d.Labels[key]) == 0 {
			return fmt.Errorf("label %q has no values", key)
		}
		for _, value := range d.Labels[key] {
			if errs := validation.IsValidLabelValue(value); value == "" || len(errs) > 0 {
				return fmt.Errorf("%q is no value of label %q", value, key)
			}
		}
	}
	return nil
}

func (d Definition) extended(by Definition) Definition {
	out := Definition{Resource: d.Resource, Labels: maps.Clone(d.Labels), Topologies: d.Topologies}
	if by.Resource != "" {
		out.Resource = by.Resource
	}
	if len(by.Topologies) > 0 {
		out.Topologies = by.Topologies
	}
	for key, values := range by.Labels {
		union := slices.Concat(out.Labels[key], values)
		slices.Sort(union)
		out.Labels[key] = slices.Compact(union)
	}
	return out
}

// Names are all names of the table, in order.
func (t *Table) Names() []string { return slices.Sorted(maps.Keys(t.rows)) }

// Lookup finds a row by its name in any case. The error of an unknown name gives those most like it.
func (t *Table) Lookup(name string) (canonical string, d Definition, err error) {
	canonical, ok := t.names[strings.ToLower(name)]
	if !ok {
		return "", Definition{}, fmt.Errorf("accelerator %q is unknown; the nearest names are %s. Another one is added by accelerator_labels, with the labels of its nodes",
			name, strings.Join(t.nearest(name), ", "))
	}
	d = t.rows[canonical]
	d.Resource = cmp.Or(d.Resource, DefaultResource)
	return canonical, d, nil
}

// nearest are the three names that have the longest beginning in common with a name, in any case.
func (t *Table) nearest(name string) []string {
	name = strings.ToLower(name)
	inCommon := func(known string) int {
		n := 0
		for known = strings.ToLower(known); n < min(len(name), len(known)) && name[n] == known[n]; n++ {
		}
		return n
	}
	names := t.Names()
	slices.SortStableFunc(names, func(a, b string) int { return inCommon(b) - inCommon(a) })
	return names[:min(3, len(names))]
}

// Labels are the values by label key that mark a node that has the accelerator.
func (t *Table) Labels(name string) (map[string][]string, error) {
	_, d, err := t.Lookup(name)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]string, len(d.Labels))
	for key, values := range d.Labels {
		out[key] = slices.Clone(values)
	}
	return out, nil
}

// contradicts reports whether a label's value names other accelerators and not this one. A coarser name is no
// contradiction: Karpenter calls an A100-80GB an a100.
func (t *Table) contradicts(key, value, name string) bool {
	named := t.marks[mark{key, value}]
	return len(named) > 0 && !slices.ContainsFunc(named, func(other string) bool {
		return other == name || strings.HasPrefix(name, other+"-")
	})
}

func (d Definition) resource() string {
	return cmp.Or(d.Resource, DefaultResource)
}

// Values are all values of the table by label key, for Options.Refuse where the flavors are not known.
func (t *Table) Values() map[string][]string {
	out := map[string][]string{}
	for _, d := range t.rows {
		for key, values := range d.Labels {
			out[key] = append(out[key], values...)
		}
	}
	return out
}
