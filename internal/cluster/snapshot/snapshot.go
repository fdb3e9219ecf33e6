//go:build !offline

package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// NotEnded selects, by their fields, the pods that hold what they request, or wait for it.
const NotEnded = "status.phase!=Succeeded,status.phase!=Failed"

// ErrNoKueue means that the cluster does not know Kueue's kinds of objects.
var ErrNoKueue = errors.New("the cluster has no Kueue")

// ForbiddenError reports what may not be read.
type ForbiddenError struct {
	Verbs []string // "list pods", "list clusterqueues.kueue.x-k8s.io"
}

func (e *ForbiddenError) Error() string {
	return "not allowed: " + strings.Join(e.Verbs, ", ") + " (in the whole cluster)"
}

// Read reads nodes, pods and what decides about them. It fails where nodes, pods or priority classes cannot be read;
// what a forecast can go without is named in Unread.
func Read(ctx context.Context, client *cluster.Client) (*forecast.Snapshot, error) {
	s := &forecast.Snapshot{AsOf: time.Now(), Jobs: map[types.NamespacedName]forecast.TrainingJob{}}
	l := &lists{}
	l.start(ctx, client, kindsOf(s))
	l.running.Go(func() { s.Version = versionOf(ctx, client.Kubernetes()) })
	if err := l.wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(l.forgone, func(a, b forecast.Unread) int { return strings.Compare(a.Verb, b.Verb) })
	s.Unread = l.forgone
	return s, nil
}

// versionOf is the API server's version, or "unknown". Everybody may read it, unless an administrator has changed that.
func versionOf(ctx context.Context, kube kubernetes.Interface) string {
	text, err := kube.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	var info version.Info
	if err != nil || json.Unmarshal(text, &info) != nil || info.GitVersion == "" {
		return "unknown"
	}
	return info.GitVersion
}

// ReadQueues reads Kueue's objects. Where Kueue is not installed it fails with ErrNoKueue.
func ReadQueues(ctx context.Context, client *cluster.Client) (*forecast.Queues, error) {
	q, l := &forecast.Queues{}, &lists{}
	l.start(ctx, client, queueKinds(q))
	l.running.Go(func() { l.noteError(readConfiguration(ctx, server{client}, q)) })
	if err := l.wait(); err != nil {
		return nil, err
	}
	for _, unread := range l.forgone {
		q.TopologiesUnread = unread.Verb
	}
	return q, nil
}

// lists are LISTs under way.
type lists struct {
	running sync.WaitGroup
	mu      sync.Mutex
	denied  []string          // guarded by mu, as what follows
	forgone []forecast.Unread // what a forecast can go without
	missing bool              // Kueue's kinds
	err     error
}

// start begins to list kinds.
func (l *lists) start(ctx context.Context, client *cluster.Client, kinds []kind) {
	for i := range kinds {
		l.running.Go(func() { l.note(&kinds[i], server{client}.list(ctx, &kinds[i])) })
	}
}

// note records the failure of a LIST. An API server without a kind has no objects of it.
func (l *lists) note(k *kind, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
	case apierrors.IsForbidden(err) && k.needed:
		l.denied = append(l.denied, k.verb())
	case apierrors.IsForbidden(err):
		l.forgone = append(l.forgone, k.unread(k.verb()))
	case cluster.IsNotServed(err):
		l.missing = l.missing || k.needed
	case l.err == nil:
		l.err = err
	}
}

// noteError keeps the error of a request that is no LIST.
func (l *lists) noteError(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}

// wait is the end of all of them, and the first error among them.
func (l *lists) wait() error {
	l.running.Wait()
	switch {
	case l.err != nil:
		return l.err
	case len(l.denied) > 0:
		slices.Sort(l.denied)
		return &ForbiddenError{Verbs: l.denied}
	case l.missing:
		return ErrNoKueue
	}
	return nil
}
