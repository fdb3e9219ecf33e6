package checkpointage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/checkpointage"
)

// Config is how the controller runs.
type Config struct {
	REST  *rest.Config
	Rule  checkpointage.Rule
	Every time.Duration // between two looks at the ages
	// DryRun logs what would be set, and sets nothing.
	DryRun bool
	Log    *slog.Logger
}

const (
	requestTimeout = 10 * time.Second
	// settle is the time after a change of a Workload in which further changes are waited for.
	settle = 200 * time.Millisecond
)

type controller struct {
	Config
	clients
	workloads, jobs, pods cache.SharedInformer
	changed               map[types.UID]change
	refused               string        // why the rule cannot be used, as last logged
	wake                  chan struct{} // a Workload has changed
}

// change is the last boost that was set, and when.
type change struct {
	boost int32
	at    time.Time
}

// Run keeps boosts up to date until the context ends. The boosts stay then: a restart of this program should not change
// who is a victim.
func Run(ctx context.Context, config Config) error {
	c := &controller{Config: config, changed: map[types.UID]change{}, wake: make(chan struct{}, 1)}
	var err error
	if c.clients, err = dial(config.REST); err != nil {
		return err
	}
	if err := c.permitted(ctx); err != nil {
		return err
	}
	c.workloads = c.informer(ctx, c.kueue, "workloads", &kueue.Workload{})
	c.jobs = c.informer(ctx, c.batch, "jobs", &metav1.PartialObjectMetadata{})
	c.pods = c.informer(ctx, c.core, "pods", &metav1.PartialObjectMetadata{})
	if _, err := c.workloads.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.woken, UpdateFunc: func(_, now any) { c.woken(now) },
	}); err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	synced := []cache.InformerSynced{}
	for _, informer := range []cache.SharedInformer{c.workloads, c.jobs, c.pods} {
		running.Go(func() { informer.Run(ctx.Done()) })
		synced = append(synced, informer.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil // signalled to stop
	}
	c.Log.Info("priorities follow the ages of checkpoints", "step", c.Rule.Step, "max", c.Rule.Max, "dry_run", c.DryRun)
	ticks := time.NewTicker(c.Every)
	defer ticks.Stop()
	usable := c.usable(ctx)
	for {
		c.pass(ctx, time.Now(), usable)
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			usable = c.usable(ctx)
		case <-c.wake:
			select {
			case <-ctx.Done():
			case <-time.After(settle):
			}
		}
	}
}

func (c *controller) woken(any) {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// permitted reads one object of each kind, and the priorities: what is missing should end the program with a reason.
func (c *controller) permitted(ctx context.Context) error {
	for _, of := range []struct {
		client   rest.Interface
		resource string
	}{{c.kueue, "workloads"}, {c.batch, "jobs"}, {c.core, "pods"}} {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		err := of.client.Get().Resource(of.resource).Param("limit", "1").Do(ctx).Error()
		cancel()
		if err != nil {
			return fmt.Errorf("list %s of all namespaces: %w", of.resource, err)
		}
	}
	priorities, err := c.priorities(ctx)
	if err != nil {
		return err
	}
	if err := c.Rule.Check(priorities); err != nil {
		return fmt.Errorf("the WorkloadPriorityClasses do not allow this rule: %w", err)
	}
	return nil
}

// priorities are those of all WorkloadPriorityClasses.
func (c *controller) priorities(ctx context.Context) ([]int32, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	classes := &kueue.WorkloadPriorityClassList{}
	if err := c.kueue.Get().Resource("workloadpriorityclasses").Do(ctx).Into(classes); err != nil {
		return nil, fmt.Errorf("list workloadpriorityclasses: %w", err)
	}
	var priorities []int32
	for _, class := range classes.Items {
		priorities = append(priorities, class.Value)
	}
	return priorities, nil
}

// informer lists and watches objects of all namespaces, and keeps of each only what is read here.
func (c *controller) informer(ctx context.Context, client rest.Interface, resource string, of runtime.Object) cache.SharedInformer {
	informer := cache.NewSharedInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.Get().Resource(resource).VersionedParams(&o, c.parameters).Do(ctx).Get()
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			request := client.Get().Resource(resource).VersionedParams(&o, c.parameters)
			if _, metadata := of.(*metav1.PartialObjectMetadata); metadata {
				request.SetHeader("Accept", metadataOfWatch)
			}
			return request.Watch(ctx)
		},
	}, of, 0)
	err := errors.Join(informer.SetTransform(trim), informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if ctx.Err() == nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			c.Log.Warn("a watch has ended and is begun again", "resource", resource, "error", err)
		}
	}))
	if err != nil {
		panic(err) // only an informer that has started returns an error
	}
	return informer
}

// trim drops what is not read here, which for pods is nearly everything.
func trim(o any) (any, error) {
	switch o := o.(type) {
	case *kueue.Workload:
		o.ManagedFields, o.Spec.PodSets, o.Status.Admission = nil, nil, nil
	case *metav1.PartialObjectMetadata:
		kept := metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace, UID: o.UID, ResourceVersion: o.ResourceVersion, OwnerReferences: o.OwnerReferences}
		if text, there := o.Annotations[trainingjob.AnnotationLastCheckpoint]; there {
			kept.Annotations = map[string]string{trainingjob.AnnotationLastCheckpoint: text}
		}
		return &metav1.PartialObjectMetadata{ObjectMeta: kept}, nil
	}
	return o, nil
}

// pass sets the boosts that are not as they should be, and removes all if the rule is not usable.
func (c *controller) pass(ctx context.Context, now time.Time, usable bool) {
	var objects []metav1.Object
	for _, informer := range []cache.SharedInformer{c.jobs, c.pods} {
		for _, o := range informer.GetStore().List() {
			objects = append(objects, o.(*metav1.PartialObjectMetadata))
		}
	}
	found := read(objects...)
	there := map[types.UID]bool{}
	for _, o := range c.workloads.GetStore().List() {
		w := o.(*kueue.Workload)
		there[w.UID] = true
		boost, _ := present(w)
		last := c.changed[w.UID]
		if c.DryRun {
			boost = last.boost
		}
		wanted, ours := decide(c.Rule, now, w, found, boost, last.at)
		if !usable {
			wanted = 0
		}
		// What was set a moment ago may not have come back by the watch yet.
		if !ours || wanted == boost || wanted == last.boost && now.Sub(last.at) < requestTimeout {
			continue
		}
		if err := c.set(ctx, w, boost, wanted); err != nil {
			if ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				c.Log.Warn("a boost cannot be set; trying again", "workload", w.Namespace+"/"+w.Name, "error", err)
			}
			continue
		}
		c.changed[w.UID] = change{wanted, now}
	}
	for uid := range c.changed {
		if !there[uid] {
			delete(c.changed, uid)
		}
	}
}

// usable reports whether the rule keeps all priorities apart. Classes come and go; without this, a new one between two
// others could make a Workload that no longer gives way to a higher one.
func (c *controller) usable(ctx context.Context) bool {
	priorities, err := c.priorities(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.Log.Warn("the priorities cannot be read; the boosts stay within what was checked last", "error", err)
		}
		return c.refused == ""
	}
	for _, o := range c.workloads.GetStore().List() { // without a class of Kueue's, a Workload has its pods' priority
		if p := o.(*kueue.Workload).Spec.Priority; p != nil {
			priorities = append(priorities, *p)
		}
	}
	refused := ""
	if err := c.Rule.Check(priorities); err != nil {
		refused = err.Error()
	}
	if refused != "" && refused != c.refused {
		c.Log.Error("all boosts are removed until the maximum fits the priorities", "error", refused)
	}
	c.refused = refused
	return refused == ""
}

func (c *controller) set(ctx context.Context, w *kueue.Workload, from, to int32) error {
	log := c.Log.With("workload", w.Namespace+"/"+w.Name, "from", from, "to", to)
	if c.DryRun {
		log.Info("would set a boost")
		return nil
	}
	body, err := json.Marshal(patch(w, to))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := c.kueue.Patch(types.MergePatchType).Namespace(w.Namespace).Resource("workloads").Name(w.Name).Body(body).Do(ctx).Error(); err != nil {
		return err
	}
	log.Info("set a boost")
	return nil
}
