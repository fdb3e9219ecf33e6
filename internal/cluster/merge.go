package cluster

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Merge changes fields of an object by a JSON merge patch (RFC 7386), in which null takes a field away. It ignores who
// owns them. A metadata.uid in the patch keeps it from another object of the same name, and a
// metadata.resourceVersion from another version of it.
func Merge[T Object](ctx context.Context, c *Client, resource Resource[T], name string, patch map[string]any) error {
	return merge(ctx, c, resource, c.FieldManager(), name, patch)
}

// MergeAs is Merge under a field manager of its own, the client's with a suffix: managedFields then show what an action
// wrote from what a resource's configuration says.
func MergeAs[T Object](ctx context.Context, c *Client, resource Resource[T], suffix, name string, patch map[string]any) error {
	return merge(ctx, c, resource, c.FieldManager()+"-"+suffix, name, patch)
}

func merge[T Object](ctx context.Context, c *Client, resource Resource[T], manager, name string, patch map[string]any) error {
	if err := c.Verify(ctx); err != nil {
		return err
	}
	data, err := json.Marshal(patch)
	if err == nil {
		_, err = resource.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: manager})
	}
	return c.Wrap("update", refOf[T](resource, name), err)
}
