package fakekueue

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

// maxCycles bounds the cycles of one look at the engine, so that other things get their turn.
const maxCycles = 100

// schedule asks the engine what to do, and does it, until it has nothing new to say.
func (c *controller) schedule(ctx context.Context) error {
	for range maxCycles {
		result := c.engine.Cycle(c.now())
		for _, decision := range result.Decisions {
			c.carryOut(ctx, decision)
		}
		if !result.Settled {
			continue
		}
		if at, ok := c.engine.RequeueAt(); ok {
			c.keys.AddAfter(key{kind: schedule}, max(time.Millisecond, at.Sub(c.now())))
		}
		return nil
	}
	c.keys.Add(key{kind: schedule})
	return nil
}

// carryOut does what the engine decided. What cannot be done is taken back from the engine: it hears of the workload as
// it is.
func (c *controller) carryOut(ctx context.Context, decision quota.Decision) {
	switch decision.Kind {
	case quota.Admit:
		c.attempt(ctx, decision.Workload, func(w *kueue.Workload) (*kueue.Workload, error) { return c.admit(ctx, w, decision) })
	case quota.Move:
		c.attempt(ctx, decision.Workload, func(w *kueue.Workload) (*kueue.Workload, error) {
			return c.setStatus(ctx, w, func(w *kueue.Workload) bool {
				w.Status.Admission, w.Status.UnhealthyNodes = decision.Admission.DeepCopy(), nil
				return true
			})
		})
		for _, pod := range c.allPods.by(byWorkload, join(decision.Workload.Namespace, decision.Workload.Name)) {
			c.add(places, pod.Namespace, pod.Name) // it may wait for its new node
		}
	case quota.Preempt:
		preemptor, _ := c.workloads.get(decision.Workload)
		for _, target := range decision.Targets {
			if !target.Ongoing {
				c.attempt(ctx, target.Workload, func(w *kueue.Workload) (*kueue.Workload, error) {
					return c.preempt(ctx, w, preemptor, target)
				})
			}
		}
		c.attempt(ctx, decision.Workload, func(w *kueue.Workload) (*kueue.Workload, error) { return c.wait(ctx, w, decision) })
	case quota.Evict:
		c.attempt(ctx, decision.Workload, func(w *kueue.Workload) (*kueue.Workload, error) {
			return c.evict(ctx, w, decision.Reason, decision.Message)
		})
	case quota.Wait:
		c.attempt(ctx, decision.Workload, func(w *kueue.Workload) (*kueue.Workload, error) { return c.wait(ctx, w, decision) })
	}
}

// attempt carries a decision about a workload out. Somebody else may have written in between: then once more, on what
// is there now.
func (c *controller) attempt(ctx context.Context, name types.NamespacedName, act func(*kueue.Workload) (*kueue.Workload, error)) {
	w, ok := c.workloads.get(name)
	if !ok {
		c.drop(name)
		return
	}
	_, err := act(w)
	if apierrors.IsConflict(err) {
		if w, err = c.kueue.Workloads(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{}); err == nil {
			c.workloads.wrote(w)
			_, err = act(w)
		}
	}
	if err == nil {
		return
	}
	if ctx.Err() == nil {
		c.log.WarnContext(ctx, "a decision could not be carried out and is taken anew", "workload", name, "error", err)
	}
	c.drop(name)
	c.keys.AddRateLimited(key{workloads, name})
}

func (c *controller) admit(ctx context.Context, w *kueue.Workload, decision quota.Decision) (*kueue.Workload, error) {
	if !workload.Queued(w, c.now()) {
		return w, errors.New("it does not wait for quota any more")
	}
	var checks []kueue.AdmissionCheckReference
	for _, name := range decision.Checks {
		checks = append(checks, kueue.AdmissionCheckReference(name))
	}
	admitted, err := c.setStatus(ctx, w, func(w *kueue.Workload) bool {
		workload.Reserve(w, decision.Admission.DeepCopy(), checks, c.now())
		return true
	})
	if err != nil {
		return w, err
	}
	name := nameOf(w)
	c.holding[name] = true
	waited := waitedFor(w, c.now())
	c.events.admission.Eventf(admitted, nil, corev1.EventTypeNormal, "QuotaReserved", "QuotaReserved", "Quota reserved in ClusterQueue %s, wait time since queued was %.0fs",
		decision.ClusterQueue, waited.Seconds())
	if workload.IsAdmitted(admitted) {
		c.engine.ChecksReady(name)
		c.events.admission.Eventf(admitted, nil, corev1.EventTypeNormal, "Admitted", "Admitted", "Admitted by ClusterQueue %s, wait time since reservation was 0s", decision.ClusterQueue)
	}
	c.addOwner(admitted)
	return admitted, nil
}

func (c *controller) preempt(ctx context.Context, w, preemptor *kueue.Workload, target quota.Target) (*kueue.Workload, error) {
	evicted, err := c.setStatus(ctx, w, func(w *kueue.Workload) bool {
		if workload.IsEvicted(w) {
			return false
		}
		workload.Preempt(w, target.Reason, target.Message, c.now())
		return true
	})
	if err != nil || evicted == w {
		return w, err
	}
	const priorities = "; preemptor effective priority: %d (base: %d, boost: 0); preemptee effective priority: %d (base: %d, boost: 0)"
	var priority int32
	if preemptor != nil && preemptor.Spec.Priority != nil {
		priority = *preemptor.Spec.Priority
	}
	c.events.admission.Eventf(evicted, nil, corev1.EventTypeNormal, "EvictedDueToPreempted", "EvictedDueToPreempted", "%s", target.Message)
	c.events.admission.Eventf(evicted, nil, corev1.EventTypeNormal, "Preempted", "Preempted", "%s"+priorities, target.Message, priority, priority, target.Priority, target.Priority)
	if preemptor != nil {
		c.events.admission.Eventf(preemptor, nil, corev1.EventTypeNormal, "PreemptedWorkload", "PreemptedWorkload", "Preempted workload %s (UID: %s) in ClusterQueue %s"+priorities,
			nameOf(evicted), evicted.UID, target.ClusterQueue, priority, priority, target.Priority, target.Priority)
	}
	c.addOwner(evicted)
	return evicted, nil
}

func (c *controller) wait(ctx context.Context, w *kueue.Workload, decision quota.Decision) (*kueue.Workload, error) {
	if workload.HasQuota(w) || workload.IsFinished(w) || decision.Message == "" {
		return w, nil
	}
	waiting, err := c.setStatus(ctx, w, func(w *kueue.Workload) bool {
		requests := c.requests(w)
		same := equalJSON(requests, w.Status.ResourceRequests)
		w.Status.ResourceRequests = requests
		return workload.Wait(w, decision.Reason, decision.Message, c.now()) || !same
	})
	if err != nil || waiting == w {
		return w, err
	}
	c.events.admission.Eventf(waiting, nil, corev1.EventTypeWarning, decision.Reason, decision.Reason, "%s", decision.Message)
	return waiting, nil
}
