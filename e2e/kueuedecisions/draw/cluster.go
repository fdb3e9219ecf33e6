package draw

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// object is a JSON object.
type object = map[string]any

// drawing is a scenario in the making.
type drawing struct {
	*rand.Rand
	with features

	levels []string // of the topology, highest first
	nodes  []object
	queues []string
	locals []string
	// resources are those that quotas are about.
	resources []string
	flavorsOf map[string][]string // of each queue
	// submitted are the workloads that did not finish; workloads and pods count all.
	submitted       []string
	workloads, pods int
	made            map[string]object // the workloads by name
}

// below is a random number from low to high.
func (d *drawing) below(low, high int) int { return low + d.IntN(high-low+1) }

// chance is true in so many of a hundred cases.
func (d *drawing) chance(percent int) bool { return d.IntN(100) < percent }

func pick[T any](d *drawing, from ...T) T { return from[d.IntN(len(from))] }

const hostname = "kubernetes.io/hostname"

// cluster draws what is there before the first step.
func (d *drawing) cluster() object {
	s := object{"priorityClasses": []object{{"name": "low", "value": 10}, {"name": "mid", "value": 100}, {"name": "high", "value": 1000}}}
	if d.with.usage {
		s["admissionFairSharing"] = d.admissionFairSharing()
	}
	if d.with.fair {
		s["fairSharing"] = pick(d, object{}, object{"preemptionStrategies": []string{"LessThanInitialShare"}},
			object{"preemptionStrategies": []string{"LessThanOrEqualToFinalShare"}})
	}
	if d.with.boost {
		s["priorityBoost"] = true
	}
	if d.with.late {
		wait := object{"timestamp": pick(d, "Eviction", "Creation"), "backoffBaseSeconds": pick(d, 3, 5, 10)}
		if d.with.limited {
			wait["blockAdmission"], wait["backoffLimitCount"] = d.chance(50), d.below(0, 2)
		}
		s["waitForPodsReady"] = wait
	}
	d.resources = []string{"cpu"}
	if d.chance(30) {
		d.resources = append(d.resources, "example.com/gpu")
	}
	if d.with.topology {
		d.drawTopology(s)
	}
	flavors := d.flavors()
	s["flavors"] = flavors
	s["cohorts"] = d.cohorts()
	s["clusterQueues"], s["localQueues"] = d.clusterQueues(flavors)
	return s
}

func (d *drawing) drawTopology(s object) {
	d.levels = pick(d,
		[]string{"cloud/block", "cloud/rack", hostname}, []string{"cloud/block", "cloud/rack"}, []string{"cloud/rack", hostname}, []string{hostname})
	if d.with.layers {
		d.levels = pick(d, []string{"cloud/block", "cloud/rack", hostname}, []string{"cloud/zone", "cloud/block", "cloud/rack", hostname})
	}
	var levels []object
	for _, l := range d.levels {
		levels = append(levels, object{"nodeLabel": l})
	}
	s["topologies"] = []object{{"name": "default", "spec": object{"levels": levels}}}
	racks := d.below(2, 4)
	for i := range d.below(3, 9) {
		d.nodes = append(d.nodes, d.node(i, i%racks))
	}
	s["nodes"] = d.nodes
}

func (d *drawing) node(i, rack int) object {
	cpu := d.below(2, 5)
	name := fmt.Sprintf("n%d", i)
	n := object{
		"name": name,
		"labels": map[string]string{
			"cloud/zone": fmt.Sprintf("z%d", rack/3), "cloud/block": fmt.Sprintf("b%d", rack/2), "cloud/rack": fmt.Sprintf("r%d", rack),
			hostname: name, "pool": "tas", "kind": pick(d, "old", "new"),
		},
		"allocatable": map[string]string{"cpu": strconv.Itoa(cpu), "memory": "64Gi", "pods": pick(d, "110", "110", "3"), "example.com/gpu": strconv.Itoa(d.below(1, 4))},
	}
	if d.with.selectors && d.chance(15) {
		n["taints"] = []object{{"key": "dedicated", "value": "x", "effect": "NoSchedule"}}
	}
	return n
}

func (d *drawing) flavors() []object {
	var all []object
	for i := range d.below(1, d.with.flavors) {
		spec := object{}
		if d.with.topology {
			spec["topologyName"] = "default"
			spec["nodeLabels"] = map[string]string{"pool": "tas"}
			if d.with.flavors > 1 {
				spec["nodeLabels"] = map[string]string{"kind": []string{"old", "new"}[i%2]}
			}
			if d.with.overlaps {
				spec["nodeLabels"] = pick(d, map[string]string{"pool": "tas"}, map[string]string{"kind": "old"}, map[string]string{"kind": "new"})
			}
		} else if d.with.selectors {
			spec["nodeLabels"] = map[string]string{"kind": []string{"old", "new", "spot"}[i%3]}
			if d.chance(30) {
				spec["nodeTaints"] = []object{{"key": "dedicated", "value": "x", "effect": "NoSchedule"}}
			}
		}
		all = append(all, object{"name": fmt.Sprintf("f%d", i+1), "spec": spec})
	}
	return all
}

// cohorts draws a tree of four, or none: then cohorts are only named.
func (d *drawing) cohorts() []object {
	all := []object{}
	if !d.with.tree {
		return all
	}
	for _, c := range [][2]string{{"left", "all"}, {"right", "all"}, {"deep", "left"}} {
		spec := object{"parentName": c[1]}
		if d.with.limits && d.chance(40) {
			q := object{"name": "cpu", "nominalQuota": strconv.Itoa(d.below(0, 4))}
			d.limit(q, 4)
			spec["resourceGroups"] = []object{{"coveredResources": []string{"cpu"}, "flavors": []object{{"name": "f1", "resources": []object{q}}}}}
		}
		if d.with.fair && d.chance(40) {
			spec["fairSharing"] = object{"weight": pick(d, "2", "500m", "3")}
		}
		all = append(all, object{"name": c[0], "spec": spec})
	}
	return all
}

// limit draws the limits of a quota.
func (d *drawing) limit(q object, percentScale int) {
	if !d.with.limits {
		return
	}
	if d.chance(10 * percentScale) {
		q["borrowingLimit"] = strconv.Itoa(d.below(0, 6))
	}
	var nominal int
	_, _ = fmt.Sscan(q["nominalQuota"].(string), &nominal)
	if d.chance(10 * percentScale) {
		q["lendingLimit"] = strconv.Itoa(d.below(0, nominal))
	}
}

func (d *drawing) clusterQueues(flavors []object) (queues, locals []object) {
	d.flavorsOf = map[string][]string{}
	for i := range d.below(2, 4) {
		name := string(rune('a' + i))
		spec := object{
			"queueingStrategy": pick(d, "BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"),
			"preemption":       d.preemption(),
		}
		inCohort := !d.with.cohortless || d.chance(50)
		if inCohort {
			spec["cohortName"] = "all"
			if d.with.tree {
				spec["cohortName"] = pick(d, "left", "right", "deep", "all")
			}
		} else {
			spec["preemption"] = object{"withinClusterQueue": pick(d, "Never", "LowerPriority", "LowerOrNewerEqualPriority")}
		}
		fungibility := object{"whenCanBorrow": pick(d, "MayStopSearch", "TryNextFlavor"), "whenCanPreempt": pick(d, "MayStopSearch", "TryNextFlavor")}
		if fungibility["whenCanBorrow"] == "TryNextFlavor" && fungibility["whenCanPreempt"] == "TryNextFlavor" && d.chance(60) {
			fungibility["preference"] = pick(d, "BorrowingOverPreemption", "PreemptionOverBorrowing")
		}
		spec["flavorFungibility"] = fungibility
		if d.with.fair && d.chance(40) {
			spec["fairSharing"] = object{"weight": pick(d, "2", "500m", "3", "0")}
		}
		var offered []object
		for _, f := range flavors {
			if len(offered) > 0 && d.chance(20) {
				continue
			}
			var resources []object
			for _, r := range d.resources {
				q := object{"name": r, "nominalQuota": strconv.Itoa(d.below(1, 10))}
				if inCohort {
					d.limit(q, 3)
				}
				resources = append(resources, q)
			}
			offered = append(offered, object{"name": f["name"], "resources": resources})
			d.flavorsOf[name] = append(d.flavorsOf[name], f["name"].(string))
		}
		spec["resourceGroups"] = []object{{"coveredResources": d.resources, "flavors": offered}}
		queues = append(queues, object{"name": name, "spec": spec})
		d.queues = append(d.queues, name)
		if d.with.usage {
			locals = append(locals, d.severalLocals(name, spec)...)
			continue
		}
		d.locals = append(d.locals, "lq-"+name)
		locals = append(locals, object{"name": "lq-" + name, "clusterQueue": name})
	}
	return queues, locals
}

func (d *drawing) preemption() object {
	p := object{
		"withinClusterQueue":  pick(d, "Never", "LowerPriority", "LowerOrNewerEqualPriority"),
		"reclaimWithinCohort": pick(d, "Never", "LowerPriority", "Any", "Any"),
	}
	if p["reclaimWithinCohort"] != "Never" && !d.with.fair && d.chance(40) {
		b := object{"policy": "LowerPriority"}
		if d.chance(50) {
			b["maxPriorityThreshold"] = pick(d, 10, 100)
		}
		p["borrowWithinCohort"] = b
	}
	return p
}
