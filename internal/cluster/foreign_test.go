package cluster

import (
	"encoding/json"
	"slices"
	"testing"

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

func TestForeignFieldsAreThoseOfOthersThatTheBodyLacks(t *testing.T) {
	const ours = "terraform"
	for behaviour, c := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		lacks func(s *corev1.Service)
		want  []string
	}{
		"a field":                       {owns("edit", "Update", `{"f:spec":{"f:type":{}}}`), func(s *corev1.Service) { s.Spec.Type = "" }, []string{".spec.type"}},
		"only the outermost of it":      {owns("edit", "Update", `{"f:spec":{"f:sessionAffinityConfig":{".":{},"f:clientIP":{".":{},"f:timeoutSeconds":{}}}}}`), func(s *corev1.Service) { s.Spec.SessionAffinityConfig = nil }, []string{".spec.sessionAffinityConfig"}},
		"an item of a list by keys":     {owns("edit", "Update", `{"f:spec":{"f:ports":{"k:{\"port\":81,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`), func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[:1] }, []string{`.spec.ports[port=81,protocol="TCP"]`}},
		"a field of an item":            {owns("edit", "Update", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:nodePort":{}}}}}`), func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 0 }, []string{`.spec.ports[port=80,protocol="TCP"].nodePort`}},
		"an item of a list by value":    {owns("edit", "Update", `{"f:spec":{"f:externalIPs":{"v:\"1.2.3.4\"":{}}}}`), func(s *corev1.Service) { s.Spec.ExternalIPs = nil }, []string{`.spec.externalIPs[="1.2.3.4"]`}},
		"not what the body has":         {owns("edit", "Update", `{"f:spec":{"f:type":{}}}`), func(*corev1.Service) {}, nil},
		"not what is another version's": {owns("edit", "Update", `{"f:spec":{"f:oldName":{}}}`), func(*corev1.Service) {}, nil},
		"not metadata":                  {owns("edit", "Update", `{"f:metadata":{"f:labels":{"f:a":{}}}}`), func(s *corev1.Service) { s.Labels = nil }, nil},
		"not what is ours":              {owns(ours, "Apply", `{"f:spec":{"f:type":{}}}`), func(s *corev1.Service) { s.Spec.Type = "" }, nil},
		"not what we wrote creating":    {owns(ours+"/abc", "Update", `{"f:spec":{"f:type":{}}}`), func(s *corev1.Service) { s.Spec.Type = "" }, nil},
	} {
		t.Run(behaviour, func(t *testing.T) {
			live, desired := service(c.entry), service()
			c.lacks(desired)
			conflicts, err := foreignFields(live, ours, bodyOf(t, desired))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, conflict := range conflicts {
				got = append(got, conflict.Field)
				if conflict.Manager != "edit" {
					t.Errorf("manager %q", conflict.Manager)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestClaimingTakesForeignFieldsAndLeavesTheRest(t *testing.T) {
	const ours = "terraform"
	live := service(
		owns(ours, "Apply", `{"f:spec":{"f:ports":{}}}`),
		owns("edit", "Update", `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:type":{}}}`),
		owns("other", "Update", `{"f:spec":{"f:type":{}}}`),
	)
	desired := service()
	desired.Spec.Type = ""
	patch, err := claimingPatch(live, ours, bodyOf(t, desired))
	if err != nil {
		t.Fatal(err)
	}
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(patch, &operations); err != nil {
		t.Fatal(err)
	}
	var entries []metav1.ManagedFieldsEntry
	if err := json.Unmarshal(operations[0].Value, &entries); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, entry := range entries {
		got[entry.Manager] = entry.FieldsV1.GetRawString()
	}
	if len(got) != 2 || got[ours] != `{"f:spec":{"f:ports":{},"f:type":{}}}` || got["edit"] != `{"f:metadata":{"f:labels":{"f:a":{}}}}` {
		t.Errorf("got %v", got)
	}
	if operations[1].Path != "/metadata/resourceVersion" || string(operations[1].Value) != `"7"` {
		t.Errorf("the version is not that of the object: %v", operations[1])
	}
	if patch, err := claimingPatch(live, ours, bodyOf(t, service())); err != nil || patch != nil {
		t.Errorf("a patch though nothing is foreign: %s, %v", patch, err)
	}
}
