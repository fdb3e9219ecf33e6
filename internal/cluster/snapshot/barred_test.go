package snapshot_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/snapshot"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

func TestAForecastIsMadeAgainWhenAReplacementIsRejected(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web", OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}},
	}}
	made := func(of answers) (rounds int) {
		httpServer := httptest.NewServer(of)
		defer httpServer.Close()
		client, err := cluster.New(cluster.Config{Host: httpServer.URL, Token: "token"})
		if err != nil {
			t.Fatal(err)
		}
		snapshot.DryRunReplacements(t.Context(), client, &forecast.Snapshot{}, []forecast.Answer{{Replacements: []*corev1.Pod{pod}}}, func(s *forecast.Snapshot) []forecast.Answer {
			if rounds++; !s.Barred["web"] {
				t.Errorf("barred are %v", s.Barred)
			}
			return []forecast.Answer{{Replacements: []*corev1.Pod{pod}}}
		})
		return rounds
	}
	denied := metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `pods "forecast-x" is forbidden: ValidatingAdmissionPolicy 'none' denied request`}
	if rounds := made(answers{"POST pods": denied}); rounds != 1 {
		t.Errorf("a rejected pod: made again %d times", rounds)
	}
	unable := metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `pods is forbidden: User "ci" cannot create resource "pods" in API group ""`}
	if rounds := made(answers{"POST pods": unable}) + made(answers{}); rounds != 0 {
		t.Errorf("pods that are accepted, or that may not be asked about: made again %d times", rounds)
	}
}
