package truth

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// nodes of every situation, and how many CPUs each has.
var (
	nodeNames = []string{"cpu-1", "cpu-2", "cpu-3", "cpu-4", "gpu-1", "gpu-2"}
	nodeCPUs  = map[string]int{"cpu-1": 4, "cpu-2": 4, "cpu-3": 4, "cpu-4": 4, "gpu-1": 8, "gpu-2": 8}
)

// residents fills the nodes, in part with pods of their own and in part with those of controllers.
func (d *drawing) residents() {
	fullness := d.IntN(4) // of four: how many nodes have pods
	for _, node := range nodeNames {
		if d.IntN(4) > fullness || d.room == 0 {
			continue
		}
		cpu := one(d, 2, 3, 3)
		if nodeCPUs[node] == 8 {
			cpu = one(d, 5, 6, 7)
		}
		d.first = append(d.first, d.pod(d.name("resident"), fmt.Sprint(cpu), one(d, "low", "low", "low", "mid", "high"),
			fmt.Sprintf("nodeSelector: {kubernetes.io/hostname: %s}", node)))
		d.room--
	}
	for range d.IntN(3) {
		d.first = append(d.first, d.controller(d.name("web"), min(1+d.IntN(4), d.room), one(d, "low", "low", "mid"))...)
	}
	if d.oneIn(4) { // comes later, and perhaps evicts some of those
		d.then = append(d.then, d.controller(d.name("late"), min(1+d.IntN(3), d.room), one(d, "mid", "mid", "high"))...)
	}
}

// controller is something that keeps a number of pods, if there is room for any.
func (d *drawing) controller(name string, pods int, class string) []*unstructured.Unstructured {
	if pods <= 0 {
		return nil
	}
	d.room -= pods
	cpu := one(d, "1", "1", "2", "3")
	switch d.IntN(7) {
	case 6: // one on each node with GPUs
		d.room += pods - 2
		return []*unstructured.Unstructured{d.daemonSet(name, cpu, class)}
	case 0, 1:
		return []*unstructured.Unstructured{d.set("Deployment", name, pods, cpu, class)}
	case 2:
		return []*unstructured.Unstructured{d.set("ReplicaSet", name, pods, cpu, class)}
	case 3:
		return []*unstructured.Unstructured{d.set("StatefulSet", name, pods, cpu, class)}
	default:
		return []*unstructured.Unstructured{d.batchJob(name, pods, cpu, class)}
	}
}

// planned draws the planned job.
func (d *drawing) planned() {
	jobs := 1
	if d.oneIn(3) {
		jobs = 2
	}
	left := maxPlanned
	for range jobs {
		pods := min(one(d, 1, 1, 2, 2, 3, 4), left)
		left -= pods
		name, cpu, class := d.name("job"), one(d, "1", "2", "3", "3", "4"), one(d, "low", "mid", "high", "high", "high", "")
		var object *unstructured.Unstructured
		switch n := d.IntN(12); {
		case pods == 0:
			continue
		case n == 0:
			object = d.pod(name, cpu, class, "")
		case n == 1:
			object = d.set("Deployment", name, pods, cpu, class)
		case n == 2:
			object = d.set(one(d, "StatefulSet", "ReplicaSet"), name, pods, cpu, class)
		case n == 3 && d.oneIn(2):
			object = d.daemonSet(name, cpu, class)
		default:
			object = d.batchJob(name, pods, cpu, class)
		}
		d.job = append(d.job, object)
	}
}

// pod is a pod of its own; more is further fields of its spec, in YAML.
func (d *drawing) pod(name, cpu, class, more string) *unstructured.Unstructured {
	object := objectOf("{apiVersion: v1, kind: Pod, metadata: {name: %s}}", name)
	spec := podOf(cpu, class)
	if more != "" {
		maps.Copy(spec, yamlOf("%s", more).(map[string]any))
	}
	object.Object["spec"] = spec
	return object
}

// podOf is the spec of a pod that lasts until it is stopped, which takes no time.
func podOf(cpu, class string) map[string]any {
	spec := yamlOf(`{terminationGracePeriodSeconds: 2, containers: [{name: main, image: any, command: [sleep, "3600"], resources: {requests: {cpu: %q}}}]}`, cpu).(map[string]any)
	if class != "" {
		spec["priorityClassName"] = class
	}
	return spec
}

// set is a Deployment, ReplicaSet or StatefulSet.
func (d *drawing) set(kind, name string, pods int, cpu, class string) *unstructured.Unstructured {
	object := objectOf("{apiVersion: apps/v1, kind: %[1]s, metadata: {name: %[2]s}, spec: {replicas: %[3]d, selector: {matchLabels: {app: %[2]s}}, template: {metadata: {labels: {app: %[2]s}}}}}", kind, name, pods)
	set(object.Object, podOf(cpu, class), "spec", "template", "spec")
	if kind == "StatefulSet" {
		set(object.Object, name, "spec", "serviceName")
		if d.oneIn(2) {
			set(object.Object, "Parallel", "spec", "podManagementPolicy")
		}
	}
	return object
}

// daemonSet has a pod on each node with GPUs.
func (d *drawing) daemonSet(name, cpu, class string) *unstructured.Unstructured {
	object := objectOf("{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: %[1]s}, spec: {selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}}}}", name)
	spec := podOf(cpu, class)
	spec["nodeSelector"] = yamlOf("{gpu: t4}")
	set(object.Object, spec, "spec", "template", "spec")
	return object
}

func (d *drawing) batchJob(name string, pods int, cpu, class string) *unstructured.Unstructured {
	object := objectOf("{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {parallelism: %d, completions: %d, template: {}}}", name, pods, pods)
	spec := podOf(cpu, class)
	spec["restartPolicy"] = "Never"
	set(object.Object, spec, "spec", "template", "spec")
	switch d.IntN(10) {
	case 4: // an index fails by itself
		set(object.Object, "Indexed", "spec", "completionMode")
		set(object.Object, int64(d.IntN(2)), "spec", "backoffLimitPerIndex")
		if d.oneIn(2) {
			set(object.Object, int64(d.IntN(2)), "spec", "maxFailedIndexes")
		}
	case 5:
		spec["restartPolicy"] = "OnFailure"
	case 0:
		set(object.Object, "Indexed", "spec", "completionMode")
	case 1:
		set(object.Object, int64(0), "spec", "backoffLimit")
	case 2: // a pod that was taken away is made again at once
		set(object.Object, yamlOf("{rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: 'True'}]}]}"), "spec", "podFailurePolicy")
	case 3:
		set(object.Object, int64(pods)+1, "spec", "completions")
		if d.oneIn(2) {
			set(object.Object, "Failed", "spec", "podReplacementPolicy")
		}
	}
	return object
}
