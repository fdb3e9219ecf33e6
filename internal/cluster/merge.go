package cluster

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Merge changes fields of an object by a JSON merge patch (RFC 7386), in which null takes a field away. Whoever owns them is
// not asked. A metadata.uid in the patch keeps it from another object of the same name.
func Merge[T Object](ctx context.Context, c *Client, resource Resource[T], name string, patch map[string]any) error {
	if err := c.Verify(ctx); err != nil {
		return err
	}
	data, err := json.Marshal(patch)
	if err == nil {
		_, err = resource.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: c.FieldManager()})
	}
	return c.Wrap("update", refOf[T](resource, name), err)
}
