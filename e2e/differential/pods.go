package differential

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
)

var imageNames = []string{"registry.example.com/train", "registry.example.com/web", "registry.example.com/batch"}

// fill puts running pods on a node until it is as full as it shall be. They need not be where the scheduler would have
// put them: a node's taints, labels and pods change while pods run.
func (g *generator) fill(node *corev1.Node) {
	free := node.Status.Allocatable.DeepCopy()
	for range g.within(g.running) {
		pod := g.pod("run", g.typical, 0.6)
		class := g.IntN(len(g.made.Classes))
		if g.chance(0.5) { // what runs is lower than what waits, mostly
			class = 0
		}
		g.prioritize(pod, class)
		pod.Spec.NodeName = node.Name
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
		if start := metav1.NewTime(epoch.Add(time.Duration(g.IntN(int(g.recency/time.Second))) * time.Second)); !g.chance(g.unstarted) {
			pod.Status.StartTime = &start
		} else {
			pod.Status.Phase = corev1.PodPending
		}
		if g.chance(g.terminating) {
			deleted, grace := metav1.NewTime(epoch.Add(3*time.Hour)), int64(30)
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &deleted, &grace
			if g.chance(0.5) {
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
					Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
				})
			}
		} else if g.chance(g.finished) {
			pod.Status.Phase = pick(g.rng, corev1.PodSucceeded, corev1.PodFailed)
			g.made.Pods = append(g.made.Pods, pod)
			continue
		}
		if !take(free, pod) && !g.chance(g.overfull) {
			continue
		}
		if g.chance(g.resized) {
			g.resize(pod)
		}
		if g.volumes > 0 && g.chance(g.volumes) {
			g.mount(pod, node)
		}
		if g.claims > 0 && g.chance(g.claims) {
			g.hold(pod, node)
		}
		g.made.Pods = append(g.made.Pods, pod)
	}
}

// take takes what the pod requests from what is free, if there is enough.
func take(free corev1.ResourceList, pod *corev1.Pod) bool {
	requests := scheduler.PodRequests(&pod.Spec)
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	requests[corev1.ResourcePods] = resource.MustParse("1")
	for name, requested := range requests {
		if has := free[name]; requested.Cmp(has) > 0 {
			return false
		}
	}
	for name, requested := range requests {
		left := free[name]
		left.Sub(requested)
		free[name] = left
	}
	return true
}

// waiting is a pod that waits for a node.
func (g *generator) waiting() *corev1.Pod {
	pod := g.pod("wait", g.typical, 1.05)
	if g.large > 0 && g.chance(g.large) {
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: portion(g.typical, 0.8+0.2*g.Float64(), 0.8)}
	}
	class := g.IntN(len(g.made.Classes))
	if g.chance(g.reach) {
		class = len(g.made.Classes) - 1
	}
	g.prioritize(pod, class)
	pod.Status.Phase = corev1.PodPending
	if g.chance(g.nominated) {
		pod.Status.NominatedNodeName = pick(g.rng, g.made.Nodes...).Name
	}
	if g.volumes > 0 && g.chance(g.volumes) {
		g.mount(pod, nil)
	}
	if g.claims > 0 && g.chance(g.claims) {
		g.claim(pod)
	}
	return pod
}

func (g *generator) prioritize(pod *corev1.Pod, class int) {
	of := g.made.Classes[class]
	value, policy := of.Value, *of.PreemptionPolicy
	pod.Spec.PriorityClassName, pod.Spec.Priority, pod.Spec.PreemptionPolicy = of.Name, &value, &policy
}

// pod is a pod that requests at most so much of the size of a node.
func (g *generator) pod(name string, of corev1.ResourceList, most float64) *corev1.Pod {
	g.serial++
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%03d", name, g.serial), Namespace: "default",
			CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(g.serial) * time.Second)),
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: imageNames[0], Resources: g.requests(of, most)}}},
	}
	if g.images > 0 {
		pod.Spec.Containers[0].Image = pick(g.rng, imageNames...) + pick(g.rng, "", "", ":latest", ":v1", "@sha256:0123")
	}
	pod.UID = types.UID(pod.Name)
	if g.alike {
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: portion(of, pick(g.rng, 0.25, 0.5), 0.25)}
	}
	if g.chance(0.15) {
		pod.Namespace = "other"
	}
	if g.chance(0.85) {
		pod.Labels = map[string]string{"app": pick(g.rng, apps...)}
		if g.chance(0.5) {
			pod.Labels["tier"] = pick(g.rng, tiers...)
		}
	}
	if g.chance(g.bare) {
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	}
	if g.chance(g.containers) {
		g.furtherContainers(pod)
	}
	g.constrain(pod)
	defaults.SetObjectDefaults_Pod(pod)
	return pod
}

// requests are the requests of a container: part of a node's size.
func (g *generator) requests(of corev1.ResourceList, most float64) corev1.ResourceRequirements {
	requests := portion(of, g.Float64()*most, g.Float64()*most)
	if g.chance(0.1) { // to the byte
		memory := requests[corev1.ResourceMemory]
		requests[corev1.ResourceMemory] = *resource.NewQuantity(memory.Value()+g.Int64N(1000)+1, resource.BinarySI)
	}
	if g.chance(0.05) {
		delete(requests, pick(g.rng, corev1.ResourceCPU, corev1.ResourceMemory))
	}
	if g.chance(g.shape.odd) {
		g.odd(requests)
	}
	result := corev1.ResourceRequirements{Requests: requests}
	if g.chance(0.1) {
		result = corev1.ResourceRequirements{Limits: requests} // which defaults make requests
	}
	if g.chance(g.devices) {
		switch g.IntN(3) {
		case 0:
			requests[corev1.ResourceEphemeralStorage] = resource.MustParse(pick(g.rng, "1Gi", "15Gi", "40Gi"))
		default:
			requests[device] = *resource.NewQuantity(int64(pick(g.rng, 1, 1, 2, 4)), resource.DecimalSI)
			result = corev1.ResourceRequirements{Requests: requests, Limits: corev1.ResourceList{device: requests[device]}}
		}
	}
	return result
}

// portion is a share of a node's CPU and memory, in round numbers and never nothing.
func portion(of corev1.ResourceList, cpu, memory float64) corev1.ResourceList {
	hundredths, mebibytes := int64(cpu*float64(of.Cpu().MilliValue())/10), int64(memory*float64(of.Memory().Value())/(1<<20))
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(max(1, hundredths)*10, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(max(1, mebibytes)<<20, resource.BinarySI),
	}
}

// furtherContainers gives a pod init containers, sidecars, overhead or requests of its own.
func (g *generator) furtherContainers(pod *corev1.Pod) {
	always := corev1.ContainerRestartPolicyAlways
	for i := range g.within(span{1, 3}) {
		container := corev1.Container{Name: fmt.Sprintf("more-%d", i), Image: imageNames[1], Resources: g.requests(g.typical, 0.4)}
		if g.chance(g.ports) {
			container.Ports = []corev1.ContainerPort{{ContainerPort: 9000 + int32(i), HostPort: 9000 + int32(i), Protocol: corev1.ProtocolTCP}}
		}
		switch g.IntN(3) {
		case 0:
			container.RestartPolicy = &always
			fallthrough
		case 1:
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
		default:
			pod.Spec.Containers = append(pod.Spec.Containers, container)
		}
	}
	if g.chance(0.25) {
		g.runtimeClass(pod)
	}
	if g.chance(0.2) {
		// A pod's own requests must cover its containers'.
		whole := scheduler.PodRequests(&pod.Spec)
		cpu, memory := whole[corev1.ResourceCPU], whole[corev1.ResourceMemory]
		cpu.Add(*resource.NewMilliQuantity(g.Int64N(500), resource.DecimalSI))
		pod.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}}
		if g.chance(0.3) {
			delete(pod.Spec.Resources.Requests, pick(g.rng, corev1.ResourceCPU, corev1.ResourceMemory))
		}
	}
}

// runtimeClass gives a pod overhead, which only a RuntimeClass can.
func (g *generator) runtimeClass(pod *corev1.Pod) {
	const name = "sandboxed"
	if len(g.made.Runtimes) == 0 {
		g.made.Runtimes = append(g.made.Runtimes, &nodev1.RuntimeClass{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: name}, Handler: name,
			Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("120Mi"),
			}},
		})
	}
	runtime := name
	pod.Spec.RuntimeClassName, pod.Spec.Overhead = &runtime, g.made.Runtimes[0].Overhead.PodFixed.DeepCopy()
}
