package truth

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// policyFeatures are other objects that affect pods: budgets, limits, quotas, classes, Services.
var policyFeatures = []feature{
	{8, (*drawing).budget},
	{4, (*drawing).limits},
	{5, (*drawing).quota},
	{3, (*drawing).podSecurity},
	{3, (*drawing).runtimeClass},
	{5, (*drawing).service},
	{3, (*drawing).class},
	{5, (*drawing).sameFile},
}

// budget protects some of the pods that are there.
func (d *drawing) budget() {
	name := d.name("budget")
	for range 1 + d.IntN(4) {
		if resident := d.anyResident(); resident != nil {
			label(resident, "guard", name)
		}
	}
	d.first = append(d.first, objectOf("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: %s}, spec: {%s, selector: {matchLabels: {guard: %s}}}}",
		name, one(d, "minAvailable: 1", "minAvailable: 2", "minAvailable: 3", "maxUnavailable: 0", "maxUnavailable: 1", "minAvailable: 50%", "maxUnavailable: 50%"), name))
}

// limits gives containers defaults, or refuses them.
func (d *drawing) limits() {
	limit := one(d,
		`defaultRequest: {cpu: "2"}`, `defaultRequest: {cpu: "1"}, default: {cpu: "3"}`, `default: {cpu: "2"}`, `max: {cpu: "2"}`,
		`min: {cpu: 1500m}`, `defaultRequest: {memory: 10Gi}`, `maxLimitRequestRatio: {cpu: "2"}`)
	d.first = append(d.first, objectOf("{apiVersion: v1, kind: LimitRange, metadata: {name: %s}, spec: {limits: [{type: Container, %s}]}}", d.name("limits"), limit))
	if d.IntN(3) > 0 {
		delete(container(d.anyPlanned()), "resources")
	}
}

// quota bounds a namespace, before or after some of its objects exist.
func (d *drawing) quota() {
	hard := one(d,
		fmt.Sprintf("requests.cpu: %q", fmt.Sprint(4+d.IntN(24))), fmt.Sprintf("cpu: %q", fmt.Sprint(10+d.IntN(20))), fmt.Sprintf("pods: %q", fmt.Sprint(2+d.IntN(12))),
		fmt.Sprintf("count/jobs.batch: %q", fmt.Sprint(d.IntN(3))), `requests.nvidia.com/gpu: "2"`, `limits.cpu: "4"`, "requests.memory: 16Gi")
	scope := one(d, "", "", "",
		", scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}",
		", scopes: [BestEffort]", ", scopes: [NotBestEffort]", ", scopes: [NotTerminating]")
	if scope == ", scopes: [BestEffort]" {
		hard = `pods: "1"`
	}
	object := objectOf("{apiVersion: v1, kind: ResourceQuota, metadata: {name: %s}, spec: {hard: {%s}%s}}", d.name("quota"), hard, scope)
	d.then = append(d.then, object) // so that it does not refuse existing objects
	if d.oneIn(3) {
		d.move(d.anyPlanned(), secondNamespace)
		object.SetNamespace(secondNamespace)
	}
}

// move puts an object into another namespace.
func (d *drawing) move(object *unstructured.Unstructured, namespace string) {
	object.SetNamespace(namespace)
}

// podSecurity holds a namespace to a standard.
func (d *drawing) podSecurity() {
	d.then = append(d.then, objectOf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {pod-security.kubernetes.io/%s: %s}}}", secondNamespace, one(d, "enforce", "enforce", "warn"), one(d, "restricted", "baseline")))
	planned := d.anyPlanned()
	d.move(planned, secondNamespace)
	switch d.IntN(3) {
	case 0:
		set(podSpec(planned), true, "hostNetwork")
	case 1:
		podSpec(planned)["securityContext"] = yamlOf("{runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}")
		container(planned)["securityContext"] = yamlOf("{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}")
	}
}

// runtimeClass adds an overhead, or a node selector.
func (d *drawing) runtimeClass() {
	name := d.name("runtime")
	d.first = append(d.first, objectOf("{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: %s}, handler: any, %s}", name,
		one(d, `overhead: {podFixed: {cpu: "1"}}`, "overhead: {podFixed: {cpu: 500m, memory: 1Gi}}", "scheduling: {nodeSelector: {gpu: t4}}",
			"scheduling: {tolerations: [{key: dedicated, operator: Exists}]}")))
	podSpec(d.anyPlanned())["runtimeClassName"] = name
	if d.oneIn(3) {
		d.tainted()
	}
}

// service selects pods, which spreads them.
func (d *drawing) service() {
	name := d.name("service")
	for range 1 + d.IntN(2) {
		label(d.anyWithPods(), "service", name)
	}
	label(d.anyPlanned(), "service", name)
	d.first = append(d.first, objectOf("{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {clusterIP: None, selector: {service: %s}, ports: [{port: 80}]}}", name, name))
}

// sameFile puts what decides about pods into the job's own file, before it.
func (d *drawing) sameFile() {
	one(d, (*drawing).service, (*drawing).class, (*drawing).limits, (*drawing).runtimeClass, (*drawing).budget)(d)
	var stay []*unstructured.Unstructured
	for _, object := range d.first {
		used := object.GetKind() == "PriorityClass" && slices.ContainsFunc(withPods(slices.Concat(d.first, d.then)), func(resident *unstructured.Unstructured) bool {
			return podSpec(resident)["priorityClassName"] == object.GetName()
		})
		switch kind := object.GetKind(); {
		case !used && slices.Contains([]string{"Service", "PriorityClass", "LimitRange", "RuntimeClass", "PodDisruptionBudget"}, kind):
			d.job = slices.Insert(d.job, 0, object)
		default:
			stay = append(stay, object)
		}
	}
	d.first = stay
}

// class is a PriorityClass of its own.
func (d *drawing) class() {
	name := d.name("class")
	if d.oneIn(2) {
		d.first = slices.Insert(d.first, 0, objectOf("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: %d, globalDefault: true%s}", name, one(d, 500, 2000, 20_000), one(d, "", ", preemptionPolicy: Never")))
		delete(podSpec(d.anyPlanned()), "priorityClassName")
		if resident := d.anyResident(); resident != nil {
			delete(podSpec(resident), "priorityClassName")
		}
		return
	}
	d.first = slices.Insert(d.first, 0, objectOf("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: %d%s}", name, one(d, -10, 3000, 30_000, 2_000_000), one(d, "", ", preemptionPolicy: Never")))
	podSpec(d.anyPlanned())["priorityClassName"] = name
}
