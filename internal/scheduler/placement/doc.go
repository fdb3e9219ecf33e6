// Package placement decides where pods go and which pods they evict: kube-scheduler's rules (default profile,
// v1.37 and v1.36: version.go) as a pure engine.
//
// Data in, data out: there is no I/O, no clock and no goroutine here. A Cluster is made of real API objects, and
// changes as its owner says:
//
//	cluster := placement.New(placement.Snapshot{Nodes: …, Pods: …})
//	pod := cluster.Pod(object)
//	switch decision := cluster.Schedule(pod); decision.Kind {
//	case placement.Bound:         // cluster.AddPod(pod, decision.Node)
//	case placement.Preempts:      // cluster.Preempt(pod, decision.Node, decision.Victims); cluster.RemovePod(victim, decision.Node)
//	                              // when each has stopped, then Schedule(pod) again
//	case placement.Unschedulable: // it waits; it need not be tried again before RemovePod, Denominate or AddNode
//	}
//
// Schedule answers as one kube-scheduler would: one node, one set of victims, and what is equal to it. Where the real
// one chooses at random (between equal nodes, a rotating window of nodes to score in a large cluster, a random offset
// among the candidates for preemption), Alternatives names everything that is possible. Explain gives the reasons, node
// by node and in kube-scheduler's own words.
//
// The rules, each with its source in k8s.io/kubernetes/pkg/scheduler named where it is: the filters NodeUnschedulable,
// NodeName, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, PodTopologySpread and InterPodAffinity;
// nominated pods in two passes; the scores of the default profile with its weights, to the last truncated integer;
// DefaultPreemption with its six criteria.
//
// So are VolumeRestrictions (ReadWriteOncePod), NodeVolumeLimits, VolumeBinding and VolumeZone, and DynamicResources as far
// as the devices of a driver are equivalent. What of volumes, devices and declared node features is not modelled is named
// (Approximate). Scheduler extenders and other profiles than the default are unknown to it.
//
// A Cluster, and its clones together, are not safe for concurrent use.
package placement
