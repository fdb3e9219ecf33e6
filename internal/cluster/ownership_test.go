package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"
)

func TestApplyBodyIsWhatIsSetAndNothingOfTheServers(t *testing.T) {
	object := &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "high", UID: "u", ResourceVersion: "7", Labels: map[string]string{"team": "ml"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Value:      5,
	}
	body, err := applyBody(scheme.Scheme, object)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
		"metadata": map[string]any{"name": "high", "labels": map[string]any{"team": "ml"}},
		"value":    int64(5),
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	pod, err := applyBody(scheme.Scheme, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := pod["status"]; ok {
		t.Error("status is sent")
	}
}

func TestEqualPart(t *testing.T) {
	object := func(a, b, c any) map[string]any { return map[string]any{"a": a, "b": b, "c": c} }
	for behaviour, c := range map[string]struct{ desired, live, want map[string]any }{
		"equal scalars are taken, others not": {object(int64(1), "x", true), object(int64(1), "y", true), map[string]any{"a": int64(1), "c": true}},
		"maps are taken entry by entry": {
			map[string]any{"m": map[string]any{"x": "1", "y": "2"}},
			map[string]any{"m": map[string]any{"x": "1", "y": "3", "z": "4"}},
			map[string]any{"m": map[string]any{"x": "1"}},
		},
		"a map without an equal entry is not taken": {map[string]any{"m": map[string]any{"x": "1"}}, map[string]any{"m": map[string]any{"x": "2"}}, map[string]any{}},
		"lists are taken as a whole":                {map[string]any{"l": []any{"a", "b"}}, map[string]any{"l": []any{"a", "b"}}, map[string]any{"l": []any{"a", "b"}}},
		"a list that differs is not taken":          {map[string]any{"l": []any{"a", "b"}}, map[string]any{"l": []any{"a"}}, map[string]any{}},
		"what is not there is not taken":            {map[string]any{"a": "x"}, map[string]any{}, map[string]any{}},
	} {
		t.Run(behaviour, func(t *testing.T) {
			if diff := cmp.Diff(c.want, equalPart(c.desired, c.live)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("all of an object equals itself", rapid.MakeCheck(func(t *rapid.T) {
		labels := rapid.MapOf(rapid.String(), rapid.StringMatching(`[a-z]{1,5}`)).Draw(t, "labels")
		object := map[string]any{"kind": "x"}
		if len(labels) > 0 {
			entries := map[string]any{}
			for key, value := range labels {
				entries[key] = value
			}
			object["labels"] = entries
		}
		if diff := cmp.Diff(object, equalPart(object, object)); diff != "" {
			t.Fatal(diff)
		}
	}))
}

func TestOwnedKeysAreThoseOfOurManager(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	c := &Client{config: Config{FieldManager: "us"}}
	object := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		entry("us", `{"f:metadata":{"f:labels":{"f:team":{}},"f:annotations":{"f:a/b":{}}},"f:value":{}}`),
		entry("us/1234", `{"f:metadata":{"f:labels":{".":{},"f:app.kubernetes.io/name":{}}}}`),
		entry("usher", `{"f:metadata":{"f:labels":{"f:theirs":{}}}}`),
	}}
	for field, want := range map[string]map[string]bool{
		"labels":      {"team": true, "app.kubernetes.io/name": true},
		"annotations": {"a/b": true},
	} {
		got, err := OwnedKeys(c, object, field)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", field, diff)
		}
	}
	object.ManagedFields = []metav1.ManagedFieldsEntry{entry("us", `{"f:metadata`)}
	if _, err := OwnedKeys(c, object, "labels"); err == nil {
		t.Error("damaged managedFields are accepted")
	}
}

func TestExclusivePatchTakesFromOthersOnlyWhatWeApplied(t *testing.T) {
	live := &metav1.ObjectMeta{ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "us", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:description":{},"f:metadata":{"f:labels":{"f:team":{}}}}`)},
		{Manager: "all-ours", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:description":{}}`)},
		{Manager: "part", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:team":{},"f:theirs":{}}}}`)},
		{Manager: "status", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:description":{}}`)},
	}}
	patch, err := exclusivePatch(live, "us")
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"op":"replace","path":"/metadata/managedFields","value":[` +
		`{"manager":"us","operation":"Apply","fieldsV1":{"f:description":{},"f:metadata":{"f:labels":{"f:team":{}}}}},` +
		`{"manager":"part","operation":"Update","fieldsV1":{"f:metadata":{"f:labels":{"f:theirs":{}}}}},` +
		`{"manager":"status","operation":"Update","fieldsV1":{"f:description":{}},"subresource":"status"}]},` +
		`{"op":"replace","path":"/metadata/resourceVersion","value":"7"}]`
	if diff := cmp.Diff(want, string(patch)); diff != "" {
		t.Error(diff)
	}
	live.ManagedFields = live.ManagedFields[:1]
	if patch, err = exclusivePatch(live, "us"); patch != nil || err != nil {
		t.Errorf("got %s, %v where nobody shares anything", patch, err)
	}
}
