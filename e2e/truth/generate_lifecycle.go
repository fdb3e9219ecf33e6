package truth

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// lifecycleFeatures are what happens to objects and pods over time: changes, adoption, deadlines, quotas for which planned
// objects compete, and rules that are newer than the pods.
var lifecycleFeatures = []feature{
	{3, (*drawing).change},
	{2, (*drawing).overlap},
	{3, (*drawing).contend},
	{2, (*drawing).adopt},
	{2, (*drawing).deadline},
	{1, (*drawing).suspendedCronJob},
	{2, (*drawing).podLevel},
	{3, (*drawing).newerRule},
	{1, (*drawing).localVolumes},
}

// change plans a resident object once more: as it is, with more or fewer pods, or with another template.
func (d *drawing) change() {
	var candidates []*unstructured.Unstructured
	for _, object := range slices.Concat(d.first, d.then) {
		if slices.Contains([]string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"}, object.GetKind()) {
			candidates = append(candidates, object)
		}
	}
	if len(candidates) == 0 {
		return
	}
	object := one(d, candidates...).DeepCopy()
	pods, scales, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	switch {
	case scales && d.IntN(3) > 0:
		set(object.Object, max(0, pods+int64(one(d, 1, 1, 2, -1))), "spec", "replicas")
	default:
		change := one(d, "priority class", "requests", "nothing")
		if change == "priority class" {
			podSpec(object)["priorityClassName"] = one(d, "mid", "high")
		}
		if change == "requests" {
			set(container(object), one(d, "1", "2", "3"), "resources", "requests", "cpu")
		}
	}
	d.job = []*unstructured.Unstructured{object} // others would exceed the number of pods
}

// overlap protects the pods of a resident by two budgets.
func (d *drawing) overlap() {
	resident := d.anyResident()
	if resident == nil {
		return
	}
	for range 2 {
		name := d.name("overlap")
		label(resident, name, "true")
		d.first = append(d.first, objectOf("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: %s}, spec: {%s, selector: {matchLabels: {%s: 'true'}}}}",
			name, one(d, "minAvailable: 1", "maxUnavailable: 1", "maxUnavailable: 0", "minAvailable: 75%"), name))
	}
}

// contend gives a quota room for some of the planned pods or objects only, and may plan it together with them.
func (d *drawing) contend() {
	if len(withPods(d.job)) == 1 {
		d.job = append(d.job, d.pod(d.name("single"), one(d, "1", "3"), one(d, "low", "high"), ""))
	}
	hard := fmt.Sprintf("pods: %q", fmt.Sprint(maxBefore-d.room+1+d.IntN(3)))
	if d.oneIn(3) {
		hard = fmt.Sprintf("count/jobs.batch: %q", fmt.Sprint(1+d.IntN(3)))
	}
	quota := objectOf("{apiVersion: v1, kind: ResourceQuota, metadata: {name: %s}, spec: {hard: {%s}}}", d.name("few"), hard)
	if d.oneIn(4) {
		d.job = slices.Insert(d.job, 0, quota)
		return
	}
	d.then = append(d.then, quota)
}

// adopt makes a pod without a controller that has the labels of the planned object's pods.
func (d *drawing) adopt() {
	planned := d.anyPlanned()
	labels, found, _ := unstructured.NestedMap(planned.Object, "spec", "selector", "matchLabels")
	if !found || d.room == 0 {
		return
	}
	d.room--
	orphan := d.pod(d.name("orphan"), one(d, "1", "2"), one(d, "low", "mid", "high"), "")
	set(orphan.Object, labels, "metadata", "labels")
	orphan.SetNamespace(planned.GetNamespace())
	d.first = append(d.first, orphan)
}

// deadline ends a planned Job after a time that its victims may outlast, and that the play of a situation does not.
func (d *drawing) deadline() {
	if planned := d.anyPlanned(); planned.GetKind() == "Job" {
		set(planned.Object, int64(one(d, 11, 20, 3600)), "spec", "activeDeadlineSeconds")
	}
}

// suspendedCronJob makes the planned Job the one of a CronJob that is suspended.
func (d *drawing) suspendedCronJob() {
	planned := d.anyPlanned()
	if planned.GetKind() != "Job" {
		return
	}
	cron := objectOf("{apiVersion: batch/v1, kind: CronJob, metadata: {name: %s}, spec: {schedule: 0 0 1 1 *, suspend: true}}", planned.GetName())
	set(cron.Object, planned.Object["spec"], "spec", "jobTemplate", "spec")
	d.job[slices.Index(d.job, planned)] = cron
	if len(withPods(d.job)) == 0 { // other features change some pod of the plan
		d.job = append(d.job, d.pod(d.name("single"), "1", one(d, "low", "high"), ""))
	}
}

// podLevel requests resources for whole pods.
func (d *drawing) podLevel() {
	object := d.anyWithPods()
	set(podSpec(object), one(d, "1", "2", "3"), "resources", "requests", "cpu")
	if d.oneIn(2) {
		delete(container(object), "resources")
	}
}

// newerRule rejects, after the residents, pods like theirs: also those that would take the place of victims.
func (d *drawing) newerRule() {
	if d.oneIn(2) {
		d.then = append(d.then, objectOf("{apiVersion: v1, kind: LimitRange, metadata: {name: %s}, spec: {limits: [{type: Container, %s}]}}",
			d.name("newer"), one(d, `max: {cpu: "2"}`, `min: {cpu: 1500m}`)))
		return
	}
	name, class := d.name("no-class"), one(d, "low", "mid")
	d.then = append(d.then,
		objectOf(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: %s}, spec: {failurePolicy: Fail, matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, validations: [{expression: "!has(object.spec.priorityClassName) || object.spec.priorityClassName != '%s'"}]}}`, name, class),
		objectOf("{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: %[1]s}, spec: {policyName: %[1]s, validationActions: [Deny]}}", name))
}

// localVolumes give each pod of a planned StatefulSet a volume of its own on one node, bound when the pod is scheduled.
func (d *drawing) localVolumes() {
	const class = "local"
	name, pods := d.name("stateful"), 2
	planned := d.set("StatefulSet", name, pods, one(d, "1", "3"), one(d, "mid", "high"))
	set(planned.Object, yamlOf("[{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: %s, resources: {requests: {storage: 1Gi}}}}]", class), "spec", "volumeClaimTemplates")
	container(planned)["volumeMounts"] = yamlOf("[{name: data, mountPath: /data}]")
	d.first = append(d.first, objectOf("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %s}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: WaitForFirstConsumer}", class))
	for _, node := range nodeNames[:2+d.IntN(3)] {
		d.first = append(d.first, objectOf("{apiVersion: v1, kind: PersistentVolume, metadata: {name: %s}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: %s, local: {path: /tmp}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}]}}}}",
			d.name("local"), class, node))
	}
	d.job = []*unstructured.Unstructured{planned}
}
