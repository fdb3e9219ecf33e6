package fakekueue

import (
	"context"
	"errors"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// Indexes of the stores.
const (
	byOwner = "owner" // workloads, by kind, namespace and name of their controller
	byQueue = "queue" // workloads, by namespace and name of their LocalQueue
	byGroup = "group" // pods, by namespace and name of their group
	// byWorkload: pods, by namespace and name of their workload.
	byWorkload = "workload"
)

func join(parts ...string) string {
	joined := ""
	for _, part := range parts {
		joined += "/" + part
	}
	return joined
}

func workloadIndexers() cache.Indexers {
	return cache.Indexers{
		byOwner: func(o any) ([]string, error) {
			w := o.(*kueue.Workload)
			owner := metav1.GetControllerOfNoCopy(w)
			if owner == nil {
				return nil, nil
			}
			return []string{join(owner.Kind, w.Namespace, owner.Name)}, nil
		},
		byQueue: func(o any) ([]string, error) {
			w := o.(*kueue.Workload)
			return []string{join(w.Namespace, string(w.Spec.QueueName))}, nil
		},
	}
}

func podIndexers() cache.Indexers {
	return cache.Indexers{byGroup: func(o any) ([]string, error) {
		pod := o.(*corev1.Pod)
		if group := pod.Labels[kueue.PodGroupNameLabel]; group != "" {
			return []string{join(pod.Namespace, group)}, nil
		}
		return nil, nil
	}}
}

// workloadPodIndexers find the pods that an admission has marked.
func workloadPodIndexers() cache.Indexers {
	return cache.Indexers{byWorkload: func(o any) ([]string, error) {
		pod := o.(*corev1.Pod)
		if name := pod.Annotations[kueue.WorkloadAnnotation]; name != "" {
			return []string{join(pod.Namespace, name)}, nil
		}
		return nil, nil
	}}
}

// watches are the informers that run.
type watches struct {
	controller *controller
	ctx        context.Context
	group      sync.WaitGroup
	synced     []cache.InformerSynced
	err        error
}

// watch makes the stores and starts their informers, which end with ctx.
func (c *controller) watch(ctx context.Context) (*watches, error) {
	w := &watches{controller: c, ctx: ctx}
	all := informers.NewSharedInformerFactory(c.core, 0)
	// Other pods than those that the webhook marked are none of ours, and there may be many.
	managed := informers.NewSharedInformerFactoryWithOptions(c.core, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = kueue.ManagedLabel + "=true"
	}))
	c.jobs = watched[*batchv1.Job](w, all.Batch().V1().Jobs().Informer(), nil)
	c.allPods = watchedFor(w, all.Core().V1().Pods().Informer(), workloadPodIndexers(), c.addPlace)
	c.nodes = watched[*corev1.Node](w, all.Core().V1().Nodes().Informer(), nil)
	c.topologies = watched[*kueue.Topology](w, informer(c.kueue.Topologies(), &kueue.Topology{}), nil)
	c.pods = watched[*corev1.Pod](w, managed.Core().V1().Pods().Informer(), podIndexers())
	c.namespaces = watched[*corev1.Namespace](w, all.Core().V1().Namespaces().Informer(), nil)
	c.limitRanges = watched[*corev1.LimitRange](w, all.Core().V1().LimitRanges().Informer(), nil)
	c.podClasses = watched[*schedulingv1.PriorityClass](w, all.Scheduling().V1().PriorityClasses().Informer(), nil)
	c.runtimeClasses = watched[*nodev1.RuntimeClass](w, all.Node().V1().RuntimeClasses().Informer(), nil)
	c.workloads = watched[*kueue.Workload](w, informer(c.kueue.Workloads(metav1.NamespaceAll), &kueue.Workload{}), workloadIndexers())
	c.clusterQueues = watched[*kueue.ClusterQueue](w, informer(c.kueue.ClusterQueues(), &kueue.ClusterQueue{}), nil)
	c.localQueues = watched[*kueue.LocalQueue](w, informer(c.kueue.LocalQueues(metav1.NamespaceAll), &kueue.LocalQueue{}), nil)
	c.flavors = watched[*kueue.ResourceFlavor](w, informer(c.kueue.ResourceFlavors(), &kueue.ResourceFlavor{}), nil)
	c.cohorts = watched[*kueue.Cohort](w, informer(c.kueue.Cohorts(), &kueue.Cohort{}), nil)
	c.checks = watched[*kueue.AdmissionCheck](w, informer(c.kueue.AdmissionChecks(), &kueue.AdmissionCheck{}), nil)
	c.workloadClasses = watched[*kueue.WorkloadPriorityClass](w, informer(c.kueue.WorkloadPriorityClasses(), &kueue.WorkloadPriorityClass{}), nil)
	return w, w.err
}

// wait returns when no informer runs any more.
func (w *watches) wait() { w.group.Wait() }

// watched starts an informer and returns the store of what it sees.
func watched[T object](w *watches, informer cache.SharedIndexInformer, indexers cache.Indexers) *store[T] {
	return watchedFor(w, informer, indexers, func(o T) { w.controller.changed(o) })
}

// watchedFor is watched with another function that receives changes.
func watchedFor[T object](w *watches, informer cache.SharedIndexInformer, indexers cache.Indexers, changed func(T)) *store[T] {
	s, err := newStore(informer, indexers, changed)
	if err != nil {
		w.err = errors.Join(w.err, err)
		return s
	}
	w.synced = append(w.synced, informer.HasSynced)
	w.group.Go(func() { informer.RunWithContext(w.ctx) })
	return s
}

// lister is a typed client of Kueue's objects of one kind.
type lister[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

func informer[L runtime.Object](client lister[L], example runtime.Object) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: client.Watch,
	}, example, 0, cache.Indexers{})
}
