package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// service is one with two ports, owned by whom the entries say; ports are a list of which each item has its owner.
func service(entries ...metav1.ManagedFieldsEntry) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "s", ResourceVersion: "7", Labels: map[string]string{"a": "b"}, ManagedFields: entries},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, SessionAffinity: corev1.ServiceAffinityClientIP,
			SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(5))}},
			Ports:                 []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, NodePort: 30080}, {Port: 81, Protocol: corev1.ProtocolTCP}},
			ExternalIPs:           []string{"1.2.3.4"},
		},
	}
}

func owns(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

func bodyOf(t *testing.T, object runtime.Object) map[string]any {
	t.Helper()
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// owned are the fields of each manager after what has to change before an apply of desired, and whether anything has
// to.
func owned(t *testing.T, live *corev1.Service, manager string, desired, prior *corev1.Service, complete bool) (map[string]string, bool) {
	t.Helper()
	var before map[string]any
	if prior != nil {
		before = bodyOf(t, prior)
	}
	body := bodyOf(t, desired)
	body["apiVersion"] = "v1"
	entries, differ, err := applyOwnership(live, manager, body, before, complete)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, entry := range entries {
		got[string(entry.Operation)+" "+entry.Manager] = entry.FieldsV1.GetRawString()
	}
	return got, differ
}

func TestAnApplyOwnsWhatItHasToRemove(t *testing.T) {
	const ours = "terraform"
	for behaviour, c := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		lacks func(s *corev1.Service)
		want  map[string]string // nil where nothing has to change
	}{
		"a field": {
			owns("edit", "Update", `{"f:spec":{"f:type":{}}}`),
			func(s *corev1.Service) { s.Spec.Type = "" },
			map[string]string{"Apply terraform": `{"f:spec":{"f:type":{}}}`},
		},
		"a field with all in it, and not its neighbour": {
			owns("edit", "Update", `{"f:spec":{"f:sessionAffinity":{},"f:sessionAffinityConfig":{".":{},"f:clientIP":{".":{},"f:timeoutSeconds":{}}}}}`),
			func(s *corev1.Service) { s.Spec.SessionAffinityConfig = nil },
			map[string]string{
				"Apply terraform": `{"f:spec":{"f:sessionAffinityConfig":{".":{},"f:clientIP":{".":{},"f:timeoutSeconds":{}}}}}`,
				"Update edit":     `{"f:spec":{"f:sessionAffinity":{}}}`,
			},
		},
		"an item of a list by keys": {
			owns("edit", "Update", `{"f:spec":{"f:ports":{"k:{\"port\":81,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`),
			func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[:1] },
			map[string]string{"Apply terraform": `{"f:spec":{"f:ports":{"k:{\"port\":81,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`},
		},
		"a field of an item": {
			owns("edit", "Update", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:nodePort":{}}}}}`),
			func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 0 },
			map[string]string{"Apply terraform": `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:nodePort":{}}}}}`},
		},
		"an item of a list by value": {
			owns("edit", "Update", `{"f:spec":{"f:externalIPs":{"v:\"1.2.3.4\"":{}}}}`),
			func(s *corev1.Service) { s.Spec.ExternalIPs = nil },
			map[string]string{"Apply terraform": `{"f:spec":{"f:externalIPs":{"v:\"1.2.3.4\"":{}}}}`},
		},
		"a label that was managed": {
			owns("edit", "Update", `{"f:metadata":{"f:labels":{"f:a":{},"f:theirs":{}}}}`),
			func(s *corev1.Service) { s.Labels = nil },
			map[string]string{"Apply terraform": `{"f:metadata":{"f:labels":{"f:a":{}}}}`, "Update edit": `{"f:metadata":{"f:labels":{"f:theirs":{}}}}`},
		},
		"not a label that never was": {owns("edit", "Update", `{"f:metadata":{"f:labels":{"f:theirs":{}}}}`), func(*corev1.Service) {}, nil},
		"not what the body has":      {owns("edit", "Update", `{"f:spec":{"f:type":{}}}`), func(*corev1.Service) {}, nil},
		"not another version's":      {owns("edit", "Update", `{"f:spec":{"f:oldName":{}}}`), func(*corev1.Service) {}, nil},
		"not what is ours":           {owns(ours, "Apply", `{"f:spec":{"f:type":{}}}`), func(s *corev1.Service) { s.Spec.Type = "" }, nil},
		"what we wrote creating": {
			owns(ours+"/abc", "Update", `{"f:spec":{"f:type":{}}}`),
			func(s *corev1.Service) { s.Spec.Type = "" },
			map[string]string{"Apply terraform": `{"f:spec":{"f:type":{}}}`},
		},
	} {
		t.Run(behaviour, func(t *testing.T) {
			live, desired := service(c.entry), service()
			live.Labels["theirs"] = "x"
			c.lacks(desired)
			got, differ := owned(t, live, ours, desired, service(), true)
			if differ != (c.want != nil) {
				t.Errorf("has to change: %t", differ)
			}
			if c.want != nil {
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestAnApplyOfAPartLeavesOthersFieldsTheirs(t *testing.T) {
	live, desired := service(owns("edit", "Update", `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:type":{}}}`)), service()
	desired.Spec.Type, desired.Labels = "", nil
	if got, differ := owned(t, live, "terraform", desired, nil, false); differ {
		t.Errorf("ownership changes to %v", got)
	}
}

func TestClaimsBecomePartOfWhatWasApplied(t *testing.T) {
	live := service(
		owns("terraform", "Apply", `{"f:spec":{"f:ports":{}}}`),
		owns("edit", "Update", `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:type":{}}}`),
		owns("other", "Update", `{"f:spec":{"f:type":{}}}`),
	)
	desired := service()
	desired.Spec.Type = ""
	got, _ := owned(t, live, "terraform", desired, nil, true)
	want := map[string]string{"Apply terraform": `{"f:spec":{"f:ports":{},"f:type":{}}}`, "Update edit": `{"f:metadata":{"f:labels":{"f:a":{}}}}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
