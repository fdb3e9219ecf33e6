package truth

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// queuedFeatures are queues with objects whose controllers are those of other projects. A situation has one of them.
var queuedFeatures = []feature{
	{4, func(d *drawing) { d.queuedObjects((*drawing).jobSet) }},
	{3, func(d *drawing) { d.queuedObjects((*drawing).trainJob) }},
	{2, func(d *drawing) { d.queuedObjects((*drawing).rayCluster) }},
	{2, func(d *drawing) { d.queuedObjects((*drawing).podGroup) }},
	{3, func(d *drawing) { d.queuedObjects((*drawing).anyQueued) }},
}

// A maker makes an object, with what it needs before it, for a queue. Its last object has the pods.
type maker func(d *drawing, name, queue string, pods int, cpu, class string) []*unstructured.Unstructured

// queuedObjects is one queue, or two of a cohort, with objects that hold or wait for quota, and planned ones.
func (d *drawing) queuedObjects(makes maker) {
	names := d.oneOrTwoQueues(3)
	for range d.IntN(4) {
		pods := min(1+d.IntN(3), d.room)
		if pods <= 0 {
			break
		}
		d.room -= pods
		either := one(d, makes, makes, (*drawing).queuedJob)
		d.then = append(d.then, either(d, d.name("held"), one(d, names...), pods, one(d, "1", "2", "3"), one(d, "low", "low", "mid"))...)
	}
	slowOnes := d.oneIn(4)
	if slowOnes {
		slow(d.then...)
	}
	planned := makes(d, d.name("job"), one(d, names...), 1+d.IntN(3), one(d, "1", "2", "3"), one(d, "low", "mid", "high", "high"))
	if slowOnes {
		slow(planned...)
	}
	// What it needs is there already, as in clusters where administrators make runtimes.
	d.first = append(d.first, planned[:len(planned)-1]...)
	d.job = append(d.job, planned[len(planned)-1])
	if planned[len(planned)-1].GetKind() == "Pod" { // all pods of a group are planned
		d.first, d.job = d.first[:len(d.first)-len(planned)+1], planned
	}
}

// slow lets the objects' pods take a second to start.
func slow(objects ...*unstructured.Unstructured) {
	var slowDown func(value any)
	slowDown = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, item := range value {
				slowDown(item)
			}
		case map[string]any:
			if _, ofPod := value["containers"]; ofPod {
				value["initContainers"] = []any{yamlOf(`{name: slow, image: any, command: [sleep, "1"]}`)}
				return
			}
			for _, field := range value {
				slowDown(field)
			}
		}
	}
	for _, object := range objects {
		slowDown(object.Object)
	}
}

// queuedJob is a Job of batch/v1 in a queue.
func (d *drawing) queuedJob(name, queue string, pods int, cpu, class string) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{d.queued(d.batchJob(name, pods, cpu, class), queue)}
}

// jobSet has its pods in one Job, or in several.
func (d *drawing) jobSet(name, queue string, pods int, cpu, class string) []*unstructured.Unstructured {
	replicas, each := 1, pods
	if d.oneIn(2) {
		replicas, each = pods, 1
	}
	jobs := []any{replicatedJob("workers", replicas, each, cpu, class)}
	if d.oneIn(3) {
		jobs = append([]any{replicatedJob("leader", 1, 1, "1", class)}, jobs...)
	}
	object := objectOf("{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: %s, labels: {%s: %s}}}", name, queueLabel, queue)
	set(object.Object, jobs, "spec", "replicatedJobs")
	return []*unstructured.Unstructured{object}
}

func replicatedJob(name string, replicas, each int, cpu, class string) map[string]any {
	job := yamlOf("{name: %s, replicas: %d, template: {spec: {parallelism: %d, completions: %d, backoffLimit: 2, template: {}}}}", name, replicas, each, each).(map[string]any)
	spec := podOf(cpu, class)
	spec["restartPolicy"] = "Never"
	set(job, spec, "template", "spec", "template", "spec")
	return job
}

// trainJob is a TrainJob with a runtime of its own.
func (d *drawing) trainJob(name, queue string, pods int, cpu, class string) []*unstructured.Unstructured {
	runtime := objectOf(`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: %s, labels: {trainer.kubeflow.org/framework: torch}},
 spec: {mlPolicy: {numNodes: %d}, template: {spec: {}}}}`, name+"-runtime", one(d, 1, pods))
	node := replicatedJob("node", 1, 1, cpu, class)
	spec := node["template"].(map[string]any)["spec"].(map[string]any)
	delete(spec, "parallelism")
	delete(spec, "completions")
	set(node, "trainer", "template", "metadata", "labels", "trainer.kubeflow.org/trainjob-ancestor-step")
	pod := spec["template"].(map[string]any)["spec"].(map[string]any)
	pod["containers"].([]any)[0].(map[string]any)["name"] = "node"
	set(runtime.Object, []any{node}, "spec", "template", "spec", "replicatedJobs")
	train := objectOf("{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: %s, labels: {%s: %s}}, spec: {runtimeRef: {kind: TrainingRuntime, name: %s}, trainer: {numNodes: %d}}}",
		name, queueLabel, queue, name+"-runtime", pods)
	return []*unstructured.Unstructured{runtime, train}
}

// rayCluster is a RayCluster whose pods run a command of their own instead of Ray.
func (d *drawing) rayCluster(name, queue string, pods int, cpu, class string) []*unstructured.Unstructured {
	object := objectOf(`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: %s, labels: {%s: %s}, annotations: {ray.io/overwrite-container-cmd: "true"}},
 spec: {headGroupSpec: {rayStartParams: {}, template: {}}, workerGroupSpecs: [{groupName: workers, replicas: %d, minReplicas: %d, maxReplicas: %d, rayStartParams: {}, template: {}}]}}`,
		name, queueLabel, queue, pods, pods, pods)
	set(object.Object, podOf("1", class), "spec", "headGroupSpec", "template", "spec")
	groups, _, _ := unstructured.NestedSlice(object.Object, "spec", "workerGroupSpecs")
	set(groups[0].(map[string]any), podOf(cpu, class), "template", "spec")
	set(object.Object, groups, "spec", "workerGroupSpecs")
	return []*unstructured.Unstructured{object}
}

// podGroup is pods that Kueue admits together.
func (d *drawing) podGroup(name, queue string, pods int, cpu, class string) []*unstructured.Unstructured {
	var group []*unstructured.Unstructured
	for i := range pods {
		pod := d.pod(fmt.Sprintf("%s-%d", name, i), cpu, class, "restartPolicy: Never")
		set(pod.Object, queue, "metadata", "labels", queueLabel)
		if pods > 1 || d.oneIn(2) {
			set(pod.Object, name, "metadata", "labels", "kueue.x-k8s.io/pod-group-name")
			set(pod.Object, fmt.Sprint(pods), "metadata", "annotations", "kueue.x-k8s.io/pod-group-total-count")
		}
		group = append(group, pod)
	}
	return group
}

// anyQueued is any of those, also a Deployment or a StatefulSet.
func (d *drawing) anyQueued(name, queue string, pods int, cpu, class string) []*unstructured.Unstructured {
	switch d.IntN(6) {
	case 0, 1:
		object := d.set(one(d, "Deployment", "StatefulSet"), name, pods, cpu, class)
		set(object.Object, queue, "metadata", "labels", queueLabel)
		return []*unstructured.Unstructured{object}
	case 2:
		return d.trainJob(name, queue, pods, cpu, class)
	case 3:
		return d.rayCluster(name, queue, pods, cpu, class)
	case 4:
		return d.queuedJob(name, queue, pods, cpu, class)
	default:
		return d.jobSet(name, queue, pods, cpu, class)
	}
}
