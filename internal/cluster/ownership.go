package cluster

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// OwnedKeys are the keys of the string map metadata.FIELD ("labels" or "annotations") that the client's field manager
// owns. Keys of others are none of the caller's business, and no drift.
func OwnedKeys(c *Client, object metav1.Object, field string) (map[string]bool, error) {
	keys := map[string]bool{}
	for _, entry := range object.GetManagedFields() {
		if !isOurs(entry.Manager, c.FieldManager()) || entry.FieldsV1 == nil {
			continue
		}
		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		fields.WithPrefix(nameOf("metadata")).WithPrefix(nameOf(field)).Iterate(func(p fieldpath.Path) {
			if len(p) == 1 && p[0].FieldName != nil {
				keys[*p[0].FieldName] = true
			}
		})
	}
	return keys, nil
}

// fieldsOf decodes the fields of an entry that has some.
func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	var fields fieldpath.Set
	if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return nil, fmt.Errorf("managedFields of %s: %w", entry.Manager, err)
	}
	return &fields, nil
}

func nameOf(field string) fieldpath.PathElement { return fieldpath.PathElement{FieldName: &field} }

func ownsAnything(object metav1.Object, fieldManager string) bool {
	for _, entry := range object.GetManagedFields() {
		if isOurs(entry.Manager, fieldManager) && entry.Subresource == "" {
			return true
		}
	}
	return false
}

// ownershipPatch is the JSON patch after which the manager's fields are owned by one Apply entry, and fields that
// it applied are owned by nobody else where it has just taken them over; nil when there is nothing to change.
func ownershipPatch[T Object](live T, manager string) ([]byte, error) {
	creators := sets.New[string]()
	for _, entry := range live.GetManagedFields() {
		if isOurs(entry.Manager, manager) && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" {
			creators.Insert(entry.Manager)
		}
	}
	return csaupgrade.UpgradeManagedFieldsPatch(runtime.Object(live), creators, manager)
}

// exclusivePatch is the JSON patch that leaves the fields which the manager applied to it alone; nil when nobody shares them.
func exclusivePatch(live metav1.Object, manager string) ([]byte, error) {
	entries := live.GetManagedFields()
	ours := &fieldpath.Set{}
	for _, entry := range entries {
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.FieldsV1 != nil {
			var err error
			if ours, err = fieldsOf(entry); err != nil {
				return nil, err
			}
		}
	}
	var kept []metav1.ManagedFieldsEntry
	changed := false
	for _, entry := range entries {
		if entry.Manager == manager || entry.FieldsV1 == nil || entry.Subresource != "" {
			kept = append(kept, entry)
			continue
		}
		theirs, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		rest := theirs.Difference(ours)
		if rest.Equals(theirs) {
			kept = append(kept, entry)
			continue
		}
		changed = true
		if rest.Empty() {
			continue
		}
		raw, err := rest.ToJSON()
		if err != nil {
			return nil, fmt.Errorf("managedFields of %s: %w", entry.Manager, err)
		}
		entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		kept = append(kept, entry)
	}
	if !changed {
		return nil, nil
	}
	return managedFieldsPatch(live, kept)
}

// equalPart is the part of desired that live has already. Lists count as a whole: which of their items are the
// same is known to the server only.
func equalPart(desired, live map[string]any) map[string]any {
	equal := map[string]any{}
	for key, want := range desired {
		have, ok := live[key]
		if !ok {
			continue
		}
		wantMap, wantIsMap := want.(map[string]any)
		haveMap, haveIsMap := have.(map[string]any)
		switch {
		case wantIsMap && haveIsMap:
			if part := equalPart(wantMap, haveMap); len(part) > 0 {
				equal[key] = part
			}
		case reflect.DeepEqual(want, have):
			equal[key] = want
		}
	}
	return equal
}
