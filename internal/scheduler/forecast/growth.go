package forecast

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// autoscalers are the names of images of programs that add nodes for pending pods.
var autoscalers = []string{"cluster-autoscaler", "karpenter"}

// autoscaler is the autoscaler that runs in the cluster; "" if none is visible.
func (f *forecast) autoscaler() string {
	for _, pod := range f.snapshot.Pods {
		for i := range pod.Spec.Containers {
			image := pod.Spec.Containers[i].Image
			image = image[strings.LastIndex(image, "/")+1:]
			for _, name := range autoscalers {
				if program, _, _ := strings.Cut(image, ":"); pod.Status.Phase == corev1.PodRunning && (program == name || program == "controller" && strings.Contains(pod.Spec.Containers[i].Image, name)) {
					return name
				}
			}
		}
	}
	return ""
}

// groupLabels are labels that name a node's group, which grows and shrinks.
var groupLabels = []string{
	"karpenter.sh/nodepool", "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name",
	"kubernetes.azure.com/agentpool", "agentpool", "kops.k8s.io/instancegroup",
}

// noteGrowth notes that an autoscaler may add nodes for pending pods, and the groups in which they would help.
func (f *forecast) noteGrowth(a Answer) {
	name := ""
	for _, step := range f.steps {
		if step.job != f.number {
			continue
		}
		for _, placed := range step.pods {
			waits := slices.ContainsFunc(a.Pods, func(p PodForecast) bool { return p.Role == f.planned[placed].Role && p.State == Waits })
			if !waits {
				continue
			}
			if name == "" {
				if name = f.autoscaler(); name == "" {
					return
				}
			}
			where := "a group of nodes that is empty now"
			if groups := f.groupsFor(placed); len(groups) > 0 {
				where = join(groups)
			}
			word, _, _ := strings.Cut(strings.TrimPrefix(f.planned[placed].Role, "the "), " ")
			f.notes.add(MayGrow, name, "%s may add a node for what waits (%s), to %s", name, word, where)
		}
	}
}

// groupsFor are the groups of nodes in which a pod would fit on an empty node.
func (f *forecast) groupsFor(pod *placement.Pod) []string {
	var groups []string
	for _, node := range f.snapshot.Nodes {
		for _, label := range groupLabels {
			group := node.Labels[label]
			if group == "" {
				continue
			}
			if _, never := f.cluster.Never(pod, []*corev1.Node{node}); !never && !slices.Contains(groups, group) {
				groups = append(groups, group)
			}
			break
		}
	}
	slices.Sort(groups)
	return groups
}

// Controllers of Kueue's admission checks that decide more than whether a job starts.
const (
	multiKueue          = "kueue.x-k8s.io/multikueue"
	provisioningRequest = "kueue.x-k8s.io/provisioning-request"
)

// noteChecks notes the decisions that Kueue leaves to other controllers after it has reserved quota.
func (f *forecast) noteChecks(a Answer) {
	if f.queues == nil {
		return
	}
	for i := range a.Queues {
		status := &a.Queues[i]
		for _, name := range status.Checks {
			at := slices.IndexFunc(f.queues.objects.AdmissionChecks, func(c *kueue.AdmissionCheck) bool { return c.Name == name })
			if at < 0 {
				continue
			}
			switch f.queues.objects.AdmissionChecks[at].Spec.ControllerName {
			case multiKueue:
				f.notes.add(OtherClusters, "AdmissionCheck "+name, "MultiKueue runs the job on another cluster, which is not read")
			case provisioningRequest:
				f.notes.add(NodesRequested, "AdmissionCheck "+name, "a ProvisioningRequest asks an autoscaler for nodes, on which its pods then start")
			}
		}
		f.noteReadyTimeout(a, status)
	}
}

// noteReadyTimeout notes that Kueue evicts a workload whose pods are not ready in time: a fact where its configuration is
// known, and a reason where only earlier evictions show it.
func (f *forecast) noteReadyTimeout(a Answer, status *QueueStatus) {
	if !status.Admitted {
		return
	}
	late := func(timeout time.Duration) bool {
		return slices.ContainsFunc(a.Pods, func(pod PodForecast) bool {
			return slices.Contains(status.Roles, pod.Role) && (pod.State == Waits || pod.State == Starts && pod.Grace >= timeout)
		})
	}
	switch timeout := f.queues.objects.settings().ReadyTimeout(); {
	case f.queues.objects.known() && timeout > 0 && late(timeout):
		status.ReadyTimeout = timeout
	case !f.queues.objects.known() && f.evictedLate() && a.Outcome != Fits:
		f.notes.add(ReadyTimeout, "ClusterQueue "+status.ClusterQueue, "Kueue waits for pods to be ready here, and evicts a workload whose pods are not in time")
	}
}

// evictedLate reports whether Kueue has evicted workloads because their pods were not ready: it is configured to.
func (f *forecast) evictedLate() bool {
	return slices.ContainsFunc(f.queues.objects.Workloads, func(w *kueue.Workload) bool {
		evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
		return evicted != nil && evicted.Reason == kueue.WorkloadEvictedByPodsReadyTimeout
	})
}
