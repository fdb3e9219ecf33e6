package draw

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// steps draws what is done: mostly, workloads come.
func (d *drawing) steps() []object {
	var all []object
	for range d.below(12, 20) {
		all = append(all, d.step())
	}
	return all
}

func (d *drawing) step() object {
	switch n := d.IntN(100); {
	case len(d.submitted) > 2 && n < 18:
		i := d.IntN(len(d.submitted))
		name := d.submitted[i]
		d.submitted = slices.Delete(d.submitted, i, i+1)
		return object{"op": "finish", "workload": name}
	case d.with.usage && n < 34:
		return object{"op": "wait", "value": pick(d, 1, 4, 10, 30, 90)}
	case d.with.changes && n < 55, d.with.usage && n > 92:
		return d.change()
	case d.with.boost && len(d.submitted) > 0 && n < 35:
		return object{"op": "setBoost", "workload": pick(d, d.submitted...), "value": pick(d, -90, -10, 0, 50, 900)}
	case d.with.late && len(d.submitted) > 0 && n < 42:
		return object{"op": "podsNotReady", "workload": pick(d, d.submitted...)}
	case d.with.slices && len(d.submitted) > 0 && n < 45:
		return d.resize()
	case d.with.topology && n < 26:
		d.pods++
		return object{"op": "setPod", "pod": d.otherPod(fmt.Sprintf("p%d", d.pods))}
	}
	return object{"op": "submit", "workload": d.workload()}
}

// change draws a change of what is there.
func (d *drawing) change() object {
	queue := pick(d, d.queues...)
	kinds := []string{"setQuota", "setQuota", "setPriority", "setActive", "stopPolicy"}
	if d.with.topology {
		kinds = append(kinds, "setNode", "setNode", "deleteNode", "setPod", "deletePod")
	}
	switch kind := pick(d, kinds...); {
	case kind == "setNode":
		i := d.below(0, len(d.nodes))
		n := d.node(i, i%3)
		if i == len(d.nodes) {
			d.nodes = append(d.nodes, n)
		}
		d.nodes[i] = n
		n["unschedulable"] = d.chance(15)
		return object{"op": kind, "node": n}
	case kind == "deleteNode" && len(d.nodes) > 2:
		last := d.nodes[len(d.nodes)-1]
		d.nodes = d.nodes[:len(d.nodes)-1]
		return object{"op": kind, "name": last["name"]}
	case kind == "deletePod" && d.pods > 0:
		d.pods--
		return object{"op": kind, "name": fmt.Sprintf("p%d", d.pods+1)}
	case kind == "setPod":
		d.pods++
		return object{"op": kind, "pod": d.otherPod(fmt.Sprintf("p%d", d.pods))}
	case kind == "stopPolicy":
		return object{"op": kind, "clusterQueue": queue, "value": pick(d, "None", "None", "Hold", "HoldAndDrain")}
	case kind == "setActive" && len(d.submitted) > 0:
		return object{"op": kind, "workload": pick(d, d.submitted...), "value": d.chance(50)}
	case kind == "setPriority" && len(d.submitted) > 0:
		return object{"op": kind, "workload": pick(d, d.submitted...), "priorityClass": pick(d, "low", "mid", "high")}
	}
	return object{
		"op": "setQuota", "clusterQueue": queue, "flavor": pick(d, d.flavorsOf[queue]...), "resource": "cpu",
		"set": object{"nominalQuota": strconv.Itoa(d.below(1, 10)), "lendingLimit": nil},
	}
}

func (d *drawing) otherPod(name string) object {
	return object{"name": name, "node": pick(d, d.nodes...)["name"], "requests": map[string]string{"cpu": pick(d, "1", "500m")}}
}

// resize replaces a workload by a larger one of its job, or makes it smaller in place.
func (d *drawing) resize() object {
	name := pick(d, d.submitted...)
	old := d.made[name]
	if count, one := old["count"].(int); one && count > 1 && d.chance(35) {
		old["count"] = d.below(1, count-1)
		return object{"op": "resize", "workload": name, "value": old["count"]}
	}
	w := maps.Clone(old)
	if sets, several := w["podSets"].([]object); several {
		var grown []object
		for _, s := range sets {
			s = maps.Clone(s)
			s["count"] = s["count"].(int) + d.below(0, 2)
			grown = append(grown, s)
		}
		w["podSets"] = grown
	} else {
		w["count"] = w["count"].(int) + d.below(1, 3)
	}
	w["name"], w["replaces"] = d.newName(), name
	d.made[w["name"].(string)] = w
	return object{"op": "submit", "workload": w}
}

// newName is that of the next workload.
func (d *drawing) newName() string {
	d.workloads++
	name := fmt.Sprintf("w%d", d.workloads)
	d.submitted = append(d.submitted, name)
	return name
}

func (d *drawing) workload() object {
	name := d.newName()
	w := object{"name": name, "queue": pick(d, d.locals...), "priorityClass": pick(d, "low", "low", "mid", "high")}
	if d.with.boost && d.chance(40) {
		w["boost"] = pick(d, -90, 90, 900)
	}
	switch {
	case d.with.groups && d.chance(60):
		group := fmt.Sprintf("g%d", d.IntN(3))
		leader, workers := d.podSet(), d.podSet()
		leader["name"], workers["name"], leader["count"] = "leader", "workers", 1
		delete(leader, "minCount")
		leader["tolerations"], workers["nodeSelector"] = workers["tolerations"], leader["nodeSelector"]
		request := object{pick(d, "required", "preferred"): pick(d, d.levels...), "podSetGroupName": group}
		leader["topologyRequest"] = request
		own := object{}
		maps.Copy(own, request)
		if d.chance(30) {
			d.slice(workers, own)
		}
		workers["topologyRequest"] = own
		for _, s := range []object{leader, workers} {
			for k, v := range s {
				if v == nil {
					delete(s, k)
				}
			}
		}
		w["podSets"] = []object{leader, workers}
	case d.chance(25):
		one, two := d.podSet(), d.podSet()
		one["name"], two["name"] = "one", "two"
		delete(two, "minCount")
		w["podSets"] = []object{one, two}
	default:
		maps.Copy(w, d.podSet())
	}
	d.made[name] = maps.Clone(w)
	return w
}

func (d *drawing) podSet() object {
	requests := map[string]string{"cpu": pick(d, "1", "1", "2", "500m")}
	if len(d.resources) > 1 && d.chance(60) {
		requests["example.com/gpu"] = strconv.Itoa(d.below(1, 2))
	}
	s := object{"count": d.below(1, 6), "requests": requests}
	if d.with.partial && d.chance(60) {
		s["minCount"] = d.below(1, s["count"].(int))
	}
	if d.with.selectors {
		if d.chance(30) {
			s["nodeSelector"] = map[string]string{"kind": pick(d, "old", "new", "spot")}
		}
		if d.chance(40) {
			s["tolerations"] = []object{{"key": "dedicated", "operator": "Exists"}}
		}
	}
	if d.with.topology && d.chance(85) {
		s["topologyRequest"] = d.topologyRequest(s)
	}
	return s
}

func (d *drawing) topologyRequest(s object) object {
	request := object{}
	switch d.IntN(5) {
	case 0:
		request["unconstrained"] = true
	case 1, 2:
		request["preferred"] = pick(d, d.levels...)
	default:
		request["required"] = pick(d, d.levels...)
	}
	if d.chance(25) || d.with.layers {
		d.slice(s, request)
	}
	return request
}

// slice adds slices to a request; the number of pods becomes one that can be divided.
func (d *drawing) slice(s, request object) {
	at := len(d.levels) - 1
	for _, kind := range []string{"required", "preferred"} {
		for i, l := range d.levels {
			if request[kind] == l {
				at = i
			}
		}
	}
	size := d.below(1, 3)
	level := d.below(at, len(d.levels)-1)
	if d.with.layers && at < len(d.levels)-1 && d.chance(70) {
		level = d.below(at, len(d.levels)-2)
		inner := size
		size *= d.below(1, 3)
		request["podsetSliceRequiredTopologyConstraints"] = []object{
			{"topology": d.levels[level], "size": size}, {"topology": d.levels[d.below(level+1, len(d.levels)-1)], "size": inner},
		}
	} else {
		request["podSetSliceRequiredTopology"], request["podSetSliceSize"] = d.levels[level], size
	}
	s["count"] = size * d.below(1, 3)
	delete(s, "minCount")
}
