package topology

import (
	"fmt"
	"slices"
	"strings"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/tas"
)

// replaceGroup moves the pods of a group's pod sets from a broken host to others.
func (c *Capacity) replaceGroup(group []Request, options Options, all taken, placed map[string]*Assignment) *Failure {
	for i := range group {
		r := &group[i]
		existing := options.Admitted[r.PodSet]
		if existing == nil {
			continue
		}
		whole, moved, why := c.replace(*r, existing, options.Broken, all)
		if why != "" {
			return &Failure{PodSet: r.PodSet, Reason: why}
		}
		placed[r.PodSet] = whole
		all.add(moved, r.PerPod)
	}
	return nil
}

// replace finds another place for the pods of a broken host (Kueue's findReplacementAssignment): in the domain that a
// required level or an incomplete slice ties them to. It returns the whole assignment, and what of it is new.
func (c *Capacity) replace(r Request, existing *Assignment, broken string, all taken) (whole, moved *Assignment, why string) {
	kept := &Assignment{Levels: existing.Levels}
	r.Count = 0
	for _, d := range existing.Domains {
		if d.Values[len(d.Values)-1] == broken {
			r.Count = d.Count
			continue
		}
		kept.Domains = append(kept.Domains, d)
	}
	for _, d := range kept.Domains {
		if _, known := c.tree.leafOf[ID(d.Values)]; !known {
			return nil, nil, fmt.Sprintf("Cannot replace the node, because the existing topologyAssignment is invalid, as it contains the stale domain %v", d.Values[0])
		}
	}
	within := c.boundTo(&r, kept)
	size, why := sliceSize(r.Topology)
	if why != "" {
		return nil, nil, why
	}
	if within != "" && len(layers(r.Topology)) > 0 && r.Count%size != 0 {
		r.Topology = partialSlices(r.Topology, r.Count)
	}
	found, why := c.find(&r, nil, scene{taken: all, within: within})
	if why != "" {
		return nil, nil, why
	}
	moved = found[r.PodSet]
	if len(moved.Domains) == 0 {
		return nil, nil, fmt.Sprintf("cannot find replacement assignment for unhealthy node: %v", broken)
	}
	return c.merge(moved, kept), moved, ""
}

// partialSlices is a request for a part of a slice: in whole slices of the innermost layer that divides it.
func partialSlices(r *kueue.PodSetTopologyRequest, count int32) *kueue.PodSetTopologyRequest {
	part := *r
	part.PodsetSliceRequiredTopologyConstraints = nil
	part.PodSetSliceRequiredTopology, part.PodSetSliceSize = nil, new(int32)
	*part.PodSetSliceSize = 1
	for _, layer := range slices.Backward(layers(r)) {
		if count%layer.Size == 0 {
			part.PodSetSliceRequiredTopology, part.PodSetSliceSize = &layer.Topology, &layer.Size
			break
		}
	}
	return &part
}

// boundTo is the domain that replaced pods must stay in; "" for any.
func (c *Capacity) boundTo(r *Request, kept *Assignment) string {
	level := c.tree.levelOf(r.Topology)
	if level == "" && !Explicit(r.Topology) {
		level = c.tree.lowest()
	}
	at := c.tree.index(level)
	if at < 0 || len(kept.Domains) == 0 {
		return ""
	}
	size, why := sliceSize(r.Topology)
	if why != "" {
		return ""
	}
	if all := layers(r.Topology); len(all) > 0 && r.Count%size != 0 {
		if len(all) > 1 {
			for _, layer := range slices.Backward(all) {
				if r.Count%layer.Size != 0 {
					return c.incomplete(kept, r.Count, layer.Size, layer.Topology)
				}
			}
		}
		return c.incomplete(kept, r.Count, size, all[0].Topology)
	}
	if !required(r.Topology) || len(kept.Domains[0].Values) == 0 {
		return ""
	}
	leaf, known := c.tree.leafOf[ID(kept.Domains[0].Values)]
	if !known {
		return ""
	}
	return c.id(c.tree.ancestor(leaf, at))
}

// incomplete is the domain of a level in which a slice lacks the missing pods. Where several do, Kueue takes one in no
// order; here it is the first by name.
func (c *Capacity) incomplete(kept *Assignment, missing, size int32, level string) string {
	at := c.tree.index(level)
	if at < 0 {
		return ""
	}
	pods := map[int]int32{}
	for _, d := range kept.Domains {
		if leaf, known := c.tree.leafOf[ID(d.Values)]; known {
			pods[c.tree.ancestor(leaf, at)] += d.Count
		}
	}
	found := ""
	for d, count := range pods {
		if id := c.id(d); (count+missing)%size == 0 && (found == "" || id < found) {
			found = id
		}
	}
	return found
}

// merge joins two assignments in the order of their domains.
func (c *Capacity) merge(a, b *Assignment) *Assignment {
	all := slices.Concat(a.Domains, b.Domains)
	path := func(d tas.Domain) string {
		if leaf, known := c.tree.leafOf[ID(d.Values)]; known {
			return ID(c.tree.domains[leaf].values)
		}
		return ID(d.Values)
	}
	slices.SortStableFunc(all, func(x, y tas.Domain) int { return strings.Compare(path(x), path(y)) })
	merged := &Assignment{Levels: a.Levels}
	for _, d := range all {
		if last := len(merged.Domains) - 1; last >= 0 && ID(merged.Domains[last].Values) == ID(d.Values) {
			merged.Domains[last].Count += d.Count
			continue
		}
		merged.Domains = append(merged.Domains, d)
	}
	return merged
}
