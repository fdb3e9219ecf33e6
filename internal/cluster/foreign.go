package cluster

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// errForeignFields is what the API server would say of them if it knew that desired is complete.
var errForeignFields = errors.New("others set fields that are to be absent")

// foreign are the fields that each entry of managedFields owns and that the body, though it is complete, lacks.
type foreign struct {
	entry  metav1.ManagedFieldsEntry
	all    *fieldpath.Set // all that the entry owns
	lacked []fieldpath.Path
}

// foreignEntries finds what others than the manager own and the body lacks. Metadata is shared by all and does not count,
// nor does what the object does not have in this version of the API.
func foreignEntries(live runtime.Object, managed []metav1.ManagedFieldsEntry, manager string, body map[string]any) ([]foreign, error) {
	liveBody, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, err
	}
	found := make([]foreign, len(managed))
	for i, entry := range managed {
		found[i].entry = entry
		if isOurs(entry.Manager, manager) || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		if found[i].all, err = fieldsOf(entry); err != nil {
			return nil, err
		}
		for path := range found[i].all.All() {
			if top := path[0].FieldName; top == nil || *top == "metadata" || *top == "status" {
				continue
			}
			if has(liveBody, path) && !has(body, path) {
				found[i].lacked = append(found[i].lacked, path.Copy())
			}
		}
	}
	return found, nil
}

// foreignFields are conflicts, one for the outermost field of each that the body lacks.
func foreignFields[T Object](live T, manager string, body map[string]any) ([]Conflict, error) {
	entries, err := foreignEntries(live, live.GetManagedFields(), manager, body)
	if err != nil {
		return nil, err
	}
	var found []Conflict
	for _, f := range entries {
		for i, path := range f.lacked {
			if i == 0 || !isWithin(path, f.lacked[:i]) {
				found = append(found, Conflict{Manager: f.entry.Manager, Field: path.String()})
			}
		}
	}
	return found, nil
}

func isWithin(path fieldpath.Path, others []fieldpath.Path) bool {
	for _, other := range others {
		if len(other) < len(path) && path[:len(other)].Equals(other) {
			return true
		}
	}
	return false
}

// claimingPatch is the JSON patch that makes foreign fields the manager's alone; nil when there are none.
func claimingPatch[T Object](live T, manager string, body map[string]any) ([]byte, error) {
	entries, err := foreignEntries(live, live.GetManagedFields(), manager, body)
	if err != nil {
		return nil, err
	}
	claimed := fieldpath.NewSet()
	for _, f := range entries {
		for _, path := range f.lacked {
			claimed.Insert(path)
		}
	}
	if claimed.Empty() {
		return nil, nil
	}
	var kept []metav1.ManagedFieldsEntry
	for _, f := range entries {
		fields := f.all
		switch {
		case f.entry.Manager == manager && f.entry.Operation == metav1.ManagedFieldsOperationApply && f.entry.FieldsV1 != nil:
			if fields, err = fieldsOf(f.entry); err != nil {
				return nil, err
			}
			fields = fields.Union(claimed)
		case len(f.lacked) == 0:
			kept = append(kept, f.entry)
			continue
		default:
			fields = fields.Difference(claimed)
		}
		if fields.Empty() {
			continue
		}
		raw, err := fields.ToJSON()
		if err != nil {
			return nil, fmt.Errorf("managedFields of %s: %w", f.entry.Manager, err)
		}
		f.entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		kept = append(kept, f.entry)
	}
	return managedFieldsPatch(live, kept)
}

// managedFieldsPatch is the JSON patch that replaces the managedFields of this version of an object.
func managedFieldsPatch(live metav1.Object, entries []metav1.ManagedFieldsEntry) ([]byte, error) {
	return json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		// Replacing, not testing, the version makes a change in between a conflict (409) and not an invalid request.
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
}

// has says whether a JSON value has something at a path.
func has(object any, path fieldpath.Path) bool {
	for _, element := range path {
		var ok bool
		switch {
		case element.FieldName != nil:
			fields, _ := object.(map[string]any)
			object, ok = fields[*element.FieldName]
		case element.Key != nil:
			object, ok = itemWith(object, func(item any) bool {
				fields, _ := item.(map[string]any)
				for _, key := range *element.Key {
					if !value.Equals(value.NewValueInterface(fields[key.Name]), key.Value) {
						return false
					}
				}
				return true
			})
		case element.Value != nil:
			object, ok = itemWith(object, func(item any) bool { return value.Equals(value.NewValueInterface(item), *element.Value) })
		case element.Index != nil:
			items, _ := object.([]any)
			if ok = *element.Index < len(items); ok {
				object = items[*element.Index]
			}
		}
		if !ok {
			return false
		}
	}
	return true
}

func itemWith(list any, isMeant func(item any) bool) (any, bool) {
	items, _ := list.([]any)
	for _, item := range items {
		if isMeant(item) {
			return item, true
		}
	}
	return nil, false
}
