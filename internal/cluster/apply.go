package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// ApplyOptions say which object is meant, and what desired is.
type ApplyOptions[T Object] struct {
	// UID of the object that is meant; another one under its name is a RecreatedError. "" for whichever is there.
	UID types.UID
	// Complete means that desired is all of the object but its metadata and status, so that a field it lacks is to be
	// absent, also if others own it. Otherwise only what was ours is removed.
	Complete bool
	// Prior is the object as it was managed before; nil for nothing. Labels and annotations that it has and desired lacks
	// are removed, also if others own them now.
	Prior runtime.Object
	// Check may refuse the change after all. It is given the very version of the object that is changed then; nil for no
	// check.
	Check func(live T) error
}

// applyAttempts bounds how often an apply begins again because others write the object at the same time.
const applyAttempts = 10

// Apply changes an existing object by server-side apply: the fields of desired become ours, by force where another
// manager owns them; fields that were ours and are not in desired are removed, and others' fields stay, unless Complete or
// Prior says otherwise. Whether others' values may be overwritten is for Check to decide, which every version is shown to:
// a change in between begins anew. It costs a GET, a JSON patch if managedFields have to be rewritten, such as at the first
// apply after Create, and the apply.
func Apply[T Object](ctx context.Context, c *Client, resource Resource[T], desired T, opts ApplyOptions[T]) (T, error) {
	var none T
	if err := c.Verify(ctx); err != nil {
		return none, err
	}
	ref := refOf[T](resource, desired.GetName())
	body, err := applyBody(c.kinds, desired)
	if err != nil {
		return none, c.Wrap("update", ref, err)
	}
	var prior map[string]any
	if opts.Prior != nil {
		if prior, err = applyBody(c.kinds, opts.Prior); err != nil {
			return none, c.Wrap("update", ref, err)
		}
	}
	a := &applier[T]{client: c, resource: resource, name: ref.Name, body: body, prior: prior, complete: opts.Complete}
	for attempt := 1; ; attempt++ {
		live, err := resource.Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return none, c.Wrap("get", ref, err)
		}
		if opts.UID != "" && live.GetUID() != opts.UID {
			return none, c.Wrap("update", ref, &RecreatedError{Expected: opts.UID, Got: live.GetUID()})
		}
		if opts.Check != nil {
			if err := opts.Check(live); err != nil {
				return none, c.Wrap("update", ref, err)
			}
		}
		applied, err := a.apply(ctx, live)
		if err == nil {
			return applied, nil
		}
		if attempt == applyAttempts || !apierrors.IsConflict(err) {
			return none, c.Wrap("update", ref, err)
		}
	}
}

// applier sends the patches of one Apply.
type applier[T Object] struct {
	client      *Client
	resource    Resource[T]
	name        string
	body, prior map[string]any
	complete    bool
}

// apply changes this version of the object, and no other: a change in between is a conflict (409). An apply removes only
// what its manager has applied, so a JSON patch first hands it the fields that we wrote by updates, and those of others
// that must go.
func (a *applier[T]) apply(ctx context.Context, live T) (T, error) {
	entries, differ, err := applyOwnership(live, a.client.FieldManager(), a.body, a.prior, a.complete)
	if err != nil {
		return live, err
	}
	if differ {
		patch, err := managedFieldsPatch(live, entries)
		if err != nil {
			return live, err
		}
		live, err = a.resource.Patch(ctx, a.name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: a.client.FieldManager()})
		if err != nil {
			return live, err
		}
	}
	metadata, _ := a.body["metadata"].(map[string]any)
	// The UID keeps the server from making the object anew when it is deleted in this moment.
	metadata["uid"], metadata["resourceVersion"] = string(live.GetUID()), live.GetResourceVersion()
	data, err := json.Marshal(a.body)
	if err != nil {
		return live, err
	}
	return a.resource.Patch(ctx, a.name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: a.client.FieldManager(), Force: new(true)})
}

// applyBody is what is sent for an object: its fields that are set, without status and what the server writes.
func applyBody(typer runtime.ObjectTyper, object runtime.Object) (map[string]any, error) {
	kinds, _, err := typer.ObjectKinds(object)
	if err != nil {
		return nil, fmt.Errorf("kind of %T: %w", object, err)
	}
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("%s as JSON: %w", kinds[0].Kind, err)
	}
	body["apiVersion"], body["kind"] = kinds[0].GroupVersion().String(), kinds[0].Kind
	delete(body, "status")
	metadata, ok := body["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		body["metadata"] = metadata
	}
	for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "generation", "uid"} {
		delete(metadata, field)
	}
	prune(body)
	return body, nil
}

// prune removes nulls, which Go types without omitempty yield and an apply would own.
func prune(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			if child == nil {
				delete(value, key)
				continue
			}
			prune(child)
		}
	case []any:
		for _, child := range value {
			prune(child)
		}
	}
}

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
