package cluster

import (
	"fmt"
	"reflect"
	"time"

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

// applyOwnership are the managedFields that an object needs before the body is applied, and whether they differ from
// those that it has:
//
//   - What Create or Merge wrote is owned by Update entries of ours. They become part of our Apply entry, because an apply
//     removes only what its manager has applied.
//   - What the body lacks and others own becomes ours alone, so that the apply removes it: fields of a complete body, and
//     labels and annotations that prior has, which is the object as it was managed before.
//
// Everything else is left to the apply itself, which takes fields by force.
func applyOwnership(live Object, manager string, body, prior map[string]any, complete bool) ([]metav1.ManagedFieldsEntry, bool, error) {
	creators := sets.New[string]()
	for _, entry := range live.GetManagedFields() {
		if isOurs(entry.Manager, manager) && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" {
			creators.Insert(entry.Manager)
		}
	}
	upgraded, ok := live.DeepCopyObject().(Object)
	if !ok {
		return nil, false, fmt.Errorf("a copy of %T is another type", live)
	}
	if err := csaupgrade.UpgradeManagedFields(runtime.Object(upgraded), creators, manager); err != nil {
		return nil, false, err
	}
	entries, err := claim(upgraded, manager, body, func(path fieldpath.Path) bool {
		switch {
		case has(body, path):
			return false
		case isMetadata(path):
			return len(path) == 3 && has(prior, path)
		default:
			return complete
		}
	})
	return entries, !reflect.DeepEqual(entries, live.GetManagedFields()), err
}

// isMetadata reports whether a field is metadata, which many write, and not the object's own.
func isMetadata(path fieldpath.Path) bool {
	return path[0].FieldName != nil && *path[0].FieldName == "metadata"
}

// Owners are the field managers that own a field of an object, such as ("spec", "stopPolicy"), alone or with others.
func Owners(object metav1.Object, field ...string) ([]string, error) {
	var at fieldpath.Path
	for _, name := range field {
		at = append(at, nameOf(name))
	}
	var owners []string
	for _, entry := range object.GetManagedFields() {
		if entry.FieldsV1 == nil {
			continue
		}
		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		if fields.Has(at) {
			owners = append(owners, entry.Manager)
		}
	}
	return owners, nil
}

// Written is a field that another field manager than the client's wrote last.
type Written struct {
	Field   string // ".metadata.labels.team"
	Manager string // "kubectl-label"
	Time    time.Time
}

// WrittenByOthers are the fields of an object that others than the client's field manager own alone, in the order of
// managedFields: a field whose value somebody changes is that manager's from then on. Fields that hold others are left
// out where these are ours.
func WrittenByOthers(c *Client, object metav1.Object) ([]Written, error) {
	manager := c.FieldManager()
	ours, others := fieldpath.NewSet(), []metav1.ManagedFieldsEntry{}
	for _, entry := range object.GetManagedFields() {
		switch {
		case entry.FieldsV1 == nil || entry.Subresource != "":
		case isOurs(entry.Manager, manager):
			fields, err := fieldsOf(entry)
			if err != nil {
				return nil, err
			}
			ours = ours.Union(fields)
		default:
			others = append(others, entry)
		}
	}
	var written []Written
	for _, entry := range others {
		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		for path := range fields.Leaves().All() {
			if ours.Has(path) || !within(ours, path).Empty() {
				continue
			}
			w := Written{Field: path.String(), Manager: entry.Manager}
			if entry.Time != nil {
				w.Time = entry.Time.UTC()
			}
			written = append(written, w)
		}
	}
	return written, nil
}

// within is the part of a set below a path.
func within(fields *fieldpath.Set, path fieldpath.Path) *fieldpath.Set {
	for _, element := range path {
		fields = fields.WithPrefix(element)
	}
	return fields
}
