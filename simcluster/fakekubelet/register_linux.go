package fakekubelet

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/kubeversion"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/nodeagent"
)

// A kubelet's times (with default settings).
const (
	leaseDurationSeconds = 40
	leaseRenewal         = 10 * time.Second
)

// A simulatedNode is one node: while it runs, ctx is its life.
type simulatedNode struct {
	spec   nodeagent.NodeSpec
	events record.EventRecorder

	change sync.Mutex // held while the node is started or stopped
	// Guarded by agent.mu; ctx is nil while the node is stopped.
	ctx    context.Context
	cancel context.CancelFunc
	work   *sync.WaitGroup // its pods' owners and its lease
}

// startNode makes a node run: it registers, renews its lease, and takes on the pods
// that are bound to it. A node that runs is left alone.
func (a *agent) startNode(parent context.Context, name string) error {
	n := a.nodes[name]
	n.change.Lock()
	defer n.change.Unlock()
	if n.ctx != nil {
		return nil
	}
	if err := a.register(parent, n.spec); err != nil {
		return fmt.Errorf("register node %q: %w", name, err)
	}
	pods, err := a.pods.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("pods of node %q: %w", name, err)
	}
	ctx, cancel := context.WithCancel(parent)
	a.mu.Lock()
	defer a.mu.Unlock()
	n.ctx, n.cancel, n.work = ctx, cancel, &sync.WaitGroup{}
	n.work.Go(func() { a.heartbeat(ctx, n.spec) })
	for _, pod := range pods {
		if pod.Spec.NodeName == name && a.owners[pod.UID] == nil {
			a.own(n, pod)
		}
	}
	a.log.InfoContext(ctx, "node runs", "node", name)
	return nil
}

// stopNode is the node's sudden death: the API server gets no notice. On
// return none of its processes is alive.
func (a *agent) stopNode(name string) {
	n := a.nodes[name]
	n.change.Lock()
	defer n.change.Unlock()
	a.mu.Lock()
	cancel, work := n.cancel, n.work
	n.ctx, n.cancel = nil, nil
	a.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	work.Wait()
	a.log.Info("node is stopped", "node", name)
}

func (a *agent) stopAll() {
	var stopping sync.WaitGroup
	for name := range a.nodes {
		stopping.Go(func() { a.stopNode(name) })
	}
	stopping.Wait()
}

// register makes the Node and its Lease, or takes over those that exist.
func (a *agent) register(ctx context.Context, spec nodeagent.NodeSpec) error {
	nodes := a.client.CoreV1().Nodes()
	wanted := nodeObject(spec, a.config.KubeletPort, metav1.Now())
	_, err := nodes.Create(ctx, wanted, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = retry.RetryOnConflict(retry.DefaultRetry, func() error { return a.takeOver(ctx, wanted) })
	}
	if err != nil {
		return err
	}
	return a.renewLease(ctx, spec.Name)
}

// takeOver brings an existing Node up to date. Labels and taints that others gave it
// stay, as with a kubelet that restarts.
func (a *agent) takeOver(ctx context.Context, wanted *corev1.Node) error {
	nodes := a.client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, wanted.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	maps.Copy(node.Labels, wanted.Labels)
	if node, err = nodes.Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		return err
	}
	node.Status = wanted.Status
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// heartbeat renews the lease, and reports the node as ready again if somebody had
// given it up, until ctx ends.
func (a *agent) heartbeat(ctx context.Context, spec nodeagent.NodeSpec) {
	ticker := time.NewTicker(leaseRenewal)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := a.beat(ctx, spec); err != nil && ctx.Err() == nil {
			a.log.WarnContext(ctx, "heartbeat of a node failed, trying again", "node", spec.Name, "error", err)
		}
	}
}

func (a *agent) beat(ctx context.Context, spec nodeagent.NodeSpec) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := a.renewLease(ctx, spec.Name); err != nil {
		return err
	}
	node, err := a.client.CoreV1().Nodes().Get(ctx, spec.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // deleted by the user, who may have it back with a restart
	}
	if err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return a.takeOver(ctx, nodeObject(spec, a.config.KubeletPort, metav1.Now()))
}

func (a *agent) renewLease(ctx context.Context, name string) error {
	leases := a.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now, seconds := metav1.NowMicro(), int32(leaseDurationSeconds)
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &name, &seconds, &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// nodeObject is what a kubelet would register.
func nodeObject(spec nodeagent.NodeSpec, kubeletPort int, now metav1.Time) *corev1.Node {
	nodeLabels := map[string]string{
		corev1.LabelHostname:   spec.Name,
		corev1.LabelOSStable:   runtime.GOOS,
		corev1.LabelArchStable: runtime.GOARCH,
	}
	maps.Copy(nodeLabels, spec.Labels)
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: spec.Name, Labels: nodeLabels},
		Spec:       corev1.NodeSpec{Taints: spec.Taints},
		Status: corev1.NodeStatus{
			Capacity:    spec.Capacity,
			Allocatable: spec.Allocatable,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: hostIP},
				{Type: corev1.NodeHostName, Address: spec.Name},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(kubeletPort)}},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:          kubeversion.Version,
				ContainerRuntimeVersion: "simulated://1",
				OSImage:                 "simulated node",
				OperatingSystem:         runtime.GOOS,
				Architecture:            runtime.GOARCH,
			},
			Conditions: []corev1.NodeCondition{
				condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "the simulated kubelet is ready"),
				condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "not measured on a simulated node"),
				condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "not measured on a simulated node"),
				condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "not measured on a simulated node"),
			},
		},
	}
}
