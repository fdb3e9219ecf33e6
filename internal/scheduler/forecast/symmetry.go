package forecast

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// symmetry finds equivalent nodes: nodes that differ only in their names, whose pods are equivalent, and that no pod
// names. What may happen on one of them may happen in the same way on any other. The forecast therefore follows only
// one of them, and extends the result to all.
type symmetry struct {
	nodes  map[string]*corev1.Node
	pods   func(node string) []*placement.Pod
	extras func(node string) string
	named  map[string]bool // nodes that some pod names in its selectors
	looks  map[string]int  // of each node for which it was computed: equal numbers are equal looks
	known  map[string]int  // numbers of looks
	orbits map[int][]string
	ofPods map[*placement.Pod]string // looks of the pods for which they were computed
}

// maxAlike bounds the size of clusters in which equivalent nodes are searched: to describe a node takes some
// microseconds.
const maxAlike = 1000

// newSymmetry collects the nodes that pods name: pods that are planned, pending, or may be created again.
func newSymmetry(s *Snapshot, cluster *placement.Cluster, planned []Job) *symmetry {
	y := &symmetry{
		nodes: map[string]*corev1.Node{}, pods: cluster.Clone().PodsOn, extras: cluster.Extras, named: map[string]bool{}, looks: map[string]int{}, known: map[string]int{}, ofPods: map[*placement.Pod]string{},
	}
	hosts := map[string]string{}
	for _, node := range s.Nodes {
		y.nodes[node.Name] = node
		hosts[node.Name], hosts[node.Labels[corev1.LabelHostname]] = node.Name, node.Name
	}
	name := func(pod *corev1.Pod) {
		for _, value := range namesNodes(&pod.Spec) {
			if node, known := hosts[value]; known {
				y.named[node] = true
			}
		}
		y.named[pod.Status.NominatedNodeName] = true
	}
	for _, value := range volumeHosts(s.Storage.Volumes) {
		if node, known := hosts[value]; known {
			y.named[node] = true
		}
	}
	for _, pod := range s.Pods {
		if pod.Spec.NodeName == "" || ownerOf(pod).replaces(pod) {
			name(pod)
		}
	}
	for _, node := range s.Nodes {
		if s.Queues.placesOn(node) {
			y.named[node.Name] = true
		}
	}
	for _, job := range planned {
		for _, stage := range job.Stages {
			for _, part := range stage {
				for _, pod := range part.Pods {
					name(pod.Pod)
					y.named[pod.Spec.NodeName] = true
				}
			}
		}
	}
	return y
}

// namesNodes are the values that a pod selects nodes by, which may include names of nodes.
func namesNodes(spec *corev1.PodSpec) []string {
	values := slices.Collect(maps.Values(spec.NodeSelector))
	terms := func(selectors ...corev1.NodeSelectorTerm) {
		for _, term := range selectors {
			for _, e := range slices.Concat(term.MatchExpressions, term.MatchFields) {
				values = append(values, e.Values...)
			}
		}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return values
	}
	if required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		terms(required.NodeSelectorTerms...)
	}
	for _, preferred := range spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		terms(preferred.Preference)
	}
	return values
}

// look is a number for all relevant properties of a node but its name; two nodes of one look are equivalent.
func (y *symmetry) look(name string) int {
	if look, seen := y.looks[name]; seen {
		return look
	}
	look := y.describe(name)
	number, known := y.known[look]
	if !known {
		number = len(y.known)
		y.known[look] = number
	}
	y.looks[name] = number
	return number
}

func (y *symmetry) describe(name string) string {
	look := "node " + name
	if node := y.nodes[name]; node != nil && !y.named[name] && len(y.nodes) <= maxAlike {
		labels := maps.Clone(node.Labels)
		delete(labels, corev1.LabelHostname)
		var pods []string
		for _, pod := range y.pods(name) {
			pods = append(pods, y.podLook(pod))
		}
		slices.Sort(pods)
		text, err := json.Marshal([]any{labels, node.Spec.Taints, node.Spec.Unschedulable, node.Status.Allocatable, node.Status.Images, pods, y.extras(name)})
		if err == nil {
			look = string(text)
		}
	}
	return look
}

// podLook is describePod, cached.
func (y *symmetry) podLook(pod *placement.Pod) string {
	if look, known := y.ofPods[pod]; known {
		return look
	}
	look := describePod(pod)
	y.ofPods[pod] = look
	return look
}

// describePod describes a pod on a node by all that affects scheduling, but not by its name.
func describePod(pod *placement.Pod) string {
	o := pod.Object()
	var text strings.Builder
	fmt.Fprintf(&text, "%s %d %d %t %v %v", pod.Namespace(), pod.Priority, pod.Started.Unix(), o.DeletionTimestamp != nil, o.OwnerReferences, o.Labels)
	requests := scheduler.PodRequests(&o.Spec)
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		quantity := requests[name]
		fmt.Fprintf(&text, " %s=%s", name, quantity.String())
	}
	ports := slices.ContainsFunc(o.Spec.Containers, func(c corev1.Container) bool { return len(c.Ports) > 0 })
	if o.Spec.Affinity != nil || ports || len(o.Spec.ResourceClaims) > 0 || len(o.Spec.InitContainers) > 0 || hasClaims(o) {
		spec := deciding(&o.Spec)
		rest, err := json.Marshal([]any{spec.Affinity, spec.Containers, spec.InitContainers, spec.ResourceClaims, spec.Volumes})
		if err != nil {
			return pod.String()
		}
		text.Write(rest)
	}
	return text.String()
}

// alikes are all nodes that are equivalent to one, itself included, in order.
func (y *symmetry) alikes(name string) []string {
	if y.orbits == nil {
		y.orbits = map[int][]string{}
		for node := range y.nodes {
			look := y.look(node)
			y.orbits[look] = append(y.orbits[look], node)
		}
		for _, nodes := range y.orbits {
			slices.Sort(nodes)
		}
	}
	if nodes := y.orbits[y.look(name)]; len(nodes) > 0 {
		return nodes
	}
	return []string{name}
}

// images are the pods that a victim represents: those of its look on its node, and on equivalent nodes.
func (y *symmetry) images(v victim) []victim {
	var found []victim
	look := y.podLook(v.pod)
	for _, node := range y.alikes(v.node) {
		for _, pod := range y.pods(node) {
			if pod == v.pod || y.podLook(pod) == look {
				other := v
				other.pod, other.node = pod, node
				found = append(found, other)
			}
		}
	}
	return found
}

// kinds returns a function that is equal for pods of one namespace, labels, priority and specification, such as those
// of one controller.
func kinds() func(*placement.Pod) string {
	known := map[*placement.Pod]string{}
	return func(pod *placement.Pod) string {
		kind, seen := known[pod]
		if !seen {
			o := pod.Object()
			text, err := json.Marshal([]any{pod.Namespace(), o.Labels, pod.Priority, o.OwnerReferences, deciding(&o.Spec)})
			if kind = string(text); err != nil {
				kind = pod.String()
			}
			known[pod] = kind
		}
		return kind
	}
}

// deciding is a specification without volumes that every node can give, and without where volumes are mounted: the API
// server gives each pod such a volume under a name of its own.
func deciding(spec *corev1.PodSpec) *corev1.PodSpec {
	if len(spec.Volumes) == 0 {
		return spec
	}
	less := *spec
	less.Volumes = slices.DeleteFunc(slices.Clone(spec.Volumes), func(v corev1.Volume) bool {
		return v.CSI != nil || v.Projected != nil || v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.EmptyDir != nil || v.HostPath != nil
	})
	less.Containers, less.InitContainers = unmounted(spec.Containers), unmounted(spec.InitContainers)
	return &less
}

func unmounted(containers []corev1.Container) []corev1.Container {
	containers = slices.Clone(containers)
	for i := range containers {
		containers[i].VolumeMounts = nil
	}
	return containers
}
