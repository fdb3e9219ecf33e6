package truth

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// queueFeatures are Kueue's queues, with one Job or more in them.
var queueFeatures = []feature{
	{14, (*drawing).queues},
	{6, (*drawing).topology},
	{2, func(d *drawing) { // for those that name none
		if !slices.ContainsFunc(d.job, func(object *unstructured.Unstructured) bool { return object.GetKind() != "Job" }) {
			d.queue("default", "", 2+d.IntN(10))
		}
	}},
}

const queueLabel = "kueue.x-k8s.io/queue-name"

// oneOrTwoQueues makes a queue, or, once in n times, two of a cohort. It returns their names.
func (d *drawing) oneOrTwoQueues(n int) []string {
	cohort, names := "", []string{d.name("queue")}
	if d.oneIn(n) {
		cohort = "cohort"
		names = append(names, d.name("queue"))
	}
	for _, name := range names {
		d.queue(name, cohort, one(d, 3, 6, 9, 12))
	}
	return names
}

// queues puts planned Jobs, and perhaps others, into queues.
func (d *drawing) queues() {
	names := d.oneOrTwoQueues(2)
	var made []*unstructured.Unstructured
	for range d.IntN(4) {
		pods := min(1+d.IntN(3), d.room)
		if pods <= 0 {
			break
		}
		d.room -= pods
		made = append(made, d.queued(d.batchJob(d.name("held"), pods, one(d, "1", "2", "3"), one(d, "low", "low", "mid")), one(d, names...)))
	}
	if d.oneIn(2) {
		d.first = append(d.first, made...)
	} else {
		d.then = append(d.then, made...)
	}
	for _, planned := range d.job {
		if planned.GetKind() == "Job" || planned.GetKind() == "Pod" {
			d.queued(planned, one(d, names...))
		}
	}
}

// topology is a queue whose flavor has a topology, with Jobs that request places in it.
func (d *drawing) topology() {
	d.zones()
	name := d.name("queue")
	d.queue(name, "", one(d, 6, 12, 40))
	levels := one(d, "[{nodeLabel: zone}, {nodeLabel: kubernetes.io/hostname}]", "[{nodeLabel: zone}]", "[{nodeLabel: kubernetes.io/hostname}]")
	d.first = append(d.first,
		objectOf("{apiVersion: kueue.x-k8s.io/v1beta2, kind: Topology, metadata: {name: %s}, spec: {levels: %s}}", name, levels),
		// It takes the place of the flavor that the queue came with.
		objectOf("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: %[1]s}, spec: {topologyName: %[1]s, nodeLabels: {%[2]s}}}",
			name, one(d, "kubernetes.io/os: linux", "kubernetes.io/os: linux", "gpu: t4")))
	lowest := one(d, "zone", "kubernetes.io/hostname")
	ask := func(object *unstructured.Unstructured) {
		// A webhook of Kueue's rejects slices that are larger than the set.
		pods, _, _ := unstructured.NestedInt64(object.Object, "spec", "parallelism")
		slice := fmt.Sprint(min(2, max(1, pods)))
		for key, value := range one(d,
			map[string]string{"kueue.x-k8s.io/podset-required-topology": lowest},
			map[string]string{"kueue.x-k8s.io/podset-preferred-topology": lowest},
			map[string]string{"kueue.x-k8s.io/podset-unconstrained-topology": "true"},
			map[string]string{"kueue.x-k8s.io/podset-preferred-topology": "zone", "kueue.x-k8s.io/podset-slice-required-topology": lowest, "kueue.x-k8s.io/podset-slice-size": slice},
			map[string]string{},
		) {
			set(template(object), value, "metadata", "annotations", key)
		}
	}
	for range d.IntN(4) {
		pods := min(1+d.IntN(3), d.room)
		if pods <= 0 {
			break
		}
		d.room -= pods
		held := d.queued(d.batchJob(d.name("placed"), pods, one(d, "1", "2", "3"), one(d, "low", "low", "mid")), name)
		ask(held)
		d.first = append(d.first, held)
	}
	for _, planned := range d.job {
		if planned.GetKind() == "Job" {
			ask(d.queued(planned, name))
		}
	}
}

// queued puts an object into a LocalQueue.
func (d *drawing) queued(object *unstructured.Unstructured, queue string) *unstructured.Unstructured {
	set(object.Object, queue, "metadata", "labels", queueLabel)
	if object.GetKind() != "Job" {
		return object
	}
	if d.oneIn(2) {
		set(object.Object, true, "spec", "suspend")
	}
	if pods, _, _ := unstructured.NestedInt64(object.Object, "spec", "parallelism"); pods > 1 && d.oneIn(3) {
		set(object.Object, "1", "metadata", "annotations", "kueue.x-k8s.io/job-min-parallelism")
	}
	return object
}

// queue is a LocalQueue with a ClusterQueue and a flavor of its own.
func (d *drawing) queue(name, cohort string, quota int) {
	flavor := one(d, "", "", "spec: {nodeLabels: {gpu: t4}}", "spec: {nodeTaints: [{key: dedicated, value: team, effect: NoSchedule}]}")
	object := objectOf("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: %s}}", name)
	if flavor != "" {
		object.Object["spec"] = yamlOf("%s", flavor).(map[string]any)["spec"]
	}
	preemption := fmt.Sprintf("{withinClusterQueue: %s, reclaimWithinCohort: %s}", one(d, "LowerPriority", "LowerPriority", "Never", "LowerOrNewerEqualPriority"),
		one(d, "Any", "LowerPriority", "Never"))
	if cohort == "" {
		preemption = fmt.Sprintf("{withinClusterQueue: %s}", one(d, "LowerPriority", "LowerPriority", "Never", "LowerOrNewerEqualPriority"))
	}
	limit := ""
	if cohort != "" && d.oneIn(3) {
		limit = fmt.Sprintf(", %s: %q", one(d, "borrowingLimit", "lendingLimit"), fmt.Sprint(d.IntN(4)))
	}
	queue := objectOf("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: %[1]s}, spec: {namespaceSelector: {}, preemption: %[2]s, resourceGroups: [{coveredResources: [cpu], flavors: [{name: %[1]s, resources: [{name: cpu, nominalQuota: %[3]q%[4]s}]}]}]}}",
		name, preemption, fmt.Sprint(quota), limit)
	if cohort != "" {
		set(queue.Object, cohort, "spec", "cohortName")
	}
	switch d.IntN(12) {
	case 0:
		set(queue.Object, one(d, "Hold", "HoldAndDrain"), "spec", "stopPolicy")
	case 1, 2:
		set(queue.Object, "StrictFIFO", "spec", "queueingStrategy")
	}
	d.first = append(d.first, object, queue, objectOf("{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: %[1]s}, spec: {clusterQueue: %[1]s}}", name))
}
