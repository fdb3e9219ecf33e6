package cluster

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// claim is the managedFields after which the selected fields, as far as the object has them and others own them, are
// the manager's alone. What the object does not have in this version of the API does not count, nor does its status.
func claim(live Object, manager string, body map[string]any, selected func(fieldpath.Path) bool) ([]metav1.ManagedFieldsEntry, error) {
	liveBody, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, err
	}
	claimed := fieldpath.NewSet()
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range live.GetManagedFields() {
		if isOurs(entry.Manager, manager) || entry.Subresource != "" || entry.FieldsV1 == nil {
			kept = append(kept, entry)
			continue
		}
		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		theirs := fieldpath.NewSet()
		for path := range fields.All() {
			if top := path[0].FieldName; top == nil || *top == "status" || !has(liveBody, path) || !selected(path) {
				continue
			}
			theirs.Insert(path.Copy())
		}
		if theirs.Empty() {
			kept = append(kept, entry)
			continue
		}
		claimed = claimed.Union(theirs)
		if rest := fields.Difference(theirs); !rest.Empty() {
			if entry.FieldsV1, err = encodeFields(entry.Manager, rest); err != nil {
				return nil, err
			}
			kept = append(kept, entry)
		}
	}
	if claimed.Empty() {
		return kept, nil
	}
	for i, entry := range kept {
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil || entry.Subresource != "" {
			continue
		}
		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		kept[i].FieldsV1, err = encodeFields(manager, fields.Union(claimed))
		return kept, err
	}
	// An imported object: nothing is ours yet.
	version, _ := body["apiVersion"].(string)
	fields, err := encodeFields(manager, claimed)
	now := metav1.Now()
	return append(kept, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version, Time: &now, FieldsType: "FieldsV1", FieldsV1: fields,
	}), err
}

func encodeFields(manager string, fields *fieldpath.Set) (*metav1.FieldsV1, error) {
	raw, err := fields.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("managedFields of %s: %w", manager, err)
	}
	return metav1.NewFieldsV1(string(raw)), nil
}

// managedFieldsPatch is the JSON patch that replaces the managedFields of this version of an object.
func managedFieldsPatch(live metav1.Object, entries []metav1.ManagedFieldsEntry) ([]byte, error) {
	return json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		// Replacing, not testing, the version makes a change in between a conflict (409) and not an invalid request.
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
}

// has reports whether a JSON value has something at a path.
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
