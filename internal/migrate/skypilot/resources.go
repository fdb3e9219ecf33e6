package skypilot

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/accelerator"
)

// resources takes over what each node must have.
func resources(p *parser, path string, e entry) {
	known := resourceKeys()
	// Alternatives override the settings beside them, wherever they stand.
	entries := p.entries(path, e.value)
	slices.SortStableFunc(entries, func(a, b entry) int { return choosing(a.key.Value) - choosing(b.key.Value) })
	p.pods = slices.ContainsFunc(entries, func(e entry) bool {
		return (e.key.Value == "infra" || e.key.Value == "cloud") && e.value.Value != "*" && onKubernetes(e.value.Value)
	})
	for _, e := range entries {
		if handle, ok := known[e.key.Value]; ok {
			p.present[e.key.Value] = e.key
			handle(p, join(path, e.key.Value), e)
		} else {
			p.unknown(path, e.key, slices.Sorted(maps.Keys(known)))
		}
	}
}

func resourceKeys() map[string]handler {
	known := virtualMachines()
	maps.Copy(known, map[string]handler{
		"cpus":   func(p *parser, path string, e entry) { p.task.CPUs, _ = p.text(path, e.value) },
		"memory": func(p *parser, path string, e entry) { p.task.Memory, _ = p.text(path, e.value) },
		"accelerators": func(p *parser, path string, e entry) {
			p.task.Accelerators, p.task.Ordered = p.accelerators(path, e.value)
			p.sameCount(e.key, path, p.task.Accelerators)
		},
		"labels":       labels,
		"job_recovery": recovery,
		"image_id":     image,
		"cloud":        cloud,
		"infra":        cloud,
		"use_spot": func(p *parser, path string, e entry) {
			if spot, ok := p.truth(path, e.value); ok && spot {
				p.refuse(e.key, "%s asks a cloud for spot machines; choose spot nodes by node_selector and tolerations, such as cloud.google.com/gke-spot", path)
			}
		},
		"accelerator_args": func(p *parser, path string, e entry) {
			p.walk(path, e.value, acceleratorArgsKeys())
		},
		"any_of":  func(p *parser, path string, e entry) { p.alternatives(path, e, false) },
		"ordered": func(p *parser, path string, e entry) { p.alternatives(path, e, true) },
	})
	return known
}

func acceleratorArgsKeys() map[string]handler {
	return map[string]handler{
		"runtime_version":     ignored("a TPU of a cluster has its node's runtime"),
		"tpu_name":            ignored("a TPU of a cluster has its node's name"),
		"tpu_vm":              ignored("a TPU of a cluster is a node"),
		"gcp_queued_resource": ignored("Kueue queues the task"),
	}
}

func choosing(key string) int {
	if key == "any_of" || key == "ordered" {
		return 1
	}
	return 0
}

// accelerators reads SkyPilot's forms: T4:4, {T4: 4}, a list of both in order of preference, and a set without one ({T4:1,
// L4:1}, of which YAML makes keys without values).
func (p *parser) accelerators(path string, n *yaml.Node) (requests []accelerator.Request, ordered bool) {
	if n = p.resolve(n); n == nil {
		return nil, false
	}
	add := func(at *yaml.Node, text string) {
		r, err := accelerator.ParseRequest(text)
		switch {
		case err != nil:
			p.refuse(at, "%s: %s", path, err)
		case slices.Contains(requests, r):
			p.refuse(at, "%s has %s twice", path, r)
		default:
			requests = append(requests, r)
		}
	}
	counted := func(n *yaml.Node) {
		for _, e := range p.entries(path, n) {
			text := e.key.Value
			if count, ok := p.text(join(path, e.key.Value), e.value); ok {
				text += ":" + count
			}
			add(e.key, text)
		}
	}
	switch n.Kind {
	case yaml.MappingNode:
		counted(n)
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if item = p.resolve(item); item != nil && item.Kind == yaml.MappingNode {
				counted(item)
			} else if item == nil {
				return nil, false
			} else if text, ok := p.text(path, item); ok {
				add(item, text)
			}
		}
		ordered = len(requests) > 1
	default:
		if text, ok := p.text(path, n); ok && !strings.EqualFold(text, "none") {
			add(n, text)
		}
	}
	return requests, ordered
}

// alternatives are resources of which any will do. A pod has one request, so they may differ only in the name of
// their accelerator, and those on clouds are left out if one is left.
func (p *parser) alternatives(path string, e entry, ordered bool) {
	if len(p.task.Accelerators) > 1 {
		p.refuse(e.key, "%s stands beside several accelerators; say the alternatives in one place", path)
		return
	}
	if n := e.value; !null(n) && n.Kind != yaml.SequenceNode {
		p.refuse(n, "%s is %s; a list of resources is expected", path, kind(n))
		return
	}
	items := p.list(e.value)
	elsewhere := make([]string, len(items))
	for i, item := range items {
		elsewhere[i] = p.otherCloud(fmt.Sprintf("%s[%d]", path, i), item)
	}
	var all []accelerator.Request
	cpus, memory := p.task.CPUs, p.task.Memory
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if elsewhere[i] != "" && slices.Contains(elsewhere, "") {
			p.warn(item, "%s has no effect: it is for %s, and this provider runs tasks on Kubernetes only", at, elsewhere[i])
			continue
		}
		of := p.alternative(at, item, amounts{cpus: cpus, memory: memory, first: len(all) == 0})
		for _, r := range of {
			if !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
		if len(of) == 0 && len(p.problems) == 0 {
			p.refuse(item, "%s asks for no accelerator; a task that needs none in one place and some in another cannot be one pod", at)
		}
	}
	p.sameCount(e.key, path, all)
	p.task.Accelerators, p.task.Ordered = all, ordered && len(all) > 1
}

// amounts are the CPUs and memory beside the alternatives, which an alternative overrides.
type amounts struct {
	cpus, memory string
	first        bool // no alternative has set the requests yet
}

// alternative returns the accelerators of one alternative. Its CPUs and memory become the task's, or must be equal to
// those of the first.
func (p *parser) alternative(at string, item *yaml.Node, beside amounts) []accelerator.Request {
	of := p.task.Accelerators
	cpus, memory := beside.cpus, beside.memory
	for _, e := range p.entries(at, item) {
		where := join(at, e.key.Value)
		switch e.key.Value {
		case "accelerators":
			of, _ = p.accelerators(where, e.value)
		case "infra", "cloud":
			cloud(p, where, e)
		case "cpus":
			cpus, _ = p.text(where, e.value)
		case "memory":
			memory, _ = p.text(where, e.value)
		case "use_spot":
			if spot, ok := p.truth(where, e.value); ok && spot {
				p.refuse(e.key, "%s asks a cloud for spot machines; choose spot nodes by node_selector and tolerations", where)
			}
		default:
			p.refuse(e.key, "%s cannot differ between alternatives: a pod has one request and one description, whichever node it lands on", where)
		}
	}
	if beside.first {
		p.task.CPUs, p.task.Memory = cpus, memory
	}
	for _, amount := range []struct{ name, first, this string }{{"cpus", p.task.CPUs, cpus}, {"memory", p.task.Memory, memory}} {
		if amount.first != amount.this {
			p.refuse(item, "%s.%s is %s, and %s in the first alternative: a pod has one request, whichever node it lands on", at, amount.name, cmp.Or(amount.this, "not set"), cmp.Or(amount.first, "not set"))
		}
	}
	return of
}

// otherCloud is the cloud of an alternative that is not for Kubernetes, or "".
func (p *parser) otherCloud(path string, alternative *yaml.Node) string {
	for _, e := range p.entries(path, alternative) {
		if e.key.Value != "infra" && e.key.Value != "cloud" {
			continue
		}
		if text, ok := p.text(path, e.value); ok && !onKubernetes(text) {
			return text
		}
	}
	return ""
}

// sameCount refuses alternatives of different numbers of accelerators, as accelerator.Table does when it places a pod.
func (p *parser) sameCount(at *yaml.Node, path string, requests []accelerator.Request) {
	for _, r := range requests {
		if r.Count != requests[0].Count {
			p.refuse(at, "%s: %s", path, accelerator.DifferentCounts(requests[0], r))
			return
		}
	}
}

// onKubernetes reports whether a cloud or infra is Kubernetes, perhaps with a context, or any.
func onKubernetes(infra string) bool {
	name, _, _ := strings.Cut(infra, "/")
	return slices.Contains([]string{"kubernetes", "k8s", "*"}, strings.ToLower(name))
}

// cloud takes Kubernetes, and no other.
func cloud(p *parser, path string, e entry) {
	text, ok := p.text(path, e.value)
	if !ok {
		return
	}
	_, context, named := strings.Cut(text, "/")
	switch {
	case !onKubernetes(text):
		p.refuse(e.value, "%s is %q; this provider runs tasks on Kubernetes only: write k8s or leave it out", path, text)
	case named:
		p.warn(e.value, "%s has no effect: the provider's configuration says which cluster, not context %q", path, context)
	}
}

// image is a container's, which needs no docker: where resources name Kubernetes. All others are of virtual machines.
func image(p *parser, path string, e entry) {
	if e.value.Kind == yaml.MappingNode {
		p.refuse(e.key, "%s names virtual machine images by region; name a container image: docker:IMAGE", path)
		return
	}
	text, ok := p.text(path, e.value)
	if !ok {
		return
	}
	name, docker := strings.CutPrefix(text, "docker:")
	if !docker && !p.pods || name == "" {
		p.refuse(e.value, "%s is %q, an image of a virtual machine; name a container image: docker:IMAGE", path, text)
		return
	}
	p.task.Image = name
}

// podPatch is SkyPilot's pod_config as JSON, in which its container, ray-node or without a name, is ours.
func (p *parser) podPatch(n *yaml.Node) (json.RawMessage, error) {
	value, err := p.value(n)
	if err != nil {
		return nil, err
	}
	patch, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("it has no keys")
	}
	if spec, ok := patch["spec"].(map[string]any); ok {
		if containers, ok := spec["containers"].([]any); ok && len(containers) > 0 {
			if first, ok := containers[0].(map[string]any); ok && (first["name"] == nil || first["name"] == "ray-node") {
				first["name"] = task.ContainerName
			}
		}
	}
	return json.Marshal(patch)
}

// value is a node as JSON has it.
func (p *parser) value(n *yaml.Node) (any, error) {
	if n = p.resolve(n); n == nil {
		return nil, errors.New("it is too large")
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for _, e := range p.entries("pod_config", n) {
			v, err := p.value(e.value)
			if err != nil {
				return nil, err
			}
			out[e.key.Value] = v
		}
		return out, nil
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range n.Content {
			v, err := p.value(item)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	default:
		var out any
		if err := n.Decode(&out); err != nil {
			return nil, err
		}
		if _, err := json.Marshal(out); err != nil { // infinity, say
			return nil, fmt.Errorf("line %d: %q has no form in JSON", n.Line, n.Value)
		}
		return out, nil
	}
}
