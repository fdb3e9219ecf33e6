package differential

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"
)

const (
	gpus = corev1.ResourceName("nvidia.com/gpu")
	// gpusPerNode is how many most nodes of a large world have.
	gpusPerNode = 8
)

// LargeWorld makes the world of a seed: nodes with GPUs that are nearly full of pods of several sizes and priorities, as
// clusters for training are.
func LargeWorld(seed uint64, nodes int) *Snapshot {
	g := &generator{rng: newRNG(seed), made: &Snapshot{}}
	g.made.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{
		Name: "default", UID: "default", Labels: map[string]string{corev1.LabelMetadataName: "default"},
	}}}
	never := g.chance(0.05)
	for _, value := range []int32{0, 100, 500, 1000} {
		name, policy := fmt.Sprint("priority-", value), corev1.PreemptLowerPriority
		if never && value == 1000 {
			policy = corev1.PreemptNever
		}
		g.made.Classes = append(g.made.Classes, &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Value: value, PreemptionPolicy: &policy,
		})
	}
	g.recency = time.Duration(pick(g.rng, 30_000, 30_000, 300)) * time.Second
	g.ofGPUs(nodes)
	g.runGPUs(pick(g.rng, 0.8, 0.9, 0.95, 0.95, 1), pick(g.rng, 0, 0, 0.02))
	if g.chance(0.3) {
		g.waitForGPUs()
	}
	if g.chance(0.25) {
		for i, app := range apps {
			name := fmt.Sprint("budget-", i)
			g.made.Budgets = append(g.made.Budgets, &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
				Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &intstr.IntOrString{IntVal: 1}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
				Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(pick(g.rng, 0, 1, 5, 1000))},
			})
		}
	}
	g.planGPUs()
	return g.made
}

func (g *generator) ofGPUs(count int) {
	tainted, unequal := g.chance(0.3), g.chance(0.3)
	for i := range count {
		devices := gpusPerNode
		if unequal {
			devices = pick(g.rng, 4, 8, 8, 16)
		}
		size := corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewQuantity(int64(12*devices), resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("1Ti"),
			corev1.ResourcePods: resource.MustParse("110"), gpus: *resource.NewQuantity(int64(devices), resource.DecimalSI),
		}
		name := fmt.Sprintf("node-%04d", i)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(epoch), Labels: map[string]string{corev1.LabelHostname: name}},
			Status: corev1.NodeStatus{
				Capacity: size, Allocatable: size.DeepCopy(),
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
			},
		}
		if tainted && g.chance(0.1) {
			node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		}
		g.made.Nodes = append(g.made.Nodes, node)
	}
}

// gpuPod is a pod that requests so many GPUs; with none, it requests a CPU.
func (g *generator) gpuPod(name string, devices, class int) *corev1.Pod {
	g.serial++
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID(name), Labels: map[string]string{"app": pick(g.rng, apps...)},
			CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(g.serial) * time.Second)),
		},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: imageNames[0]}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	if devices > 0 {
		requests = corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewQuantity(int64(4*devices), resource.DecimalSI), gpus: *resource.NewQuantity(int64(devices), resource.DecimalSI),
		}
	}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests}
	if devices > 0 {
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpus: requests[gpus]}
	}
	g.prioritize(pod, class)
	defaults.SetObjectDefaults_Pod(pod)
	return pod
}

// runGPUs runs pods until they have so much of the GPUs; some of them are terminating.
func (g *generator) runGPUs(share, terminating float64) {
	var free []int
	left := 0.0
	for _, node := range g.made.Nodes {
		devices := node.Status.Allocatable[gpus]
		free = append(free, int(devices.Value()))
		left += float64(devices.Value()) * share
	}
	single := g.chance(0.2)
	for serial := 0; left > 0; serial++ {
		at, devices := g.IntN(len(free)), 1
		if !single {
			devices = 1 << g.IntN(4)
		}
		for free[at] == 0 {
			at = (at + 1) % len(free)
		}
		devices = min(devices, free[at])
		free[at], left = free[at]-devices, left-float64(devices)
		pod := g.gpuPod(fmt.Sprintf("run-%05d", serial), devices, g.IntN(3))
		start := metav1.NewTime(epoch.Add(time.Duration(g.IntN(int(g.recency/time.Second))) * time.Second))
		pod.Spec.NodeName, pod.Status.Phase, pod.Status.StartTime = g.made.Nodes[at].Name, corev1.PodRunning, &start
		if g.chance(terminating) {
			deleted, grace := metav1.NewTime(epoch.Add(3*time.Hour)), int64(30)
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &deleted, &grace
		}
		g.made.Pods = append(g.made.Pods, pod)
	}
}

// waitForGPUs adds pods that wait and evict nobody: important ones that are too large for all nodes, and unimportant ones.
func (g *generator) waitForGPUs() {
	for i := range g.within(span{1, 3}) {
		pod := g.gpuPod(fmt.Sprint("wait-", i), pick(g.rng, 1, 2, 4), 0)
		if g.chance(0.5) {
			pod = g.gpuPod(fmt.Sprint("wait-", i), 32, 3)
		}
		g.made.Pods = append(g.made.Pods, pod)
	}
}

// planGPUs adds a job: a training job with a small master, or a Job.
func (g *generator) planGPUs() {
	class, count, devices := pick(g.rng, 3, 3, 3, 2), pick(g.rng, 1, 2, 4, 8, 16), pick(g.rng, 1, 2, 4, 4, 8)
	prefix := ofJob
	if g.chance(0.5) {
		prefix = ofJob + "worker-"
		g.made.Pods = append(g.made.Pods, g.gpuPod(ofMaster, 0, class))
	}
	first := g.gpuPod(prefix+"0", devices, class)
	g.made.Pods = append(g.made.Pods, first)
	for i := 1; i < count; i++ {
		next := alike(first, g.gpuPod(prefix+strconv.Itoa(i), devices, class))
		g.made.Pods = append(g.made.Pods, next)
	}
}
