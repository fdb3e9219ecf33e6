package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// pauseBetweenWatches keeps a server that closes every watch at once from being called in a loop.
const pauseBetweenWatches = 500 * time.Millisecond

// outageLimit is how long a wait continues without an answer of a server that has answered it before. An API server
// that is started again, for an upgrade for instance, is away for half a minute, and until it has read its roles it
// forbids everything.
const outageLimit = 2 * time.Minute

// Named selects one object by its name, for WaitFor.
func Named(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
}

// WaitFor lists and watches the selected objects, and calls done with all of them, first at once and then after every
// change, until done returns true or fails. A watch that ends is begun again, also when the server is away for a while.
// The end of the context is the context's cause, wrapped; done's own error is returned as it is.
func WaitFor[T Object, L runtime.Object](
	ctx context.Context, c *Client, listing Listing[L], selected metav1.ListOptions, done func(objects []T) (bool, error),
) error {
	if err := c.Verify(ctx); err != nil {
		return err
	}
	ref := refOf[T](listing, "")
	var answered time.Time // when the server last answered as requested
	for {
		ready, err := listAndWatch(ctx, c, listing, selected, ref, done, &answered)
		away := (*unansweredError)(nil)
		switch {
		case ready || err != nil && !errors.As(err, &away):
			return err
		case err != nil && ctx.Err() != nil:
			return c.Wrap("watch", ref, context.Cause(ctx))
		case err != nil && (answered.IsZero() || time.Since(answered) > outageLimit):
			return away.err
		}
		select {
		case <-time.After(pauseBetweenWatches):
		case <-ctx.Done():
			return c.Wrap("watch", ref, context.Cause(ctx))
		}
	}
}

// unansweredError is that of a request that the server did not do.
type unansweredError struct{ err error }

func (e *unansweredError) Error() string { return e.err.Error() }

// listAndWatch is one round: false and no error means that the watch ended and a new round is due. It notes when the
// server answered.
func listAndWatch[T Object, L runtime.Object](
	ctx context.Context, c *Client, listing Listing[L], selected metav1.ListOptions, ref Ref, done func([]T) (bool, error),
	answered *time.Time,
) (bool, error) {
	list, err := listing.List(ctx, selected)
	if err != nil {
		return false, &unansweredError{c.Wrap("list", ref, err)}
	}
	*answered = time.Now()
	objects, version, err := itemsOf[T](list)
	if err != nil {
		return false, c.Wrap("list", ref, err)
	}
	if ready, err := done(objects.list()); ready || err != nil {
		return ready, err
	}
	selected.ResourceVersion = version
	watching, err := listing.Watch(ctx, selected)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return false, nil
	}
	if err != nil {
		return false, &unansweredError{c.Wrap("watch", ref, err)}
	}
	defer func() { watching.Stop(); *answered = time.Now() }()
	for {
		select {
		case <-ctx.Done():
			return false, c.Wrap("watch", ref, context.Cause(ctx))
		case event, open := <-watching.ResultChan():
			if !open || event.Type == watch.Error {
				return false, nil // closed, or the version is too old: list again
			}
			if event.Type == watch.Bookmark {
				continue
			}
			object, ok := event.Object.(T)
			if !ok {
				return false, c.Wrap("watch", ref, fmt.Errorf("got a %T", event.Object))
			}
			objects.change(event.Type, object)
			if ready, err := done(objects.list()); ready || err != nil {
				return ready, err
			}
		}
	}
}

// collection keeps objects in the order in which they were first seen.
type collection[T Object] struct {
	order []types.UID
	byUID map[types.UID]T
}

func itemsOf[T Object](list runtime.Object) (*collection[T], string, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, "", err
	}
	objects := &collection[T]{byUID: map[types.UID]T{}}
	for _, item := range items {
		object, ok := item.(T)
		if !ok {
			return nil, "", fmt.Errorf("got a list of %T", item)
		}
		objects.change(watch.Added, object)
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, "", err
	}
	return objects, accessor.GetResourceVersion(), nil
}

func (c *collection[T]) change(event watch.EventType, object T) {
	uid := object.GetUID()
	if event == watch.Deleted {
		delete(c.byUID, uid)
		return
	}
	if _, known := c.byUID[uid]; !known {
		c.order = append(c.order, uid)
	}
	c.byUID[uid] = object
}

func (c *collection[T]) list() []T {
	objects := make([]T, 0, len(c.byUID))
	for _, uid := range c.order {
		if object, there := c.byUID[uid]; there {
			objects = append(objects, object)
		}
	}
	return objects
}
