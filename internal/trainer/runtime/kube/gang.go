package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// Gang is one rank's view of the other ranks of a multi-node task: the pods of their Job, and the ConfigMap through
// which they agree.
type Gang struct {
	cluster *Cluster
	board   string // the ConfigMap's name
	podsOf  func(*metav1.ListOptions)
	pods    cache.SharedInformer
	boards  cache.SharedInformer
	changed chan struct{}
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	written *corev1.ConfigMap // the newest from a response; a watch may be behind it
}

// WatchGang lists and watches the pods with the label and the ConfigMap, until Close. It returns when both are known.
func WatchGang(ctx context.Context, c *Cluster, podLabel, value, board string) (*Gang, error) {
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g := &Gang{cluster: c, board: board, changed: make(chan struct{}, 1), cancel: cancel}
	g.podsOf = func(o *metav1.ListOptions) { o.LabelSelector = labels.Set{podLabel: value}.String() }
	g.pods = g.watch(watching, "pods", g.podsOf, &corev1.Pod{})
	g.boards = g.watch(watching, "configmaps", func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", board).String()
	}, &corev1.ConfigMap{})
	if !cache.WaitForCacheSync(ctx.Done(), g.pods.HasSynced, g.boards.HasSynced) {
		g.Close()
		return nil, fmt.Errorf("list the pods and the ConfigMap %s/%s of the gang: %w", c.Namespace, board, context.Cause(ctx))
	}
	return g, nil
}

func (g *Gang) watch(ctx context.Context, resource string, options func(*metav1.ListOptions), of runtime.Object) cache.SharedInformer {
	informer := g.cluster.informer(resource, options, of, cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { g.notify() }, UpdateFunc: func(any, any) { g.notify() }, DeleteFunc: func(any) { g.notify() },
	})
	g.running.Go(func() { informer.RunWithContext(ctx) })
	return informer
}

func (g *Gang) notify() {
	select {
	case g.changed <- struct{}{}:
	default: // a change is already pending
	}
}

// Changed receives after anything has changed.
func (g *Gang) Changed() <-chan struct{} { return g.changed }

// Close ends the watches and waits for them.
func (g *Gang) Close() {
	g.cancel()
	g.running.Wait()
}

// Living are the UIDs of the pods that have not failed and are not being deleted, as far as the watch has come.
func (g *Gang) Living() map[types.UID]bool {
	living := map[types.UID]bool{}
	for _, o := range g.pods.GetStore().List() {
		if pod, ok := o.(*corev1.Pod); ok && lives(pod) {
			living[pod.UID] = true
		}
	}
	return living
}

// ListLiving asks the API server, where a stale watch would do harm.
func (g *Gang) ListLiving(ctx context.Context) (map[types.UID]bool, error) {
	pods, err := g.cluster.pods(ctx, g.podsOf)
	if err != nil {
		return nil, fmt.Errorf("list the pods of the gang: %w", err)
	}
	living := map[types.UID]bool{}
	for i := range pods.Items {
		if lives(&pods.Items[i]) {
			living[pods.Items[i].UID] = true
		}
	}
	return living, nil
}

func lives(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed
}

// Board is the ConfigMap's data and version as of now; an error when there is no such ConfigMap.
func (g *Gang) Board() (data map[string]string, version string, err error) {
	g.mu.Lock()
	newest := g.written
	g.mu.Unlock()
	for _, o := range g.boards.GetStore().List() {
		if seen, ok := o.(*corev1.ConfigMap); ok && (newest == nil || newer(seen, newest)) {
			newest = seen
		}
	}
	if newest == nil {
		return nil, "", fmt.Errorf("ConfigMap %s/%s does not exist", g.cluster.Namespace, g.board)
	}
	return newest.Data, newest.ResourceVersion, nil
}

func newer(a, b *corev1.ConfigMap) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err != nil || order > 0
}

// Write sets one key of the ConfigMap; with a version only if that is still current. A conflict is
// no error: Write reads the current ConfigMap, and written is false.
func (g *Gang) Write(ctx context.Context, key string, value any, version string) (written bool, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return false, fmt.Errorf("encode %s: %w", key, err)
	}
	patch := map[string]any{"data": map[string]string{key: string(text)}}
	if version != "" {
		patch["metadata"] = map[string]string{"resourceVersion": version}
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return false, fmt.Errorf("encode the patch of %s: %w", key, err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	now := &corev1.ConfigMap{}
	err = g.cluster.core.Patch(types.MergePatchType).Namespace(g.cluster.Namespace).Resource("configmaps").Name(g.board).Body(body).Do(ctx).Into(now)
	if written = err == nil; apierrors.IsConflict(err) {
		err = g.cluster.get(ctx, g.cluster.core, "configmaps", g.board, now)
	}
	if err != nil {
		return false, fmt.Errorf("write %s of ConfigMap %s/%s: %w", key, g.cluster.Namespace, g.board, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.written = now
	return written, nil
}
