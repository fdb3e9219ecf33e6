package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
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

func TestWrittenByOthersIsWhatWeDoNotOwn(t *testing.T) {
	at := metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	entry := func(manager, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, Time: &at, FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	c := &Client{config: Config{FieldManager: "us"}}
	object := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		entry("us", "", `{"f:spec":{"f:both":{},"f:outer":{"f:inner":{}},"f:list":{"k:{\"name\":\"a\"}":{"f:value":{}}}}}`),
		entry("us/1234", "", `{"f:metadata":{"f:labels":{"f:ours":{}}}}`),
		entry("kubectl-edit", "", `{"f:metadata":{"f:labels":{".":{},"f:a.b/team":{},"f:ours":{}}},"f:spec":{"f:both":{},"f:theirs":{},"f:outer":{}}}`),
		entry("usher", "", `{"f:spec":{"f:list":{"k:{\"name\":\"b\"}":{".":{},"f:value":{}}},"f:struct":{".":{},"f:x":{}}}}`),
		entry("kueue", "status", `{"f:status":{"f:phase":{}}}`),
	}}
	got, err := WrittenByOthers(c, object)
	if err != nil {
		t.Fatal(err)
	}
	want := []Written{
		{".metadata.labels.a.b/team", "kubectl-edit", at.Time},
		{".spec.theirs", "kubectl-edit", at.Time},
		{`.spec.list[name="b"].value`, "usher", at.Time},
		{".spec.struct.x", "usher", at.Time},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	object.ManagedFields = []metav1.ManagedFieldsEntry{entry("them", "", `{"f:metadata`)}
	if _, err := WrittenByOthers(c, object); err == nil {
		t.Error("damaged managedFields are accepted")
	}
}
