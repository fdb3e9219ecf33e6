package fakekueue

import (
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

// statusBatch is how long Kueue waits with the counts in queues' statuses after a change of a workload
// (UpdatesBatchPeriod).
const statusBatch = time.Second

// A key says where to look.
type key struct {
	kind kind
	types.NamespacedName
}

type kind string

const (
	jobs            kind = "Job"
	pods            kind = "Pod"
	groups          kind = "pod group"
	workloads       kind = "Workload"
	clusterQueues   kind = "ClusterQueue"
	localQueues     kind = "LocalQueue"
	flavors         kind = "ResourceFlavor"
	cohorts         kind = "Cohort"
	checks          kind = "AdmissionCheck"
	workloadClasses kind = "WorkloadPriorityClass"
	namespaces      kind = "Namespace"
	topologies      kind = "Topology"
	nodes           kind = "Node"
	// places is a look at where a pod is or is to go.
	places kind = "place of a pod"
	// schedule is a look at the engine.
	schedule kind = "schedule"
	// defaultNamespaces is a look at the namespaces that have a LocalQueue "default".
	defaultNamespaces kind = "namespaces with a default queue"
)

// errWait means that nothing can be done before something changes.
var errWait = errors.New("nothing can be done yet")

// work looks where the queue says until it is shut down.
func (c *controller) work(ctx context.Context) {
	for {
		k, over := c.keys.Get()
		if over {
			return
		}
		err := c.look(ctx, k)
		switch {
		case err == nil, errors.Is(err, errWait):
			c.keys.Forget(k)
		case ctx.Err() != nil:
		case apierrors.IsConflict(err):
			// Somebody else wrote; the next look has it.
			c.keys.AddRateLimited(k)
		default:
			c.log.WarnContext(ctx, "trying again", "kind", k.kind, "name", k.String(), "error", shorten(err))
			c.keys.AddRateLimited(k)
		}
		c.keys.Done(k)
	}
}

// shorten cuts an error that quotes a whole object.
func shorten(err error) string {
	const most = 500
	if text := err.Error(); len(text) > most {
		return text[:most] + "…"
	}
	return err.Error()
}

func (k key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.NamespacedName.String()
}

func (c *controller) look(ctx context.Context, k key) error {
	switch k.kind {
	case jobs:
		return c.reconcileJob(ctx, k.NamespacedName)
	case pods:
		return c.reconcilePod(ctx, k.NamespacedName)
	case groups:
		return c.reconcileGroup(ctx, k.NamespacedName)
	case workloads:
		return c.reconcileWorkload(ctx, k.NamespacedName)
	case clusterQueues:
		return c.reconcileClusterQueue(ctx, k.NamespacedName)
	case localQueues:
		return c.reconcileLocalQueue(ctx, k.NamespacedName)
	case flavors:
		return c.reconcileFlavor(ctx, k.NamespacedName)
	case cohorts:
		c.reconcileCohort(k.NamespacedName)
	case checks:
		return c.reconcileCheck(ctx, k.NamespacedName)
	case workloadClasses:
		return c.reconcileWorkloadClass(ctx, k.NamespacedName)
	case namespaces:
		c.reconcileNamespace(k.NamespacedName)
	case topologies:
		c.reconcileTopology(k.NamespacedName)
	case nodes:
		return c.reconcileNode(ctx, k.NamespacedName)
	case places:
		return c.reconcilePlace(ctx, k.NamespacedName)
	case schedule:
		return c.schedule(ctx)
	case defaultNamespaces:
		return setDefaultNamespaces(ctx, c.core, c.defaultNamespaces())
	}
	return nil
}

func (c *controller) add(k kind, namespace, name string) {
	c.keys.Add(key{k, types.NamespacedName{Namespace: namespace, Name: name}})
}

func (c *controller) addAfter(k kind, namespace, name string, after time.Duration) {
	c.keys.AddAfter(key{k, types.NamespacedName{Namespace: namespace, Name: name}}, after)
}

// changed has everything looked at that an object which came, changed or went may concern. It runs on informers'
// goroutines.
func (c *controller) changed(o metav1.Object) {
	switch o := o.(type) {
	case *batchv1.Job:
		c.add(jobs, o.Namespace, o.Name)
	case *corev1.Pod:
		c.addPod(o)
	case *corev1.Namespace:
		c.add(namespaces, "", o.Name)
	case *corev1.Node:
		c.add(nodes, "", o.Name)
	case *kueue.Topology:
		c.add(topologies, "", o.Name)
	case *kueue.Workload:
		c.add(workloads, o.Namespace, o.Name)
		c.addOwner(o)
	case *kueue.ClusterQueue:
		c.add(clusterQueues, "", o.Name)
	case *kueue.LocalQueue:
		c.add(localQueues, o.Namespace, o.Name)
		if o.Name == string(kueue.DefaultLocalQueueName) {
			c.keys.Add(key{kind: defaultNamespaces})
		}
	case *kueue.ResourceFlavor:
		c.add(flavors, "", o.Name)
	case *kueue.Cohort:
		c.add(cohorts, "", o.Name)
	case *kueue.AdmissionCheck:
		c.add(checks, "", o.Name)
	case *kueue.WorkloadPriorityClass:
		c.add(workloadClasses, "", o.Name)
	case *schedulingv1.PriorityClass:
		// Only new workloads look at it, and those that wait for it try again by themselves.
	}
}

// addPlace has the place of a pod looked at. Where there are no topologies, nobody asks.
func (c *controller) addPlace(pod *corev1.Pod) {
	if c.placing.Load() {
		c.add(places, pod.Namespace, pod.Name)
		if node := nodeToCheck(pod); node != "" {
			c.addAfter(nodes, "", node, nodeCheckBatch)
		}
	}
}

func (c *controller) addPod(pod *corev1.Pod) {
	if group := pod.Labels[kueue.PodGroupNameLabel]; group != "" {
		c.add(groups, pod.Namespace, group)
		return
	}
	c.add(pods, pod.Namespace, pod.Name)
}

// addOwner has the owner of a workload looked at.
func (c *controller) addOwner(w *kueue.Workload) {
	owner := metav1.GetControllerOfNoCopy(w)
	switch {
	case workload.OfGroup(w):
		c.add(groups, w.Namespace, w.Name)
	case owner == nil:
		// A group that found its name taken by this workload may have it now.
		c.add(groups, w.Namespace, w.Name)
	case owner.Kind == workload.JobKind.Kind:
		c.add(jobs, w.Namespace, owner.Name)
	case owner.Kind == workload.PodKind.Kind:
		c.add(pods, w.Namespace, owner.Name)
	}
}
