package truth

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// podFeatures are the constraints of pods on their nodes.
var podFeatures = []feature{
	{6, func(d *drawing) { d.spread(d.anyPlanned()) }},
	{6, func(d *drawing) { d.affine(d.anyPlanned()) }},
	{3, func(d *drawing) { d.affine(d.anyWithPods()) }},
	{3, func(d *drawing) { // all of a Job on nodes of their own
		planned := d.anyPlanned()
		if planned.GetKind() == "Job" {
			d.term(planned, "podAntiAffinity", fmt.Sprintf("{matchLabels: {%s: %s}}", one(d, "job-name", "batch.kubernetes.io/job-name"), planned.GetName()))
		}
	}},
	{3, func(d *drawing) { // each port once on a node
		port := yamlOf("[{containerPort: 8080, hostPort: 8080}]")
		container(d.anyPlanned())["ports"] = port
		for range d.IntN(4) {
			container(d.anyWithPods())["ports"] = port
		}
	}},
	{2, func(d *drawing) {
		set(podSpec(d.anyPlanned()), one(d, yamlOf("{gpu: t4}"), yamlOf("{kubernetes.io/hostname: %s}", one(d, nodeNames...)), yamlOf("{disk: none}")), "nodeSelector")
	}},
	{2, func(d *drawing) {
		planned, node := d.anyPlanned(), one(d, nodeNames...)
		if kind := planned.GetKind(); kind == "Pod" || kind == "Job" { // others make rejected pods again without end
			podSpec(planned)["nodeName"] = node
		}
	}},
	{1, func(d *drawing) { podSpec(d.anyPlanned())["schedulingGates"] = yamlOf("[{name: example.com/gate}]") }},
	{3, func(d *drawing) { // the nodes' GPUs
		set(container(d.anyPlanned()), fmt.Sprint(1+d.IntN(3)), "resources", "limits", "nvidia.com/gpu")
		if resident := d.anyResident(); resident != nil && d.oneIn(2) {
			set(container(resident), fmt.Sprint(1+d.IntN(4)), "resources", "limits", "nvidia.com/gpu")
		}
	}},
	{2, func(d *drawing) { podSpec(d.anyPlanned())["affinity"] = d.nodeAffinity() }},
	{2, func(d *drawing) { // more than one container
		spec := podSpec(d.anyPlanned())
		more := yamlOf(`[{name: first, image: any, command: ["true"], resources: {requests: {cpu: %q}}}]`, one(d, "1", "3", "4")).([]any)
		if d.oneIn(2) { // a sidecar
			more = yamlOf(`[{name: side, image: any, restartPolicy: Always, command: [sleep, "3600"], resources: {requests: {cpu: %q}}}]`, one(d, "500m", "1")).([]any)
		}
		spec["initContainers"] = more
	}},
	{1, func(d *drawing) { // a limit is a request too
		container(d.anyPlanned())["resources"] = yamlOf("{limits: {cpu: %q, memory: 64Mi}}", one(d, "1", "2", "3"))
	}},
	{2, func(d *drawing) {
		set(container(d.anyPlanned()), one(d, "4Gi", "10Gi", "20Gi"), "resources", "requests", "memory")
	}},
	{5, (*drawing).crowd},
	{4, func(d *drawing) { // what does not stop at once keeps its place for a while; some ends well
		for range 1 + d.IntN(3) {
			if resident := d.anyResident(); resident != nil {
				container(resident)["command"] = yamlOf(`[sh, -c, "trap '%s' TERM; while true; do sleep 0.1; done"]`, one(d, "", "", "exit 0"))
				podSpec(resident)["terminationGracePeriodSeconds"] = int64(1 + d.IntN(3))
			}
		}
	}},
	{3, (*drawing).tainted},
	{2, func(d *drawing) {
		d.first = append(d.first, nodeWith(one(d, nodeNames...), "spec: {unschedulable: true}"))
	}},
	{2, func(d *drawing) { // a Job as it is written
		planned := d.anyPlanned()
		if planned.GetKind() == "Job" {
			switch d.IntN(4) {
			case 0:
				set(planned.Object, true, "spec", "suspend")
			case 1:
				set(planned.Object, int64(d.IntN(2)), "spec", "parallelism")
			case 2:
				set(planned.Object, int64(1), "spec", "completions")
			case 3:
				set(planned.Object, "Indexed", "spec", "completionMode")
			}
		}
	}},
}

// spread spreads an object's pods over nodes or zones.
func (d *drawing) spread(object *unstructured.Unstructured) {
	value := one(d, "a", "b")
	label(object, "spread", value)
	if resident := d.anyResident(); resident != nil && d.oneIn(2) {
		label(resident, "spread", value)
	}
	key := one(d, "kubernetes.io/hostname", "gpu", "zone", "kubernetes.io/hostname")
	if key == "zone" {
		d.zones()
	}
	constraint := yamlOf("{topologyKey: %s, maxSkew: %d, whenUnsatisfiable: %s, labelSelector: {matchLabels: {spread: %s}}}",
		key, 1+d.IntN(2), one(d, "DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"), value).(map[string]any)
	switch d.IntN(6) {
	case 0:
		constraint["matchLabelKeys"] = yamlOf("[%s]", one(d, "app", "batch.kubernetes.io/controller-uid", "spread2"))
	case 1:
		if constraint["whenUnsatisfiable"] == "DoNotSchedule" {
			constraint["minDomains"] = int64(one(d, 2, 3))
		}
	case 2:
		constraint[one(d, "nodeTaintsPolicy", "nodeAffinityPolicy")] = one(d, "Honor", "Ignore")
	}
	podSpec(object)["topologySpreadConstraints"] = []any{constraint}
}

// zones gives the nodes zones.
func (d *drawing) zones() {
	for i, name := range nodeNames {
		d.first = append(d.first, nodeWith(name, fmt.Sprintf("metadata: {name: %[1]s, labels: {zone: %[2]s, topology.kubernetes.io/zone: %[2]s}}", name, string(rune('a'+i%3)))))
	}
}

// crowd is several pods on one node.
func (d *drawing) crowd() {
	node := one(d, nodeNames...)
	for range 2 + d.IntN(2) {
		if d.room > 0 {
			d.room--
			d.first = append(d.first, d.pod(d.name("crowd"), one(d, "500m", "1", "2"), one(d, "low", "low", "mid", ""),
				fmt.Sprintf("nodeSelector: {kubernetes.io/hostname: %s}", node)))
		}
	}
}

// nodeWith changes an existing node; more is its fields, in YAML.
func nodeWith(name, more string) *unstructured.Unstructured {
	object := objectOf("{apiVersion: v1, kind: Node, metadata: {name: %s}}", name)
	maps.Copy(object.Object, yamlOf("%s", more).(map[string]any))
	return object
}

// affine gives an object's pods affinity or anti-affinity to others.
func (d *drawing) affine(object *unstructured.Unstructured) {
	value := one(d, "left", "right")
	label(d.anyWithPods(), "side", value)
	label(d.anyWithPods(), "side", value)
	d.term(object, one(d, "podAffinity", "podAntiAffinity", "podAntiAffinity"), fmt.Sprintf("{matchLabels: {side: %s}}", value))
}

// term gives an object's pods a term of affinity.
func (d *drawing) term(object *unstructured.Unstructured, kind, selector string) {
	key := one(d, "kubernetes.io/hostname", "kubernetes.io/hostname", "gpu", "kubernetes.io/os")
	more := ""
	switch d.IntN(6) {
	case 0:
		more = ", namespaceSelector: {}"
	case 1:
		more = ", namespaces: [team]"
	case 2:
		more = fmt.Sprintf(", %s: [%s]", one(d, "matchLabelKeys", "mismatchLabelKeys"), one(d, "app", "batch.kubernetes.io/controller-uid"))
	}
	term := fmt.Sprintf("{topologyKey: %s, labelSelector: %s%s}", key, selector, more)
	affinity := fmt.Sprintf("requiredDuringSchedulingIgnoredDuringExecution: [%s]", term)
	if d.oneIn(3) {
		affinity = fmt.Sprintf("preferredDuringSchedulingIgnoredDuringExecution: [{weight: %d, podAffinityTerm: %s}]", 1+d.IntN(100), term)
	}
	set(podSpec(object), yamlOf("{%s}", affinity), "affinity", kind)
}

func (d *drawing) nodeAffinity() any {
	names := append([]string(nil), nodeNames...)
	d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	term := fmt.Sprintf("{matchExpressions: [{key: kubernetes.io/hostname, operator: %s, values: [%s]}]}", one(d, "In", "NotIn"), strings.Join(names[:2+d.IntN(2)], ", "))
	if d.oneIn(2) {
		return yamlOf("{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [%s]}}}", term)
	}
	return yamlOf("{nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: %d, preference: %s}]}}", 1+d.IntN(100), term)
}

// tainted keeps pods from a node or two, unless they tolerate it. Pods that are pinned there exist before.
func (d *drawing) tainted() {
	effect := one(d, "NoSchedule", "NoSchedule", "PreferNoSchedule")
	for range 1 + d.IntN(2) {
		d.then = append(d.then, nodeWith(one(d, nodeNames...), fmt.Sprintf("spec: {taints: [{key: dedicated, value: team, effect: %s}]}", effect)))
	}
	if d.oneIn(2) {
		podSpec(d.anyPlanned())["tolerations"] = yamlOf("[{key: dedicated, operator: %s}]", one(d, "Exists", "Equal, value: team"))
	}
}
