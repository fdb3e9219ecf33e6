// Package conversion compares how this project reads objects of Kueue's v1beta1 (internal/api/kueue/versions) with how
// Kueue converts them. Kueue's own functions link controller-runtime, which is why only this module uses them.
package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/kueue/apis/kueue/v1beta1"
	"sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/versions"
)

// kinds are those that users declare. The function converts an object as Kueue does.
var kinds = map[string]struct {
	was, is runtime.Object
	convert func(was, is runtime.Object) error
}{
	"AdmissionCheck": {&v1beta1.AdmissionCheck{}, &v1beta2.AdmissionCheck{}, func(was, is runtime.Object) error {
		return v1beta1.Convert_v1beta1_AdmissionCheck_To_v1beta2_AdmissionCheck(was.(*v1beta1.AdmissionCheck), is.(*v1beta2.AdmissionCheck), nil)
	}},
	"ClusterQueue": {&v1beta1.ClusterQueue{}, &v1beta2.ClusterQueue{}, func(was, is runtime.Object) error {
		return v1beta1.Convert_v1beta1_ClusterQueue_To_v1beta2_ClusterQueue(was.(*v1beta1.ClusterQueue), is.(*v1beta2.ClusterQueue), nil)
	}},
	"Cohort": {&v1beta1.Cohort{}, &v1beta2.Cohort{}, func(was, is runtime.Object) error {
		return v1beta1.Convert_v1beta1_Cohort_To_v1beta2_Cohort(was.(*v1beta1.Cohort), is.(*v1beta2.Cohort), nil)
	}},
	"LocalQueue": {&v1beta1.LocalQueue{}, &v1beta2.LocalQueue{}, func(was, is runtime.Object) error {
		return v1beta1.Convert_v1beta1_LocalQueue_To_v1beta2_LocalQueue(was.(*v1beta1.LocalQueue), is.(*v1beta2.LocalQueue), nil)
	}},
	"ResourceFlavor": {&v1beta1.ResourceFlavor{}, &v1beta2.ResourceFlavor{}, func(was, is runtime.Object) error {
		return v1beta1.Convert_v1beta1_ResourceFlavor_To_v1beta2_ResourceFlavor(was.(*v1beta1.ResourceFlavor), is.(*v1beta2.ResourceFlavor), nil)
	}},
	"Topology": {&v1beta1.Topology{}, &v1beta2.Topology{}, func(was, is runtime.Object) error {
		return v1beta1.Convert_v1beta1_Topology_To_v1beta2_Topology(was.(*v1beta1.Topology), is.(*v1beta2.Topology), nil)
	}},
	"WorkloadPriorityClass": {&v1beta1.WorkloadPriorityClass{}, &v1beta2.WorkloadPriorityClass{}, func(was, is runtime.Object) error {
		return v1beta1.Convert_v1beta1_WorkloadPriorityClass_To_v1beta2_WorkloadPriorityClass(was.(*v1beta1.WorkloadPriorityClass), is.(*v1beta2.WorkloadPriorityClass), nil)
	}},
}

// TestAnObjectIsConvertedAsKueueConvertsIt has an object of each kind with a value in every field, and ClusterQueues with
// all policies.
func TestAnObjectIsConvertedAsKueueConvertsIt(t *testing.T) {
	for kind, of := range kinds {
		fill(reflect.ValueOf(of.was).Elem())
		of.was.GetObjectKind().SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(kind))
		compare(t, kind, of.was, of.is, of.convert)
	}
	of := kinds["ClusterQueue"]
	queue := of.was.(*v1beta1.ClusterQueue)
	for _, borrow := range []v1beta1.FlavorFungibilityPolicy{"", v1beta1.Borrow, v1beta1.MayStopSearch, v1beta1.TryNextFlavor} {
		for _, preempt := range []v1beta1.FlavorFungibilityPolicy{"", v1beta1.Preempt, v1beta1.MayStopSearch, v1beta1.TryNextFlavor} {
			queue.Spec.FlavorFungibility.WhenCanBorrow, queue.Spec.FlavorFungibility.WhenCanPreempt = borrow, preempt
			compare(t, fmt.Sprintf("ClusterQueue with %q and %q", borrow, preempt), queue, of.is, of.convert)
		}
	}
	queue.Spec.AdmissionChecks = nil
	compare(t, "ClusterQueue with a strategy", queue, of.is, of.convert)
	queue.Spec.AdmissionChecksStrategy, queue.Spec.FlavorFungibility, queue.Spec.Cohort = nil, nil, ""
	compare(t, "ClusterQueue without checks, policies and a cohort", queue, of.is, of.convert)
}

// compare compares what is read of an object with what Kueue makes of it.
func compare(t *testing.T, behaviour string, was, is runtime.Object, convert func(was, is runtime.Object) error) {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(was)
	if err != nil {
		t.Fatal(err)
	}
	want, got := reflect.New(reflect.TypeOf(is).Elem()).Interface().(runtime.Object), reflect.New(reflect.TypeOf(is).Elem()).Interface().(runtime.Object)
	if err := convert(was.DeepCopyObject(), want); err != nil {
		t.Fatal(err)
	}
	if err := versions.Decode(&unstructured.Unstructured{Object: fields}, got); err != nil {
		t.Fatalf("%s: %v", behaviour, err)
	}
	got.GetObjectKind().SetGroupVersionKind(want.GetObjectKind().GroupVersionKind()) // Kueue leaves it to its caller
	if diff := cmp.Diff(written(t, want), written(t, got)); diff != "" {
		t.Errorf("%s: -Kueue +ours:\n%s", behaviour, diff)
	}
}

func written(t *testing.T, object runtime.Object) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// fill gives every field a value. Lists and maps get one entry.
func fill(v reflect.Value) {
	switch at := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*at = resource.MustParse("3")
		return
	case *metav1.Time:
		*at = metav1.NewTime(time.Date(2026, 11, 21, 10, 4, 7, 0, time.UTC).Local())
		return
	case *metav1.FieldsV1:
		at.SetRawBytes([]byte("{}"))
		return
	case *intstr.IntOrString:
		*at = intstr.FromInt32(1)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(2)
	default:
		panic("a field of kind " + v.Kind().String())
	}
}

// TestAFieldOfV1beta2IsRefusedInV1beta1 finds the fields by the types.
func TestAFieldOfV1beta2IsRefusedInV1beta1(t *testing.T) {
	for kind, of := range kinds {
		before := fieldsOf("", reflect.TypeOf(of.was).Elem())
		for path := range fieldsOf("", reflect.TypeOf(of.is).Elem()) {
			parent := path[:max(strings.LastIndex(path, "."), 0)]
			if before[path] || parent != "" && !before[parent] {
				continue // a field below a new one is refused with it
			}
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": kind}}
			if err := unstructured.SetNestedField(object.Object, map[string]any{}, strings.Split(path, ".")...); err != nil {
				t.Fatal(err)
			}
			err := versions.Decode(object, of.is.DeepCopyObject())
			if err == nil || !strings.Contains(err.Error(), "does not have the field "+path) {
				t.Errorf("%s %s: %v", kind, path, err)
			}
		}
	}
}

// fieldsOf are the paths of a type's fields; those of lists are left out below the list.
func fieldsOf(path string, of reflect.Type) map[string]bool {
	all := map[string]bool{}
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[v1beta1.ClusterQueue]().PkgPath() && of.PkgPath() != reflect.TypeFor[v1beta2.ClusterQueue]().PkgPath() {
		return all
	}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		all[at] = true
		maps.Copy(all, fieldsOf(at, of.Field(i).Type))
	}
	return all
}
