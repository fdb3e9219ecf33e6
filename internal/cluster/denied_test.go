package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestARequestLeadsToTheRoleThatItBelongsTo(t *testing.T) {
	for want, requests := range map[string][]denial{
		"elastic-user": {
			{verb: "get", group: "batch", resource: "jobs", namespace: "ml"},
			{verb: "create", group: "batch", resource: "jobs", namespace: "ml"},
			{verb: "patch", resource: "configmaps", namespace: "ml"},
			{verb: "get", resource: "pods/log", namespace: "ml"},
			{verb: "create", resource: "secrets", namespace: "ml"},
			{verb: "watch", resource: "pods", namespace: "ml"},
		},
		"elastic-accounts": {
			{verb: "delete", group: "rbac.authorization.k8s.io", resource: "roles", namespace: "ml"},
			{verb: "create", resource: "serviceaccounts", namespace: "ml"},
		},
		"elastic-suspender": {{verb: "patch", group: "kueue.x-k8s.io", resource: "workloads", namespace: "ml"}},
		"elastic-admin": {
			{verb: "get", group: "kueue.x-k8s.io", resource: "clusterqueues"},
			{verb: "delete", group: "kueue.x-k8s.io", resource: "clusterqueues"},
			{verb: "get", group: "kueue.x-k8s.io", resource: "localqueues", namespace: "ml"},
			{verb: "create", group: "kueue.x-k8s.io", resource: "localqueues", namespace: "ml"},
			{verb: "patch", group: "scheduling.k8s.io", resource: "priorityclasses"},
			{verb: "get", resource: "namespaces", namespace: "kube-system"},
		},
		"elastic-viewer":     {{verb: "list", resource: "nodes"}, {verb: "list", resource: "pods"}},
		"elastic-forecaster": {{verb: "list", group: "policy", resource: "poddisruptionbudgets"}},
		"":                   {{verb: "delete", resource: "nodes"}},
	} {
		for _, d := range requests {
			got := ""
			if role := roleFor(d); role != nil {
				got = role.Name
			}
			if got != want {
				t.Errorf("%+v leads to %q, not to %q", d, got, want)
			}
		}
	}
}

func TestMissingRightsAreThoseOfTheRoleThatNobodyGave(t *testing.T) {
	role := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "create"}},
		{APIGroups: []string{""}, Resources: []string{"pods", "pods/log"}, Verbs: []string{"get"}},
	}}
	for name, c := range map[string]struct {
		given []rbacv1.PolicyRule
		want  []string
	}{
		"nothing is given":    {nil, []string{"get, create of jobs.batch", "get of pods", "get of pods/log"}},
		"some is given":       {[]rbacv1.PolicyRule{{APIGroups: []string{"batch"}, Resources: []string{"*"}, Verbs: []string{"get"}}}, []string{"create of jobs.batch", "get of pods", "get of pods/log"}},
		"everything is given": {[]rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, missingOf(role, c.given)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEveryRefusalOfAnOperationHasTheSameRemedy reads and makes a job as somebody who may do neither, and may read
// pods.
func TestEveryRefusalOfAnOperationHasTheSameRemedy(t *testing.T) {
	reviews := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/selfsubjectrulesreviews") {
			reviews++
			_ = json.NewEncoder(w).Encode(authorizationv1.SelfSubjectRulesReview{
				TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectRulesReview", APIVersion: "authorization.k8s.io/v1"},
				Status: authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{
					{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}},
					{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, ResourceNames: []string{"another"}, Verbs: []string{"*"}},
				}},
			})
			return
		}
		verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create"}[r.Method]
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,`+
			`"message":"jobs.batch is forbidden: User \"bob\" cannot %s resource \"jobs\" in API group \"batch\" in the namespace \"ml\""}`, verb)
	}))
	defer server.Close()
	client, err := New(Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	jobs := client.Kubernetes().BatchV1().Jobs("ml")
	_, read := Get(t.Context(), client, jobs, "x")
	_, made := Create(t.Context(), client, jobs, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	var remedies []string
	for verb, err := range map[string]error{"get": read, "create": made} {
		_, detail := Explain(err)
		first, remedy, _ := strings.Cut(detail, ". ")
		if first != fmt.Sprintf(`User "bob" may not %s jobs.batch in namespace ml (403 Forbidden)`, verb) {
			t.Error(first)
		}
		for _, wantText := range []string{
			"get, list, watch, create, patch, delete of jobs.batch\n", "patch, delete of pods\n", "get of pods/log\n",
			"kubectl create rolebinding bob-elastic-user --clusterrole=elastic-user --user=bob --namespace=ml\n",
			`    - {apiGroups: ["batch"], resources: [jobs], verbs: [get, list, watch, create, patch, delete]}`,
		} {
			if !strings.Contains(remedy, wantText) {
				t.Errorf("does not say %q:\n%s", wantText, detail)
			}
		}
		remedies = append(remedies, remedy)
	}
	if remedies[0] != remedies[1] {
		t.Errorf("the remedies differ:\n%s\n\n%s", remedies[0], remedies[1])
	}
	if reviews != 1 {
		t.Errorf("the rights were asked for %d times", reviews)
	}
}
