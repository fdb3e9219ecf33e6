package snapshot_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/snapshot"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// server answers every LIST with nothing, but for the plural names that are refused or unknown, and records the
// requests.
type server struct {
	mu              sync.Mutex
	requested       map[string]url.Values
	denied, unknown []string
	objects         map[string]any // that a GET answers, by name
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	plural := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	s.mu.Lock()
	s.requested[plural] = r.URL.Query()
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	status := func(code int, reason metav1.StatusReason) any {
		w.WriteHeader(code)
		return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: reason, Code: int32(code)} //nolint:gosec // an HTTP status
	}
	var answer any = map[string]any{"items": []any{}}
	object, there := s.objects[plural]
	switch {
	case there:
		answer = object
	case slices.Contains(s.denied, plural):
		answer = status(http.StatusForbidden, metav1.StatusReasonForbidden)
	case slices.Contains(s.unknown, plural): // as an API server answers for a path that it does not have
		w.Header().Set("Content-Type", "text/plain")
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	case s.objects != nil && strings.HasPrefix(plural, "kueue-"):
		answer = status(http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.URL.Path == "/version":
		answer = version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.1"}
	}
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone misses nothing
}

func clientOf(t *testing.T, s *server) *cluster.Client {
	t.Helper()
	s.requested = map[string]url.Values{}
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	client, err := cluster.New(cluster.Config{Host: listening.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestASnapshotIsOneListOfEachKindFromTheCache(t *testing.T) {
	s := &server{}
	client := clientOf(t, s)
	if _, err := snapshot.Read(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.ReadQueues(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.requested["version"]; !ok {
		t.Error("the version of Kubernetes was not asked for")
	}
	if _, ok := s.requested["kueue-manager-config"]; !ok {
		t.Error("Kueue's configuration was not asked for")
	}
	delete(s.requested, "version")
	delete(s.requested, "kueue-manager-config")
	delete(s.requested, "kueue-controller-manager")
	if len(s.requested) != 33 {
		t.Errorf("asked for %d kinds: %v", len(s.requested), s.requested)
	}
	for plural, query := range s.requested {
		if query.Get("resourceVersion") != "0" || query.Get("limit") != "" {
			t.Errorf("%s was asked for with %v", plural, query)
		}
	}
	if selector := s.requested["pods"].Get("fieldSelector"); selector != "status.phase!=Succeeded,status.phase!=Failed" {
		t.Errorf("pods were selected by %q", selector)
	}
}

func TestEveryMissingVerbIsNamed(t *testing.T) {
	s := &server{denied: []string{"pods", "nodes", "workloads", "cohorts"}}
	client := clientOf(t, s)
	for want, read := range map[string]func() error{
		"not allowed: list nodes, list pods (in the whole cluster)": func() error {
			_, err := snapshot.Read(t.Context(), client)
			return err
		},
		"not allowed: list cohorts.kueue.x-k8s.io, list workloads.kueue.x-k8s.io (in the whole cluster)": func() error {
			_, err := snapshot.ReadQueues(t.Context(), client)
			return err
		},
	} {
		var forbidden *snapshot.ForbiddenError
		if err := read(); !errors.As(err, &forbidden) || forbidden.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestWhatAForecastCanGoWithoutIsNamed(t *testing.T) {
	client := clientOf(t, &server{denied: []string{"poddisruptionbudgets", "namespaces"}})
	s, err := snapshot.Read(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(s.Unread, func(a, b forecast.Unread) int { return strings.Compare(a.Verb, b.Verb) })
	want := []forecast.Unread{{Kind: forecast.Namespaces, Verb: "list namespaces"}, {Kind: forecast.Budgets, Verb: "list poddisruptionbudgets.policy"}}
	if !slices.Equal(s.Unread, want) {
		t.Errorf("got %v", s.Unread)
	}
}

func TestAClusterWithoutKueueIsDistinguishedFromOneThatDeniesAccess(t *testing.T) {
	all := []string{"clusterqueues", "localqueues", "resourceflavors", "cohorts", "admissionchecks", "workloadpriorityclasses", "workloads"}
	if _, err := snapshot.ReadQueues(t.Context(), clientOf(t, &server{unknown: all})); !errors.Is(err, snapshot.ErrNoKueue) {
		t.Errorf("got %v", err)
	}
}

func TestJobsThatCannotBeReadAreAnErrorAndHiddenOnesAreLeftOut(t *testing.T) {
	names := []types.NamespacedName{{Namespace: "default", Name: "train"}}
	for _, c := range []struct {
		code   int
		reason metav1.StatusReason
		fails  bool
	}{
		{http.StatusNotFound, metav1.StatusReasonNotFound, false},
		{http.StatusForbidden, metav1.StatusReasonForbidden, false},
		{http.StatusBadRequest, metav1.StatusReasonBadRequest, true},
	} {
		status := metav1.Status{Code: int32(c.code), Reason: c.reason} //nolint:gosec // an HTTP status
		httpServer := httptest.NewServer(answers{"GET " + trainingjob.ConfigMapName("train"): status})
		client, err := cluster.New(cluster.Config{Host: httpServer.URL})
		if err != nil {
			t.Fatal(err)
		}
		if known, err := snapshot.ReadJobs(t.Context(), client, names); len(known) != 0 || (err != nil) != c.fails {
			t.Errorf("%s: %v, %v", c.reason, known, err)
		}
		httpServer.Close()
	}
}
