package truth

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// A view is the part of the cluster's state that affects pods, and the time of its last change.
type view struct {
	typed   informers.SharedInformerFactory
	dynamic dynamicinformer.DynamicSharedInformerFactory

	pods         kept[*corev1.Pod]
	jobs         kept[*batchv1.Job]
	deployments  kept[*appsv1.Deployment]
	replicaSets  kept[*appsv1.ReplicaSet]
	statefulSets kept[*appsv1.StatefulSet]
	daemonSets   kept[*appsv1.DaemonSet]
	budgets      kept[*policyv1.PodDisruptionBudget]
	quotas       kept[*corev1.ResourceQuota]
	events       kept[*corev1.Event]
	claims       kept[*corev1.PersistentVolumeClaim]
	volumes      kept[*corev1.PersistentVolume]
	classes      kept[*storagev1.StorageClass]
	workloads    kept[*unstructured.Unstructured]
	others       []kept[*unstructured.Unstructured] // kinds of other projects, of those that are served

	stores   map[string]cache.Store // of all kinds that are kept, except events
	expected map[string]string      // by kind, the version that its store must have reached
	changed  chan struct{}          // has something in it when there was a change since it was emptied last

	mu      sync.Mutex
	last    time.Time // of the last change, guarded by mu, as what follows
	records map[types.UID]*record
	evicted map[types.UID]string // names of workloads that were seen without quota, though they may have some again, or be gone
}

// record is the observations of a pod.
type record struct {
	pod  *corev1.Pod // as it was last
	gone bool
}

// lost reports whether the pod has no node any more, or will soon have none.
func (r record) lost() bool { return r.gone || r.pod.DeletionTimestamp != nil || ended(r.pod) }

// kept are the objects of one kind.
type kept[T metav1.Object] struct{ cache.Store }

func (k kept[T]) all() []T {
	list := k.List()
	objects := make([]T, len(list))
	for i, object := range list {
		objects[i] = object.(T)
	}
	return objects
}

// otherKinds are kinds whose controllers are those of other projects. A stage has them where those run.
var otherKinds = []schema.GroupVersionKind{
	{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"},
	{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"},
	{Group: "ray.io", Version: "v1", Kind: "RayCluster"},
}

func newView(kube kubernetes.Interface, client dynamic.Interface, mapper meta.RESTMapper) (*view, error) {
	v := &view{
		typed:   informers.NewSharedInformerFactory(kube, 0),
		dynamic: dynamicinformer.NewDynamicSharedInformerFactory(client, 0),
		stores:  map[string]cache.Store{}, expected: map[string]string{}, changed: make(chan struct{}, 1),
		records: map[types.UID]*record{}, evicted: map[types.UID]string{},
	}
	v.pods.Store = v.watch("Pod", v.typed.Core().V1().Pods().Informer(), v.recordPod)
	v.jobs.Store = v.watch("Job", v.typed.Batch().V1().Jobs().Informer(), nil)
	v.deployments.Store = v.watch("Deployment", v.typed.Apps().V1().Deployments().Informer(), nil)
	v.replicaSets.Store = v.watch("ReplicaSet", v.typed.Apps().V1().ReplicaSets().Informer(), nil)
	v.statefulSets.Store = v.watch("StatefulSet", v.typed.Apps().V1().StatefulSets().Informer(), nil)
	v.daemonSets.Store = v.watch("DaemonSet", v.typed.Apps().V1().DaemonSets().Informer(), nil)
	v.budgets.Store = v.watch("PodDisruptionBudget", v.typed.Policy().V1().PodDisruptionBudgets().Informer(), nil)
	v.quotas.Store = v.watch("ResourceQuota", v.typed.Core().V1().ResourceQuotas().Informer(), nil)
	v.workloads.Store = v.watch("Workload", v.dynamic.ForResource(kueue.SchemeGroupVersion.WithResource("workloads")).Informer(), v.recordWorkload)
	v.claims.Store = v.watch("PersistentVolumeClaim", v.typed.Core().V1().PersistentVolumeClaims().Informer(), nil)
	v.volumes.Store = v.watch("PersistentVolume", v.typed.Core().V1().PersistentVolumes().Informer(), nil)
	v.classes.Store = v.watch("StorageClass", v.typed.Storage().V1().StorageClasses().Informer(), nil)
	v.events.Store = v.typed.Core().V1().Events().Informer().GetStore() // they describe changes, and are no change
	for _, kind := range otherKinds {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		v.others = append(v.others, kept[*unstructured.Unstructured]{v.watch(kind.Kind, v.dynamic.ForResource(mapping.Resource).Informer(), nil)})
	}
	return v, nil
}

// watch keeps objects of a kind, and notes every change of them.
func (v *view) watch(kind string, informer cache.SharedIndexInformer, also func(object any, gone bool)) cache.Store {
	note := func(object any, gone bool) {
		if also != nil {
			also(object, gone)
		}
		v.touch()
		select {
		case v.changed <- struct{}{}:
		default:
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { note(object, false) },
		UpdateFunc: func(_, object any) { note(object, false) },
		DeleteFunc: func(object any) { note(object, true) },
	})
	if err != nil {
		panic(fmt.Sprintf("truth: an informer that was not started refuses a handler: %v", err))
	}
	v.stores[kind] = informer.GetStore()
	return v.stores[kind]
}

// expect makes unseen wait for a version of an object. One that an apply did not change may be an old one.
func (v *view) expect(kind, version string) {
	if compared, err := resourceversion.CompareResourceVersion(v.expected[kind], version); err != nil || compared < 0 {
		v.expected[kind] = version
	}
}

// unseen is the error that the view lags behind what was applied.
func (v *view) unseen() error {
	for kind, version := range v.expected {
		store, watched := v.stores[kind]
		if !watched {
			continue
		}
		seen := store.LastStoreSyncResourceVersion()
		if compared, err := resourceversion.CompareResourceVersion(seen, version); err != nil || compared < 0 {
			return fmt.Errorf("version %s of a %s is applied, and %q is seen", version, kind, seen)
		}
	}
	return nil
}

// populated is the error that the view still has an object.
func (v *view) populated() error {
	for kind, store := range v.stores {
		if keys := store.ListKeys(); len(keys) > 0 {
			return fmt.Errorf("there is still the %s %s", kind, keys[0])
		}
	}
	return nil
}

func (v *view) recordPod(object any, gone bool) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.records[pod.UID] = &record{pod: pod, gone: gone}
}

func (v *view) recordWorkload(object any, _ bool) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	w, err := decode[kueue.Workload](object.(*unstructured.Unstructured))
	if err != nil || !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadEvicted) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.evicted[w.UID] = w.Namespace + "/" + w.Name
}

// evictions are the workloads that were seen evicted since forgetEvictions, as namespace/name.
func (v *view) evictions() map[types.UID]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.evicted)
}

func (v *view) forgetEvictions() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.evicted)
}

// recorded are all pods that were seen since the last time that records were cleared.
func (v *view) recorded() map[types.UID]record {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make(map[types.UID]record, len(v.records))
	for uid, r := range v.records {
		all[uid] = *r
	}
	return all
}

// forget clears the records of pods and of a policy that are gone.
func (v *view) forget() {
	delete(v.expected, policyBinding)
	v.mu.Lock()
	defer v.mu.Unlock()
	for uid, r := range v.records {
		if r.gone {
			delete(v.records, uid)
		}
	}
}

// touch restarts the quiet period.
func (v *view) touch() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = time.Now()
}

// quiet is for how long nothing has changed.
func (v *view) quiet() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return time.Since(v.last)
}

// run watches until ctx ends; ended returns when it does so no more.
func (v *view) run(ctx context.Context) (ended func()) {
	v.typed.StartWithContext(ctx)
	v.dynamic.Start(ctx.Done())
	return func() {
		v.typed.Shutdown()
		v.dynamic.Shutdown()
	}
}

// sync waits until the caches contain everything.
func (v *view) sync(ctx context.Context) error {
	for kind, synced := range v.typed.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("watching %s: %w", kind, context.Cause(ctx))
		}
	}
	for kind, synced := range v.dynamic.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("watching %s: %w", kind, context.Cause(ctx))
		}
	}
	return nil
}

// owned are the objects of a kind that an object controls.
func owned[T metav1.Object](objects []T, owner types.UID) []T {
	var found []T
	for _, object := range objects {
		if controller := metav1.GetControllerOfNoCopy(object); controller != nil && controller.UID == owner {
			found = append(found, object)
		}
	}
	return found
}

// decode reads an object of a kind that has no typed informer.
func decode[T any](object *unstructured.Unstructured) (*T, error) {
	into := new(T)
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
	return into, err
}
