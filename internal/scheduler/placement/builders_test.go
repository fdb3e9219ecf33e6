package placement

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// builder makes a cluster of nodes with 4 CPUs and 16Gi each, and what runs there.
type builder struct {
	Snapshot
	on string // the node that pods are put on
}

func nodes(names ...string) *builder {
	b := &builder{}
	for _, name := range names {
		b.Nodes = append(b.Nodes, machine(name, amounts("cpu", "4", "memory", "16Gi")))
	}
	return b
}

func (b *builder) at(name string) *builder {
	b.on = name
	return b
}

// with changes the node that was named last.
func (b *builder) with(change func(*corev1.Node)) *builder {
	change(b.Nodes[slices.IndexFunc(b.Nodes, func(n *corev1.Node) bool { return n.Name == b.on })])
	return b
}

// runs puts a pod on the node that was named last, in the order of their starts unless a change says otherwise.
func (b *builder) runs(name string, priority int32, cpu string, changes ...func(*corev1.Pod)) *builder {
	p := prioritised(name, priority, amounts("cpu", cpu, "memory", "1Gi"))
	p.Spec.NodeName = b.on
	p.Status.Phase = corev1.PodRunning
	started(len(b.Pods))(p)
	for _, change := range changes {
		change(p)
	}
	b.Pods = append(b.Pods, p)
	return b
}

func (b *builder) budget(allowed int32, matching map[string]string) *builder {
	b.PDBs = append(b.PDBs, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("budget-", len(b.PDBs))},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: matching}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	})
	return b
}

func started(second int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.StartTime = &metav1.Time{Time: began.Add(time.Duration(second) * time.Second)}
	}
}

func labelledAs(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} }
}

func going(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: began} }

func withPort(port int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: port}} }
}

func never(p *corev1.Pod) {
	policy := corev1.PreemptNever
	p.Spec.PreemptionPolicy = &policy
}

func repelledBy(app, key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{about(app, key)}}}
	}
}

func drawnTo(app, key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{about(app, key)}}}
	}
}

func about(app, key string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
}

func spreadOver(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "spread"}
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
		}}
	}
}

// anyPod draws a pod.
func anyPod(t *rapid.T, name string) *corev1.Pod {
	p := prioritised(name, rapid.SampledFrom([]int32{-5, 0, 10, 10, 1000}).Draw(t, "priority"), corev1.ResourceList{
		"cpu":    *resource.NewMilliQuantity(int64(rapid.IntRange(0, 30).Draw(t, "cpu"))*100, resource.DecimalSI),
		"memory": *resource.NewQuantity(int64(rapid.IntRange(0, 8).Draw(t, "memory"))<<30, resource.BinarySI),
	})
	labelledAs(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app"))(p)
	started(rapid.IntRange(0, 3).Draw(t, "started"))(p)
	switch rapid.IntRange(0, 9).Draw(t, "also") {
	case 0:
		withPort(rapid.SampledFrom([]int32{80, 443}).Draw(t, "port"))(p)
	case 1:
		repelledBy(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "to"), rapid.SampledFrom([]string{corev1.LabelHostname, "zone"}).Draw(t, "key"))(p)
	case 2:
		drawnTo(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "to"), rapid.SampledFrom([]string{corev1.LabelHostname, "zone"}).Draw(t, "key"))(p)
	case 3:
		spreadOver("zone")(p)
	}
	return p
}

// anySnapshot draws a cluster of up to five nodes that are not over-committed.
func anySnapshot(t *rapid.T) Snapshot {
	b := &builder{}
	for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
		n := machine(fmt.Sprint("node-", i), corev1.ResourceList{
			"cpu": *resource.NewQuantity(int64(rapid.IntRange(1, 6).Draw(t, "cpu")), resource.DecimalSI), "memory": resource.MustParse("16Gi"),
		})
		n.Labels["zone"] = fmt.Sprint("zone-", i%2)
		n.Status.Allocatable[corev1.ResourcePods] = *resource.NewQuantity(int64(rapid.IntRange(1, 6).Draw(t, "pods")), resource.DecimalSI)
		b.Nodes = append(b.Nodes, n)
	}
	if rapid.Bool().Draw(t, "budget") {
		b.budget(int32(rapid.IntRange(0, 2).Draw(t, "allowed")), map[string]string{"app": "a"})
	}
	c := New(b.Snapshot)
	for i := range rapid.IntRange(0, 20).Draw(t, "pods") {
		p := anyPod(t, fmt.Sprint("pod-", i))
		if d := c.Schedule(c.Pod(p)); d.Kind == Bound {
			c.AddPod(c.Pod(p), d.Node)
			p.Spec.NodeName = d.Node
			b.Pods = append(b.Pods, p)
		}
	}
	return b.Snapshot
}
