package snapshot_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/snapshot"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/manifest"
)

// answers is an API server that answers each kind of request with a status, or echoes it with status 200.
type answers map[string]metav1.Status

func (a answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	plural := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	account := ""
	if strings.Contains(string(body), "trainer") {
		account = " with an account"
	}
	w.Header().Set("Content-Type", "application/json")
	status, refused := a[r.Method+" "+plural+account]
	if !refused {
		status, refused = a[r.Method+" "+plural]
	}
	switch {
	case r.Method != http.MethodGet && r.URL.Query().Get("dryRun") != "All":
		status = metav1.Status{Code: http.StatusTeapot, Message: "not a dry run"}
	case !refused && plural == "pods": // which are sent in a binary form
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "Pod"}) // a client that has gone misses nothing
		return
	case !refused:
		_, _ = w.Write(body)
		return
	}
	status.TypeMeta, status.Status = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, metav1.StatusFailure
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

// dryRun is what a dry run of a Job adds to it.
func (a answers) dryRun(t *testing.T) forecast.Job {
	t.Helper()
	httpServer := httptest.NewServer(a)
	t.Cleanup(httpServer.Close)
	client, err := cluster.New(cluster.Config{Host: httpServer.URL, Token: "token"})
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "train", "namespace": "default"},
		"spec": map[string]any{"parallelism": int64(2), "template": map[string]any{"spec": map[string]any{
			"serviceAccountName": "trainer", "containers": []any{map[string]any{"name": "main", "image": "any"}},
		}}},
	}}
	contents, err := manifest.NewSet([]*unstructured.Unstructured{object}, manifest.Given{Namespace: "default"}).Read(object)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot.DryRun(t.Context(), client, contents.Jobs)[0]
}

func TestADryRunOfAnObjectTellsWhatTheAPIServerRefuses(t *testing.T) {
	forbidden := func(message string) metav1.Status {
		return metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message}
	}
	for message, refused := range map[string]bool{
		`jobs.batch "train" is forbidden: ValidatingAdmissionPolicy 'none' denied request`:      true,
		`jobs.batch is forbidden: User "ci" cannot create resource "jobs" in API group "batch"`: false,
		`jobs.batch "train" is forbidden: exceeded quota: few`:                                  false, // which is computed
	} {
		stored := answers{"POST jobs": forbidden(message)}.dryRun(t).Stored
		if (stored != nil) != refused || refused && !strings.Contains(stored.Refusal.Message, message) {
			t.Errorf("%s: %+v", message, stored)
		}
	}
}

func TestAnObjectThatExistsIsAppliedAsADryRun(t *testing.T) {
	there := metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists, Message: "it is there"}
	stored := answers{"POST jobs": there}.dryRun(t).Stored
	if stored == nil || !stored.Exists || stored.Refusal != nil || stored.Live.GetName() != "train" {
		t.Errorf("%+v", stored)
	}
	if n, _, err := unstructured.NestedInt64(stored.Live.Object, "spec", "parallelism"); n != 2 || err != nil {
		t.Errorf("parallelism is read as %d: %v", n, err)
	}
	immutable := metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "spec.template: field is immutable"}
	stored = answers{"POST jobs": there, "PATCH train": immutable}.dryRun(t).Stored
	if stored == nil || !stored.Exists || stored.Refusal == nil || stored.Live != nil {
		t.Errorf("%+v", stored)
	}
}

func TestTheFieldsCountThatStayWhenAnObjectIsAppliedAgain(t *testing.T) {
	jobOf := func(cpu string, live *unstructured.Unstructured) forecast.Job {
		container := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}
		pod := forecast.Pod{Pod: &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}}
		return forecast.Job{Stages: []forecast.Stage{{{Pods: []forecast.Pod{pod}}}}, Stored: &forecast.Stored{Exists: true, Live: live}}
	}
	created, applied, byKubectl := &unstructured.Unstructured{}, &unstructured.Unstructured{}, &unstructured.Unstructured{}
	created.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate},
		{Manager: "forecast", Operation: metav1.ManagedFieldsOperationApply}, // the dry run itself
		{Manager: "controller", Operation: metav1.ManagedFieldsOperationApply, Subresource: "status"},
	})
	applied.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "Terraform", Operation: metav1.ManagedFieldsOperationApply}})
	byKubectl.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}"})
	for what, c := range map[string]struct {
		live        *unstructured.Unstructured
		cpu         string
		approximate int
	}{
		"one that was never applied keeps its fields":               {created, "2", 0},
		"of one that was applied before, by Terraform, it depends":  {applied, "2", 1},
		"of one that was applied before, with kubectl, it depends":  {byKubectl, "2", 1},
		"where the fields are the same, how it is applied is equal": {applied, "1", 0},
	} {
		got := snapshot.Merged(jobOf("1", c.live), jobOf(c.cpu, c.live))
		if cpu := got.Pods()[0].Spec.Containers[0].Resources.Requests.Cpu(); cpu.String() != c.cpu || len(got.Approximate) != c.approximate {
			t.Errorf("%s: %s CPU, %q", what, cpu, got.Approximate)
		}
	}
}

func TestAMissingServiceAccountIsToldApartFromOtherRefusals(t *testing.T) {
	missing := metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: `pods "forecast-x" is forbidden: error looking up service account default/trainer: serviceaccount "trainer" not found`,
	}
	pod := answers{"POST pods with an account": missing}.dryRun(t).Stages[0][0].Pods[0]
	if !strings.HasPrefix(pod.NoAccount, "error looking up service account") || !pod.Answered || pod.Refusal != nil || pod.Spec.ServiceAccountName != "trainer" {
		t.Errorf("%+v", pod)
	}
	if pod := (answers{}).dryRun(t).Stages[0][0].Pods[0]; pod.NoAccount != "" || !pod.Answered {
		t.Errorf("%+v", pod)
	}
}
