package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// title is the kind as the API calls it.
func (k kueueKind) title() string {
	words := strings.Split(strings.TrimPrefix(k.resource, "elastic_"), "_")
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

func (k kueueKind) plural() string {
	name := strings.ToLower(k.title())
	switch {
	case strings.HasSuffix(name, "ss"):
		return name + "es"
	case strings.HasSuffix(name, "y"):
		return strings.TrimSuffix(name, "y") + "ies"
	default:
		return name + "s"
	}
}

// ref is the name of an object of the kind in messages.
func (k kueueKind) ref(name string) string {
	if k.namespaced {
		return k.title() + " default/" + name
	}
	return k.title() + " " + name
}

// block is a resource block with the given attributes besides the name.
func (k kueueKind) block(label, name, attributes string) string {
	return fmt.Sprintf("resource %q %q {\n  name = %q\n%s\n}\n", k.resource, label, name, attributes)
}

// in is a client for the objects, independent of the provider.
func (k kueueKind) in(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(adminConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	resource := client.Resource(kueue.SchemeGroupVersion.WithResource(k.plural()))
	if k.namespaced {
		return resource.Namespace(metav1.NamespaceDefault)
	}
	return resource
}

func (k kueueKind) live(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	live, err := k.in(t).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("%s: %v", k.ref(name), err)
	}
	return live
}

// create creates an object as another client does, with the given fields, and removes it after the test.
func (k kueueKind) create(t *testing.T, name, manager, fields string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	k.setFields(object, decodeFields(t, fields))
	object.SetAPIVersion(kueue.SchemeGroupVersion.String())
	object.SetKind(k.title())
	object.SetName(name)
	created, err := k.in(t).Create(t.Context(), object, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		t.Fatalf("%s: %v", k.ref(name), err)
	}
	t.Cleanup(func() { k.remove(t, name) })
	return created
}

// remove deletes an object, finalizers or not; one that is gone is fine.
func (k kueueKind) remove(t *testing.T, name string) {
	t.Helper()
	ctx := cleanupContext(t)
	err := k.in(t).Delete(ctx, name, metav1.DeleteOptions{})
	if err == nil { // only what is being deleted keeps no new finalizer
		_, err = k.in(t).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("%s: %v", k.ref(name), err)
	}
}

// patch changes an object as another client does.
func (k kueueKind) patch(t *testing.T, name, manager, patch string, subresources ...string) {
	t.Helper()
	_, err := k.in(t).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, subresources...)
	if err != nil {
		t.Fatalf("%s: %v", k.ref(name), err)
	}
}

// expectFields compares all fields of the live object with JSON.
func (k kueueKind) expectFields(t *testing.T, when, name, want string) {
	t.Helper()
	if diff := cmp.Diff(decodeFields(t, want), k.fieldsOf(k.live(t, name))); diff != "" {
		t.Errorf("%s, %s (-want +got):\n%s", k.resource, when, diff)
	}
}

// fieldsOf are the fields that are attributes: those of spec, or the object's own.
func (k kueueKind) fieldsOf(object *unstructured.Unstructured) map[string]any {
	if !k.flat {
		spec, _ := object.Object["spec"].(map[string]any)
		return spec
	}
	fields := map[string]any{}
	for name, value := range object.Object {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, name) {
			fields[name] = value
		}
	}
	return fields
}

func (k kueueKind) setFields(object *unstructured.Unstructured, fields map[string]any) {
	if !k.flat {
		object.Object["spec"] = fields
		return
	}
	for name, value := range fields {
		object.Object[name] = value
	}
}

// decodeFields reads JSON as the API's objects have it: whole numbers as int64.
func decodeFields(t *testing.T, text string) map[string]any {
	t.Helper()
	if !json.Valid([]byte(text)) {
		t.Fatalf("no JSON: %s", text)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"Fields","fields":` + text + `}`)); err != nil {
		t.Fatal(err)
	}
	fields, ok := object.Object["fields"].(map[string]any)
	if !ok {
		t.Fatal(errors.New("no object"))
	}
	return fields
}
