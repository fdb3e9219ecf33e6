package accelerator

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func table(t interface{ Fatal(...any) }, extension map[string]Definition) *Table {
	out, err := New(extension)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestParseRequest(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want Request
		err  string
	}{
		"a name and a count":             {"T4:4", Request{"T4", 4}, ""},
		"a name alone asks for one":      {"T4", Request{"T4", 1}, ""},
		"spaces around are no matter":    {" A100-80GB : 8 ", Request{"A100-80GB", 8}, ""},
		"nothing is refused":             {"", Request{}, "names none"},
		"a count without a name":         {":4", Request{}, "names none"},
		"a part of an accelerator":       {"T4:0.5", Request{}, `"0.5" is not a whole number`},
		"no accelerator at all":          {"T4:0", Request{}, "asks for 0"},
		"more than any node could have":  {"T4:99999", Request{}, "asks for 99999"},
		"a count that is not there":      {"T4:", Request{}, "not a whole number"},
		"one that would overflow is too": {"T4:99999999999999999999", Request{}, "not a whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseRequest(c.text)
			if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestEveryRowIsSound(t *testing.T) {
	for name, d := range builtin() {
		t.Run(name+" has labels that Kubernetes takes", func(t *testing.T) {
			if err := d.check(); err != nil || len(d.Labels) == 0 || d.Resource == "" {
				t.Errorf("%+v: %v", d, err)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	for name, c := range map[string]struct{ ask, name, err string }{
		"the name":               {"T4", "T4", ""},
		"the name in other case": {"a100-80gb", "A100-80GB", ""},
		"a slip of the pen is answered with the nearest names": {"A100-80G", "", `accelerator "A100-80G" is unknown; the nearest names are A100-80GB`},
		"another thing is answered with how to add it":         {"zzz", "", "added by accelerator_labels"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := table(t, nil).Lookup(c.ask)
			if got != c.name || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestNew(t *testing.T) {
	t.Run("an extension adds a label to a known accelerator, in any case, and an accelerator of its own", func(t *testing.T) {
		got := table(t, map[string]Definition{
			"t4":  {Labels: map[string][]string{"example.com/gpu": {"turing"}, KeyGFD: {"Tesla-T4-SHARED"}}},
			"W10": {Resource: "example.com/npu", Labels: map[string][]string{"example.com/npu": {"w10"}}},
		})
		labels, err := got.Labels("T4")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string][]string{
			KeySkyPilot: {"t4"}, KeyGKE: {"nvidia-tesla-t4"}, KeyKarpenter: {"t4"}, KeyGFD: {"Tesla-T4", "Tesla-T4-SHARED"},
			KeyCoreWeave: {"T4"}, KeyEKS: {"nvidia-tesla-t4"}, "example.com/gpu": {"turing"},
			KeyAKS: {"Standard_NC4as_T4_v3", "Standard_NC8as_T4_v3", "Standard_NC16as_T4_v3", "Standard_NC64as_T4_v3"},
		}, labels); diff != "" {
			t.Error(diff)
		}
		if p, err := got.Place([]Request{{"w10", 2}}, Options{}); err != nil || p.Resource != "example.com/npu" || p.Count != 2 {
			t.Errorf("%+v, %v", p, err)
		}
	})
	for name, c := range map[string]struct {
		extension map[string]Definition
		err       string
	}{
		"an accelerator without labels is refused": {map[string]Definition{"W10": {}}, "has no labels"},
		"a label that is none is refused":          {map[string]Definition{"W10": {Labels: map[string][]string{"a b": {"c"}}}}, "no label key"},
		"a value that is none is refused":          {map[string]Definition{"T4": {Labels: map[string][]string{"a": {"c d"}}}}, "no value of label"},
		"a label without values is refused":        {map[string]Definition{"T4": {Labels: map[string][]string{"a": nil}}}, "has no values"},
		"a resource of no device is refused":       {map[string]Definition{"T4": {Resource: "cpu"}}, "none of a device"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(c.extension); err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestPlace(t *testing.T) {
	requests := func(texts ...string) (out []Request) {
		for _, text := range texts {
			r, err := ParseRequest(text)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, r)
		}
		return out
	}
	node := func(key, value string) map[string]string { return map[string]string{key: value} }
	for name, c := range map[string]struct {
		requests []Request
		resource corev1.ResourceName
		count    int64
		takes    []map[string]string
		refuses  []map[string]string
	}{
		"T4:4 takes a T4 by whichever label it has": {
			requests("T4:4"), "nvidia.com/gpu", 4,
			[]map[string]string{
				node(KeySkyPilot, "t4"), node(KeyGKE, "nvidia-tesla-t4"), node(KeyKarpenter, "t4"), node(KeyGFD, "Tesla-T4"),
				node(KeyCoreWeave, "T4"), node(KeyEKS, "nvidia-tesla-t4"),
			},
			[]map[string]string{{}, node(KeyGKE, "nvidia-l4"), node(KeyGFD, "NVIDIA-T4G")},
		},
		"alternatives take either": {
			requests("T4", "l4"), "nvidia.com/gpu", 1,
			[]map[string]string{node(KeyGKE, "nvidia-tesla-t4"), node(KeyGKE, "nvidia-l4")},
			[]map[string]string{node(KeyGKE, "nvidia-tesla-a100")},
		},
		"a TPU goes by its topology too": {
			requests("tpu-v5e:4"), "google.com/tpu", 4,
			[]map[string]string{{KeyGKETPU: "tpu-v5-lite-podslice", TopologyKey: "2x2"}},
			[]map[string]string{{KeyGKETPU: "tpu-v5-lite-podslice", TopologyKey: "2x4"}, {KeyGKETPU: "tpu-v6e-slice", TopologyKey: "2x2"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, refuse := range []map[string][]string{nil, table(t, nil).Values()} {
				p, err := table(t, nil).Place(c.requests, Options{Refuse: refuse})
				if err != nil {
					t.Fatal(err)
				}
				if p.Resource != c.resource || p.Count != c.count {
					t.Errorf("%d %s", p.Count, p.Resource)
				}
				for _, labels := range c.takes {
					if !matches(p.Affinity, labels) {
						t.Errorf("with %d keys to refuse by: refuses %v", len(refuse), labels)
					}
				}
				for _, labels := range c.refuses {
					if matches(p.Affinity, labels) {
						t.Errorf("with %d keys to refuse by: takes %v", len(refuse), labels)
					}
				}
			}
		})
	}
	for name, c := range map[string]struct{ requests, err string }{
		"alternatives of different counts are refused":    {"T4:4 L4:1", "T4:4 needs 4 nvidia.com/gpu and L4:1 needs 1 nvidia.com/gpu, but a pod has one request"},
		"alternatives of different resources are refused": {"T4:4 tpu-v6e-slice:4", "T4:4 needs 4 nvidia.com/gpu and tpu-v6e-slice:4 needs 4 google.com/tpu"},
		"a TPU of a count that no node has is refused":    {"tpu-v5e:3", "a node has 1 or 4 or 8 of them, never 3"},
		"an unknown one is refused":                       {"T44:1", "the nearest names are T4"},
		"none at all is refused":                          {"", "no accelerator is requested"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := table(t, nil).Place(requests(strings.Fields(c.requests)...), Options{}); err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("in order, the first is preferred, whatever labels the second has", func(t *testing.T) {
		p, err := table(t, nil).Place(requests("A100", "V100", "T4"), Options{Ordered: true})
		if err != nil {
			t.Fatal(err)
		}
		score := func(labels map[string]string) (sum int32) {
			for _, term := range p.Affinity.PreferredDuringSchedulingIgnoredDuringExecution {
				if matchesTerm(term.Preference, labels) {
					sum += term.Weight
				}
			}
			return sum
		}
		first, second, third := score(node(KeyGKE, "nvidia-tesla-a100")), score(map[string]string{KeyGKE: "nvidia-tesla-v100", KeyGFD: "Tesla-V100-SXM2-16GB", KeySkyPilot: "v100"}), score(node(KeyGKE, "nvidia-tesla-t4"))
		if first <= second || second <= third {
			t.Errorf("weights %d, %d, %d", first, second, third)
		}
	})
}

// A flavor's node labels as Kueue v0.19 compares them with a pod (flavorassigner, flavorSelector): the expressions
// under other keys are left out, and if a term has none left, the pod fits the flavor.
func fitsFlavor(affinity *corev1.NodeAffinity, flavor map[string]string) bool {
	var terms []corev1.NodeSelectorTerm
	for _, term := range affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		left := slices.DeleteFunc(slices.Clone(term.MatchExpressions), func(r corev1.NodeSelectorRequirement) bool {
			_, known := flavor[r.Key]
			return !known
		})
		if len(left) == 0 {
			return true
		}
		terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: left})
	}
	return slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool { return matchesTerm(term, flavor) })
}

func TestKueueDistinguishesFlavors(t *testing.T) {
	for _, key := range []string{KeyGKE, KeyGFD, KeySkyPilot, KeyKarpenter, KeyCoreWeave} {
		t.Run("by "+key, func(t *testing.T) {
			tab := table(t, nil)
			p, err := tab.Place([]Request{{"T4", 4}}, Options{Refuse: tab.Values()})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range tab.Names() {
				labels, err := tab.Labels(name)
				if err != nil {
					t.Fatal(err)
				}
				for _, value := range labels[key] {
					if got := fitsFlavor(p.Affinity, map[string]string{key: value}); got != (name == "T4") {
						t.Errorf("a flavor of %s = %s: %t", key, value, got)
					}
				}
			}
			if !fitsFlavor(p.Affinity, map[string]string{"example.com/pool": "a"}) {
				t.Error("a flavor of other labels does not fit")
			}
		})
	}
}

func TestBothDirectionsAgree(t *testing.T) {
	tab := table(t, nil)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(tab.Names()).Draw(t, "name")
		of, d, err := tab.Lookup(strings.ToUpper(name))
		if err != nil || of != name {
			t.Fatal(of, err)
		}
		node := map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(d.Labels)) {
			if rapid.Bool().Draw(t, key) {
				node[key] = rapid.SampledFrom(d.Labels[key]).Draw(t, "value of "+key)
			}
		}
		count := 1
		for n, topology := range d.Topologies {
			count = max(count, n)
			if count == n {
				node[TopologyKey] = topology
			}
		}
		labelled := len(node) > len(d.Topologies) || len(d.Topologies) == 0 && len(node) > 0 || node[KeyGKETPU] != ""
		if slices.Contains(tab.of(node), name) != labelled {
			t.Fatalf("a node of %s, labelled %v, is one of %q", name, node, tab.of(node))
		}
		for _, refuse := range []map[string][]string{nil, tab.Values()} {
			p, err := tab.Place([]Request{{name, count}}, Options{Refuse: refuse})
			if err != nil {
				t.Fatal(err)
			}
			if matches(p.Affinity, node) != labelled {
				t.Fatalf("with %d keys to refuse by: a pod of %s:%d, a node of %v: %t", len(refuse), name, count, node, !labelled)
			}
		}
	})
}

func matches(affinity *corev1.NodeAffinity, labels map[string]string) bool {
	return slices.ContainsFunc(affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return matchesTerm(term, labels)
	})
}

// matchesTerm is the scheduler's rule for the two operators that are used.
func matchesTerm(term corev1.NodeSelectorTerm, labels map[string]string) bool {
	for _, r := range term.MatchExpressions {
		value, there := labels[r.Key]
		if has := there && slices.Contains(r.Values, value); has != (r.Operator == corev1.NodeSelectorOpIn) {
			return false
		}
	}
	return len(term.MatchExpressions) > 0
}

// of are the names of the accelerators that a node with these labels may have, in order: those that at least one label
// names and none contradicts. A label may name several (GFD calls an H100 and an H100-MEGA-80GB the same), and then
// another one may distinguish them.
func (t *Table) of(node map[string]string) []string {
	var out []string
	for _, name := range t.Names() {
		named, contradicted := false, false
		for key, value := range node {
			named = named || slices.Contains(t.rows[name].Labels[key], value)
			contradicted = contradicted || t.contradicts(key, value, name)
		}
		if named && !contradicted {
			out = append(out, name)
		}
	}
	return out
}
