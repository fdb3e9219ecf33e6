package cluster

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// How often a deleted object is looked for: at once, and then less and less often. A GET needs no right to watch, and
// most objects are gone at the first look.
const (
	firstLook  = 50 * time.Millisecond
	slowerLook = 2 * time.Second
)

// Delete removes the object with the given UID and waits until it is gone: a missing object, or another one under its
// name, means deleted and is never touched. An empty uid means whichever object has the name now. The context's end
// while the object remains is a StillThereError that names what holds it.
func Delete[T Object](ctx context.Context, c *Client, resource Resource[T], name string, uid types.UID, propagation metav1.DeletionPropagation) error {
	if err := c.Verify(ctx); err != nil {
		return err
	}
	ref := refOf[T](resource, name)
	if uid == "" {
		live, err := resource.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return c.Wrap("get", ref, err)
		}
		uid = live.GetUID()
	}
	err := resource.Delete(ctx, name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &propagation,
	})
	switch {
	case IsNotServed(err): // it may be there in another version
		return c.Wrap("delete", ref, err)
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err): // the UID is another's, or the object changed in the same moment: look
	case err != nil && !ambiguous(err):
		return c.Wrap("delete", ref, err)
	}
	if gone := waitUntilGone(ctx, c, resource, ref, uid); gone != nil {
		return errors.Join(gone, c.Wrap("delete", ref, err))
	}
	return nil
}

func waitUntilGone[T Object](ctx context.Context, c *Client, resource Resource[T], ref Ref, uid types.UID) error {
	still := &StillThereError{}
	for look := firstLook; ; look = min(2*look, slowerLook) {
		live, err := resource.Get(ctx, ref.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || err == nil && live.GetUID() != uid:
			return nil
		case err == nil:
			still = stillThere(ref, live)
		case ctx.Err() == nil: // else the time ended during this look, and the one before tells why
			return c.Wrap("get", ref, err)
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			still.Err = context.Cause(ctx)
			return c.Wrap("delete", ref, still)
		}
	}
}

func stillThere(ref Ref, live Object) *StillThereError {
	still := &StillThereError{Finalizers: live.GetFinalizers()}
	if t := TerminatingOf(ref, live); t != nil {
		still.Deleting, still.Since = true, t.Since
	}
	return still
}
