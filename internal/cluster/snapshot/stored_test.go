package snapshot_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
