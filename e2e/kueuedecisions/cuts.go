package kueuedecisions

import (
	"maps"
	"slices"
)

// shortened are the lists whose elements may be left out one by one.
var shortened = []string{
	"clusterQueues", "cohorts", "flavors", "localQueues", "nodeTaints", "nodes", "podSets", "pods", "steps", "taints", "tolerations",
}

// optional are the fields that may be left out: what remains is valid without them.
var optional = []string{
	"affinity", "boost", "borrowWithinCohort", "borrowingLimit", "cohortName", "fairSharing", "flavorFungibility", "lendingLimit",
	"maxPriorityThreshold", "minCount", "nodeSelector", "nodeTaints", "podSetGroupName", "pods", "podsetSliceRequiredTopologyConstraints",
	"preemption", "preferred", "queueingStrategy", "reclaimWithinCohort", "resourceGroups", "taints", "tolerations", "topologyRequest",
	"weight", "whenCanBorrow", "whenCanPreempt", "withinClusterQueue",
}

// cuts are ways of making a scenario smaller, those that take much away first. Each returns another scenario, and leaves
// the one it gets alone.
func cuts(s map[string]any) []func(map[string]any) map[string]any {
	var all []func(map[string]any) map[string]any
	var path []any // keys and indexes
	add := func(cut func(holder any, at any) any) {
		way := slices.Clone(path)
		all = append(all, func(s map[string]any) map[string]any { return changed(s, way, cut).(map[string]any) })
	}
	var walk func(v any, list string)
	walk = func(v any, list string) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				path = append(path, key)
				if slices.Contains(optional, key) {
					add(func(holder, key any) any {
						holder = maps.Clone(holder.(map[string]any))
						delete(holder.(map[string]any), key.(string))
						return holder
					})
				}
				walk(v[key], key)
				path = path[:len(path)-1]
			}
		case []any:
			for i := range slices.Backward(v) {
				path = append(path, i)
				if slices.Contains(shortened, list) && len(v) > 1 || list == "pods" {
					add(func(holder, i any) any { return slices.Delete(slices.Clone(holder.([]any)), i.(int), i.(int)+1) })
				}
				walk(v[i], list)
				path = path[:len(path)-1]
			}
		}
	}
	walk(map[string]any{"steps": s["steps"]}, "")
	rest := maps.Clone(s)
	delete(rest, "steps")
	walk(rest, "")
	return all
}

// changed is v with another value at a place, which cut makes of what holds the last key or index of the way.
func changed(v any, way []any, cut func(holder any, at any) any) any {
	if len(way) == 1 {
		return cut(v, way[0])
	}
	switch at := way[0].(type) {
	case string:
		m := maps.Clone(v.(map[string]any))
		m[at] = changed(m[at], way[1:], cut)
		return m
	case int:
		l := slices.Clone(v.([]any))
		l[at] = changed(l[at], way[1:], cut)
		return l
	}
	panic("a way has keys and indexes")
}
