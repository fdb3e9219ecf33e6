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
type ApplyOptions struct {
	// UID of the object that is meant; another one under its name is a RecreatedError. "" for whichever is there.
	UID types.UID
	// Complete says that desired is all of the object but its metadata and status, so that a field it lacks is to be absent:
	// one that another manager owns is a conflict, too, and is removed by force. Otherwise it would stay.
	Complete bool
	// Stated is desired as the user stated it, without the defaults of what was left out; nil where that is all of it. The first
	// apply after an import needs no force to remove what was left out or to give it its default: only a
	// statement can be in conflict with another's.
	Stated runtime.Object
}

// ownershipAttempts bounds how often the rewriting of managedFields is tried while others write the object.
const ownershipAttempts = 5

// Apply changes an existing object by server-side apply: the fields of desired become ours, fields that were ours and
// are not in desired are removed, and others' fields stay. A field that another manager owns with another value is a
// ConflictError, unless the configuration forces conflicts. It costs a GET and a PATCH; the first one after Create
// costs one PATCH more, the first one after an import two.
func Apply[T Object](ctx context.Context, c *Client, resource Resource[T], desired T, opts ApplyOptions) (T, error) {
	var none T
	if err := c.Verify(ctx); err != nil {
		return none, err
	}
	ref := refOf[T](resource, desired.GetName())
	body, err := applyBody(c.kinds, desired)
	if err != nil {
		return none, c.Wrap("update", ref, err)
	}
	stated := body
	if opts.Stated != nil {
		if stated, err = applyBody(c.kinds, opts.Stated); err != nil {
			return none, c.Wrap("update", ref, err)
		}
	}
	live, err := resource.Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return none, c.Wrap("get", ref, err)
	}
	if opts.UID != "" && live.GetUID() != opts.UID {
		return none, c.Wrap("update", ref, &RecreatedError{Expected: opts.UID, Got: live.GetUID()})
	}
	// The UID keeps the server from making the object anew when it is deleted in this moment.
	body["metadata"].(map[string]any)["uid"] = string(live.GetUID())

	a := &applier[T]{client: c, resource: resource, name: ref.Name}
	isFirst := !ownsAnything(live, c.FieldManager())
	live, err = a.prepareOwnership(ctx, live, body)
	switch {
	case err != nil || !opts.Complete:
	case isFirst:
		err = a.claimTheRest(ctx, live, stated, true)
	default:
		err = a.claimTheRest(ctx, live, body, c.config.ForceConflicts)
	}
	if err != nil {
		return none, c.Wrap("update", ref, asConflict(err))
	}
	applied, err := a.patch(ctx, body, c.config.ForceConflicts)
	if err != nil {
		return none, c.Wrap("update", ref, asConflict(err))
	}
	return applied, nil
}

// applier sends the patches of one Apply.
type applier[T Object] struct {
	client   *Client
	resource Resource[T]
	name     string
}

func (a *applier[T]) patch(ctx context.Context, body map[string]any, force bool) (T, error) {
	data, err := json.Marshal(body)
	if err != nil {
		var none T
		return none, err
	}
	return a.resource.Patch(ctx, a.name, types.ApplyPatchType, data,
		metav1.PatchOptions{FieldManager: a.client.FieldManager(), Force: &force})
}

// prepareOwnership makes the first apply behave like all later ones. What Create wrote is owned by an Update entry, with
// which an apply would conflict; it becomes an Apply entry. What was imported is not ours at all, so that nothing could
// ever be removed from it; exactly the fields whose live value is the desired one become ours, and only ours. It returns the
// object as it is then.
func (a *applier[T]) prepareOwnership(ctx context.Context, live T, body map[string]any) (T, error) {
	manager := a.client.FieldManager()
	if ownsAnything(live, manager) {
		return a.rewriteOwnership(ctx, live, func(live T) ([]byte, error) { return ownershipPatch(live, manager) })
	}
	liveBody, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return live, err
	}
	equal := equalPart(body, liveBody)
	identify(equal, body)
	if live, err = a.patch(ctx, equal, true); err != nil {
		return live, err
	}
	// Equal values are no conflict, so that even by force they are shared with whoever wrote them first.
	return a.rewriteOwnership(ctx, live, func(live T) ([]byte, error) { return exclusivePatch(live, manager) })
}

// claimTheRest makes fields that others own and the body lacks ours alone by force, so that the apply removes them;
// without force each of them is a conflict.
func (a *applier[T]) claimTheRest(ctx context.Context, live T, body map[string]any, force bool) error {
	manager := a.client.FieldManager()
	if !force {
		found, err := foreignFields(live, manager, body)
		if err != nil || len(found) == 0 {
			return err
		}
		return &ConflictError{Conflicts: found, Err: errForeignFields}
	}
	_, err := a.rewriteOwnership(ctx, live, func(live T) ([]byte, error) { return claimingPatch(live, manager, body) })
	return err
}

// rewriteOwnership sends the JSON patch that is due for managedFields, if any, on the version it was made for, and
// returns the object as it is then.
func (a *applier[T]) rewriteOwnership(ctx context.Context, live T, due func(T) ([]byte, error)) (T, error) {
	for attempt := 1; ; attempt++ {
		patch, err := due(live)
		if err != nil || patch == nil {
			return live, err
		}
		uid := live.GetUID()
		patched, err := a.resource.Patch(ctx, a.name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: a.client.FieldManager()})
		if err == nil {
			return patched, nil
		}
		if attempt == ownershipAttempts || !apierrors.IsConflict(err) {
			return live, err
		}
		if live, err = a.resource.Get(ctx, a.name, metav1.GetOptions{}); err != nil {
			return live, err
		}
		if live.GetUID() != uid {
			return live, &RecreatedError{Expected: uid, Got: live.GetUID()}
		}
	}
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

// identify copies into part what says which object it is a part of.
func identify(part, whole map[string]any) {
	part["apiVersion"], part["kind"] = whole["apiVersion"], whole["kind"]
	metadata, ok := part["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		part["metadata"] = metadata
	}
	for _, field := range []string{"name", "namespace", "uid"} {
		if value, ok := whole["metadata"].(map[string]any)[field]; ok {
			metadata[field] = value
		}
	}
}
