package inprocess

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"
	utiltas "sigs.k8s.io/kueue/pkg/util/tas"
	workloadfinish "sigs.k8s.io/kueue/pkg/workload/finish"
	"sigs.k8s.io/kueue/pkg/workloadslicing"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

// beforeReplacement is how long Kueue waits before it looks for another node.
const beforeReplacement = time.Second

func (r *run) do(s *conformance.Step) error {
	switch s.Op {
	case conformance.Submit:
		w, err := s.Submitted()
		if err != nil {
			return err
		}
		return r.submit(&w)
	case conformance.SubmitMany:
		for i := range s.Workloads {
			if i > 0 {
				if err := r.pass(betweenSubmits); err != nil {
					return err
				}
			}
			if err := r.submit(&s.Workloads[i]); err != nil {
				return err
			}
			if err := r.rest(); err != nil {
				return err
			}
		}
		return nil
	case conformance.Finish, conformance.SetActive, conformance.SetPriority, conformance.SetBoost, conformance.UnhealthyNode, conformance.Resize, conformance.PodsNotReady:
		return r.change(s)
	case conformance.Wait:
		var seconds int64
		if err := json.Unmarshal(s.Value, &seconds); err != nil {
			return err
		}
		return r.pass(time.Duration(seconds) * time.Second)
	case conformance.SetQuota, conformance.StopPolicy:
		return r.changeQueue(s)
	case conformance.SetNode:
		return r.setNode(s.Node)
	case conformance.DeleteNode:
		old := r.nodes[s.Name]
		if old == nil {
			return nil
		}
		delete(r.nodes, s.Name)
		r.cache.TASCache().DeleteNodeByName(s.Name)
		r.nodeChanged(old, nil)
		return r.client.Delete(r.ctx, old)
	case conformance.SetPod:
		return r.setPod(s.Pod)
	case conformance.DeletePod:
		old := r.pods[s.Name]
		if old == nil {
			return nil
		}
		delete(r.pods, s.Name)
		r.freed(r.cache.TASCache().DeletePodByKey(client.ObjectKeyFromObject(old), ctrl.Log))
		return nil
	}
	return fmt.Errorf("the operation %q is not known", s.Op)
}

func (r *run) submit(w *conformance.Workload) error {
	priority, known := r.classes[w.PriorityClass]
	if !known && w.PriorityClass != "" {
		return fmt.Errorf("workload %s: there is no priority class %q", w.Name, w.PriorityClass)
	}
	active := true
	wl := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Name: w.Name, Namespace: namespace, UID: types.UID(r.uid(w.Name)), CreationTimestamp: metav1.NewTime(r.clock.Now()), Generation: 1,
			Labels: map[string]string{controllerconstants.JobUIDLabel: w.Name},
			// Otherwise it would be an orphan.
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: w.Name, UID: types.UID(w.Name)}},
			Annotations:     map[string]string{},
		},
		Spec: kueue.WorkloadSpec{QueueName: kueue.LocalQueueName(w.Queue), Priority: &priority, Active: &active},
	}
	if w.PriorityClass != "" {
		wl.Spec.PriorityClassRef = kueue.NewWorkloadPriorityClassRef(w.PriorityClass)
	}
	if w.Boost != 0 {
		wl.Annotations[controllerconstants.PriorityBoostAnnotationKey] = strconv.Itoa(int(w.Boost))
	}
	if w.Replaces != "" {
		wl.Annotations[workloadslicing.WorkloadSliceReplacementFor] = namespace + "/" + w.Replaces
	}
	for _, s := range w.Sets() {
		wl.Spec.PodSets = append(wl.Spec.PodSets, kueue.PodSet{
			Name: kueue.NewPodSetReference(s.Name), Count: s.Count, MinCount: s.MinCount, TopologyRequest: s.TopologyRequest.DeepCopy(),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, NodeSelector: s.NodeSelector, Tolerations: s.Tolerations, Affinity: s.Affinity,
				Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: s.Requests}}},
			}},
		})
	}
	if err := r.client.Create(r.ctx, wl); err != nil {
		return err
	}
	seen := &kueue.Workload{}
	if err := r.client.Get(r.ctx, client.ObjectKeyFromObject(wl), seen); err != nil {
		return err
	}
	r.workloads = append(r.workloads, seen)
	r.workload.Create(event.TypedCreateEvent[*kueue.Workload]{Object: seen.DeepCopy()})
	return nil
}

// change finishes a workload or changes it.
func (r *run) change(s *conformance.Step) error {
	name, err := s.Target()
	if err != nil {
		return err
	}
	wl := &kueue.Workload{}
	if err := r.client.Get(r.ctx, types.NamespacedName{Namespace: namespace, Name: name}, wl); err != nil {
		return err
	}
	switch s.Op {
	case conformance.Finish:
		return workloadfinish.Finish(r.ctx, r.client, wl, kueue.WorkloadFinishedReasonSucceeded, "Job finished successfully", r.clock)
	case conformance.UnhealthyNode:
		wl.Status.UnhealthyNodes = append(wl.Status.UnhealthyNodes, kueue.UnhealthyNode{Name: s.Name})
		if err := r.client.Status().Update(r.ctx, wl); err != nil {
			return err
		}
		if err := r.deliver(); err != nil {
			return err
		}
		return r.pass(beforeReplacement)
	case conformance.PodsNotReady:
		return r.setPodsReady(client.ObjectKeyFromObject(wl), metav1.ConditionFalse, kueue.WorkloadWaitForStart)
	case conformance.SetActive:
		if err := json.Unmarshal(s.Value, &wl.Spec.Active); err != nil {
			return err
		}
	case conformance.SetBoost:
		var boost int
		if err := json.Unmarshal(s.Value, &boost); err != nil {
			return err
		}
		wl.Annotations = map[string]string{controllerconstants.PriorityBoostAnnotationKey: strconv.Itoa(boost)}
		return r.client.Update(r.ctx, wl)
	case conformance.SetPriority:
		priority := r.classes[s.PriorityClass]
		wl.Spec.Priority, wl.Spec.PriorityClassRef = &priority, kueue.NewWorkloadPriorityClassRef(s.PriorityClass)
	case conformance.Resize:
		if err := json.Unmarshal(s.Value, &wl.Spec.PodSets[0].Count); err != nil {
			return err
		}
	}
	wl.Generation++
	return r.client.Update(r.ctx, wl)
}

// changeQueue changes a ClusterQueue.
func (r *run) changeQueue(s *conformance.Step) error {
	queue := r.queues[s.ClusterQueue]
	if queue == nil {
		return fmt.Errorf("there is no ClusterQueue %q", s.ClusterQueue)
	}
	queue = queue.DeepCopy()
	if s.Op == conformance.StopPolicy {
		queue.Spec.StopPolicy = new(kueue.StopPolicy)
		if err := json.Unmarshal(s.Value, queue.Spec.StopPolicy); err != nil {
			return err
		}
		status := metav1.ConditionTrue
		if *queue.Spec.StopPolicy != kueue.None {
			status = metav1.ConditionFalse
		}
		apimeta.SetStatusCondition(&queue.Status.Conditions, metav1.Condition{Type: kueue.ClusterQueueActive, Status: status, Reason: "Recorded"})
	} else {
		for _, g := range queue.Spec.ResourceGroups {
			for _, f := range g.Flavors {
				for i := range f.Resources {
					if string(f.Name) == s.Flavor && string(f.Resources[i].Name) == s.Resource {
						s.Change(&f.Resources[i])
					}
				}
			}
		}
	}
	stored := &kueue.ClusterQueue{}
	if err := r.client.Get(r.ctx, types.NamespacedName{Name: queue.Name}, stored); err != nil {
		return err
	}
	queue.ResourceVersion = stored.ResourceVersion
	written := queue.DeepCopy()
	if err := r.client.Update(r.ctx, written); err != nil {
		return err
	}
	written.Status = queue.Status
	if err := r.client.Status().Update(r.ctx, written); err != nil {
		return err
	}
	r.queues[queue.Name] = queue
	if err := r.cache.UpdateClusterQueue(ctrl.Log, queue); err != nil {
		return err
	}
	r.touchAll()
	if err := r.manager.UpdateClusterQueue(r.ctx, queue, true); err != nil {
		return err
	}
	return r.reconcileUsageOf(queue.Name)
}

func (r *run) setNode(n *conformance.Node) error {
	ready := corev1.ConditionTrue
	if n.NotReady {
		ready = corev1.ConditionFalse
	}
	now := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels},
		Spec:       corev1.NodeSpec{Taints: n.Taints, Unschedulable: n.Unschedulable},
		Status:     corev1.NodeStatus{Allocatable: n.Allocatable, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
	old := r.nodes[n.Name]
	if old != nil && equality.Semantic.DeepEqual(old, now) {
		return nil // an API server tells nobody
	}
	r.nodes[n.Name] = now
	if old == nil {
		if err := r.client.Create(r.ctx, now.DeepCopy()); err != nil {
			return err
		}
	} else {
		stored := &corev1.Node{}
		if err := r.client.Get(r.ctx, client.ObjectKeyFromObject(now), stored); err != nil {
			return err
		}
		replaced := now.DeepCopy()
		replaced.ResourceVersion = stored.ResourceVersion
		if err := r.client.Update(r.ctx, replaced); err != nil {
			return err
		}
	}
	r.cache.TASCache().SyncNode(now)
	r.nodeChanged(old, now)
	return nil
}

// nodeChanged is what the controller of topology flavors does.
func (r *run) nodeChanged(old, now *corev1.Node) {
	for _, n := range []*corev1.Node{old, now} {
		if n == nil {
			continue
		}
		for _, f := range r.cache.CloneTASCache() {
			if utiltas.NodeMatchesFlavor(n.Labels, f.NodeLabels(), f.TopologyLevels()) {
				qcache.NotifyRetryInadmissible(r.manager, r.cache.ActiveClusterQueues())
				return
			}
		}
	}
}

func (r *run) setPod(p *conformance.Pod) error {
	now := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: namespace, UID: types.UID(p.Name)},
		Spec: corev1.PodSpec{NodeName: p.Node, Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: p.Requests},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	r.pods[p.Name] = now
	r.freed(r.cache.TASCache().Update(now, ctrl.Log))
	return nil
}

// freed is what the controller of other pods does some seconds after one has left a node.
func (r *run) freed(name string) {
	node := r.nodes[name]
	if node == nil {
		return
	}
	queues := sets.New[kueue.ClusterQueueReference]()
	for flavor, f := range r.cache.CloneTASCache() {
		if utiltas.NodeMatchesFlavor(node.Labels, f.NodeLabels(), f.TopologyLevels()) {
			queues.Insert(r.cache.ClusterQueuesUsingFlavor(flavor)...)
		}
	}
	qcache.NotifyRetryInadmissible(r.manager, queues)
}
