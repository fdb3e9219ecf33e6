package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"
)

// List reads all of the selected objects as they are now, in pages, in the order of the API server (namespace and
// name).
func List[T Object, L runtime.Object](ctx context.Context, c *Client, listing Listing[L], selected metav1.ListOptions) ([]T, error) {
	if err := c.Verify(ctx); err != nil {
		return nil, err
	}
	ref := refOf[T](listing, "")
	pages := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return listing.List(ctx, opts)
	})
	list, _, err := pages.List(ctx, selected)
	if err != nil {
		return nil, c.Wrap("list", ref, err)
	}
	objects, _, err := itemsOf[T](list)
	if err != nil {
		return nil, c.Wrap("list", ref, err)
	}
	return objects.list(), nil
}

// ListCached reads all of the selected objects as the API server remembers them, in one answer: at most moments old,
// and without a request to etcd. The order is the API server's.
func ListCached[T Object, L runtime.Object](ctx context.Context, c *Client, listing Listing[L], selected metav1.ListOptions) ([]T, error) {
	if err := c.Verify(ctx); err != nil {
		return nil, err
	}
	ref := refOf[T](listing, "")
	selected.ResourceVersion = "0" // "any": the watch cache answers
	list, err := listing.List(ctx, selected)
	if err != nil {
		return nil, c.Wrap("list", ref, err)
	}
	objects := make([]T, 0, meta.LenList(list))
	err = meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(T)
		if !ok {
			return fmt.Errorf("got a list of %T", item)
		}
		objects = append(objects, object)
		return nil
	})
	return objects, c.Wrap("list", ref, err)
}

// ListMetadata reads the metadata of the selected objects of a kind as they are now, in pages, in the order of the API
// server (namespace and name). An empty namespace is all of them.
func ListMetadata(
	ctx context.Context, c *Client, kind string, of schema.GroupVersionResource, namespace string,
	selected metav1.ListOptions,
) ([]*metav1.PartialObjectMetadata, error) {
	if err := c.Verify(ctx); err != nil {
		return nil, err
	}
	ref := Ref{Kind: kind, Namespace: namespace}
	pages := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return c.metadata.Resource(of).Namespace(namespace).List(ctx, opts)
	})
	var found []*metav1.PartialObjectMetadata
	err := pages.EachListItem(ctx, selected, func(item runtime.Object) error {
		object, ok := item.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("got a list of %T", item)
		}
		found = append(found, object)
		return nil
	})
	return found, c.Wrap("list", ref, err)
}

// GetMetadata reads the metadata of one object, and nothing of what it holds. A missing one is an error for which
// apierrors.IsNotFound holds.
func GetMetadata(ctx context.Context, c *Client, of schema.GroupVersionResource, ref Ref) (*metav1.PartialObjectMetadata, error) {
	if err := c.Verify(ctx); err != nil {
		return nil, err
	}
	found, err := c.metadata.Resource(of).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	return found, c.Wrap("get", ref, err)
}
