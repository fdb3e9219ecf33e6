package differential

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// epoch is when the first objects of every snapshot were made.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// The few values that labels take, so that selectors meet them.
var (
	zones = []string{"a", "b", "c"}
	disks = []string{"ssd", "hdd"}
	apps  = []string{"web", "train", "batch"}
	tiers = []string{"front", "back"}
	teams = []string{"red", "blue"}
)

// device is the extended resource of snapshots.
const device corev1.ResourceName = "example.com/gpu"

// A generator makes one snapshot.
type generator struct {
	rng
	shape
	made    *Snapshot
	alike   bool          // nodes and pods are alike
	recency time.Duration // start times are spread over so much
	// typical is the size of a node by which requests are measured.
	typical corev1.ResourceList
	serial  int
}

func newGenerator(d rng, s shape) *generator {
	g := &generator{rng: d, shape: s, made: &Snapshot{}, recency: 10_000 * time.Second}
	if g.alike = g.chance(s.ties); g.alike {
		g.recency = time.Duration(g.within(span{1, 30})) * time.Second
	}
	return g
}

func (g *generator) snapshot() *Snapshot {
	g.namespaces()
	g.classes()
	g.nodes()
	if g.volumes > 0 {
		g.storage()
	}
	if g.claims > 0 {
		g.drivers()
	}
	for _, node := range g.made.Nodes {
		g.fill(node)
	}
	gang := g.gang > 0 && g.chance(g.gang)
	for i := range g.within(g.pending) {
		next := g.waiting()
		if first := g.made.Pods; gang && i > 0 {
			next = alike(first[len(first)-1], next)
		}
		g.made.Pods = append(g.made.Pods, next)
	}
	if g.chance(g.budgets) {
		g.disruptionBudgets()
	}
	if g.chance(g.services) {
		g.workloads()
	}
	if g.chance(g.shape.bystanders) {
		g.bystanders()
	}
	return g.made
}

// alike is a pod with the specification of another.
func alike(first, next *corev1.Pod) *corev1.Pod {
	same := first.DeepCopy()
	same.Name, same.UID, same.CreationTimestamp = next.Name, next.UID, next.CreationTimestamp
	return same
}

func (g *generator) namespaces() {
	for _, name := range []string{"default", "other"} {
		g.made.Namespaces = append(g.made.Namespaces, &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
				corev1.LabelMetadataName: name, "team": pick(g.rng, teams...),
			}},
		})
	}
}

// classes makes the priority classes, the lowest first.
func (g *generator) classes() {
	count := 1
	if g.chance(g.priorities) {
		count = g.within(span{2, 4})
	}
	values := map[int32]bool{}
	for len(values) < count {
		values[pick(g.rng, int32(-100), -10, 0, 1, 10, 100, 1000, 1001, 5000, 1_000_000, 1_000_000_000)] = true
	}
	for value := range values {
		g.made.Classes = append(g.made.Classes, &schedulingv1.PriorityClass{Value: value})
	}
	slices.SortFunc(g.made.Classes, func(a, b *schedulingv1.PriorityClass) int { return int(a.Value) - int(b.Value) })
	for _, class := range g.made.Classes {
		// Classes cannot be changed, so those of all snapshots that are called the same must be the same.
		class.Name = strings.ReplaceAll(fmt.Sprintf("priority-%d", class.Value), "--", "-minus-")
		policy := corev1.PreemptLowerPriority
		if g.chance(g.never) {
			policy = corev1.PreemptNever
			class.Name += "-never"
		}
		class.UID, class.PreemptionPolicy = types.UID(class.Name), &policy
	}
}

func (g *generator) nodes() {
	count := g.within(g.shape.nodes)
	g.typical = g.size()
	withDevices, withImages := g.chance(g.devices), g.chance(g.images)
	same := g.alike || g.chance(0.4)
	for i := range count {
		size := g.typical
		if !same {
			size = g.size()
		}
		size = size.DeepCopy()
		if withDevices && g.chance(0.7) {
			size[device] = *resource.NewQuantity(int64(pick(g.rng, 1, 2, 4, 8)), resource.DecimalSI)
		}
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("node-%02d", i+1), CreationTimestamp: metav1.NewTime(epoch),
				Labels: map[string]string{},
			},
			Status: corev1.NodeStatus{
				Capacity: size, Allocatable: size.DeepCopy(),
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
			},
		}
		node.UID = types.UID(node.Name)
		g.label(node)
		g.taint(node)
		if withImages {
			g.pulled(node)
		}
		g.made.Nodes = append(g.made.Nodes, node)
	}
}

// size is the resources of a node for pods.
func (g *generator) size() corev1.ResourceList {
	pods := int64(110)
	if g.chance(g.fewPods) {
		pods = int64(g.within(span{1, 5}))
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse(pick(g.rng, "1", "2", "3920m", "4", "4", "8", "16")),
		corev1.ResourceMemory:           resource.MustParse(pick(g.rng, "2Gi", "4Gi", "8Gi", "15Gi", "16Gi", "13283196Ki")),
		corev1.ResourceEphemeralStorage: resource.MustParse(pick(g.rng, "20Gi", "100Gi")),
		corev1.ResourcePods:             *resource.NewQuantity(pods, resource.DecimalSI),
	}
}

func (g *generator) label(node *corev1.Node) {
	if g.alike || g.chance(0.95) { // every real node has it
		node.Labels[corev1.LabelHostname] = node.Name
	}
	if g.alike {
		return
	}
	if g.chance(0.9) {
		node.Labels[corev1.LabelTopologyZone] = pick(g.rng, zones...)
	}
	if g.chance(0.6) {
		node.Labels["disk"] = pick(g.rng, disks...)
	}
	if g.chance(0.5) {
		node.Labels["generation"] = pick(g.rng, "1", "2", "3", "7")
	}
}

func (g *generator) taint(node *corev1.Node) {
	for g.chance(g.taints) && len(node.Spec.Taints) < 3 {
		taint := corev1.Taint{
			Key:    pick(g.rng, "dedicated", "spot"),
			Value:  pick(g.rng, "", "yes", "train"),
			Effect: pick(g.rng, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute),
		}
		if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			node.Spec.Taints = append(node.Spec.Taints, taint)
		}
	}
	if g.chance(g.cordons) {
		node.Spec.Unschedulable = true
		if g.chance(0.5) { // kube-controller-manager adds the taint a moment later
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
		}
	}
}

func (g *generator) pulled(node *corev1.Node) {
	for _, name := range imageNames {
		if g.chance(0.5) {
			node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
				Names:     []string{name + "@sha256:0123", name + ":latest"},
				SizeBytes: pick(g.rng, int64(10<<20), 80<<20, 300<<20, 900<<20, 2<<30),
			})
		}
	}
}

func (g *generator) disruptionBudgets() {
	for i := range g.within(span{1, 3}) {
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("budget-%d", i), Namespace: pick(g.rng, "default", "default", "other"),
				UID: types.UID(fmt.Sprintf("budget-%d", i)),
			},
			Spec:   policyv1.PodDisruptionBudgetSpec{MinAvailable: &intstr.IntOrString{IntVal: 1}, Selector: g.podSelector()},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(pick(g.rng, 0, 0, 1, 2))},
		}
		if g.chance(0.1) {
			budget.Spec.Selector = &metav1.LabelSelector{}
		}
		if g.chance(0.2) && len(g.made.Pods) > 0 {
			pod := pick(g.rng, g.made.Pods...)
			budget.Status.DisruptedPods = map[string]metav1.Time{pod.Name: metav1.NewTime(epoch)}
		}
		g.made.Budgets = append(g.made.Budgets, budget)
	}
}

// workloads makes the objects that give pods a default spread: a Service by its selector, and controllers by ownership.
func (g *generator) workloads() {
	if g.chance(0.7) {
		g.made.Services = append(g.made.Services, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "service", Namespace: "default", UID: "service"},
			Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app": pick(g.rng, apps...)},
				Ports:    []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(80)}},
			},
		})
	}
	controller := func(kind string) (metav1.ObjectMeta, *metav1.LabelSelector, corev1.PodTemplateSpec) {
		selector := map[string]string{"app": pick(g.rng, apps...)}
		template := corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: selector},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: imageNames[0]}}},
		}
		meta := metav1.ObjectMeta{Name: "controller", Namespace: "default", UID: types.UID(kind)}
		for _, pod := range g.made.Pods {
			if pod.Namespace == "default" && pod.Labels["app"] == selector["app"] && len(pod.OwnerReferences) == 0 && g.chance(0.8) {
				yes := true
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: meta.Name, UID: meta.UID, Controller: &yes}}
			}
		}
		return meta, &metav1.LabelSelector{MatchLabels: selector}, template
	}
	if g.chance(0.2) {
		g.replicationController()
	}
	if g.chance(0.5) {
		meta, selector, template := controller("ReplicaSet")
		g.made.ReplicaSets = append(g.made.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}})
	}
	if g.chance(0.3) {
		meta, selector, template := controller("StatefulSet")
		g.made.StatefulSets = append(g.made.StatefulSets, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}})
	}
}

// podSelector selects some of the pods by their labels.
func (g *generator) podSelector() *metav1.LabelSelector {
	switch g.IntN(7) {
	case 3:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{pick(g.rng, apps...)},
		}}}
	case 0:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{pick(g.rng, apps...), pick(g.rng, apps...)},
		}}}
	case 1:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}}}
	case 2:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"tier": pick(g.rng, tiers...)}}
	default:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(g.rng, apps...)}}
	}
}
