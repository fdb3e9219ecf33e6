package provider

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// apiServer answers LISTs from objects by path, and refuses those that are denied.
type apiServer struct {
	*httptest.Server
	mu      sync.Mutex
	lists   map[string]any
	denied  []string
	silent  chan struct{} // requests wait until it is closed; nil: they do not
	queries []string
}

// newAPIServer has the tutorial's three nodes, with the low job on them.
func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{lists: map[string]any{
		"/api/v1/nodes": &corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []corev1.Node{
			*forecasttest.Node("node-1", "3.92"), *forecasttest.Node("node-2", "3.92"), *forecasttest.Node("node-3", "3.92"),
		}},
		"/api/v1/pods": &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{
			*forecasttest.Master(forecasttest.Pod("low-prio-job-x", "node-3", "1", 1000000, 0), "low-prio-job"),
			*forecasttest.Worker(forecasttest.Pod("low-prio-job-worker-0", "node-1", "3", 1000, 2), "low-prio-job", 0),
			*forecasttest.Worker(forecasttest.Pod("low-prio-job-worker-1", "node-2", "3", 1000, 4), "low-prio-job", 1),
		}},
		"/apis/scheduling.k8s.io/v1/priorityclasses": &schedulingv1.PriorityClassList{
			TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClassList"},
			Items:    []schedulingv1.PriorityClass{*forecasttest.Class("high", 1000000), *forecasttest.Class("low", 1000)},
		},
		"/apis/policy/v1/poddisruptionbudgets": map[string]any{"apiVersion": "policy/v1", "kind": "PodDisruptionBudgetList", "items": []any{}},
		"/api/v1/namespaces":                   map[string]any{"apiVersion": "v1", "kind": "NamespaceList", "items": []any{map[string]any{"metadata": map[string]any{"name": "default"}}}},
	}}
	for group, kinds := range map[string][]string{
		"/api/v1":                               {"Service", "ReplicationController", "LimitRange", "ResourceQuota", "PersistentVolume", "PersistentVolumeClaim"},
		"/apis/apps/v1":                         {"ReplicaSet", "StatefulSet"},
		"/apis/batch/v1":                        {"Job"},
		"/apis/node.k8s.io/v1":                  {"RuntimeClass"},
		"/apis/resource.k8s.io/v1":              {"DeviceClass", "ResourceSlice", "ResourceClaim", "ResourceClaimTemplate"},
		"/apis/storage.k8s.io/v1":               {"StorageClass", "CSINode", "CSIDriver", "VolumeAttachment"},
		"/apis/admissionregistration.k8s.io/v1": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"},
	} {
		for _, kind := range kinds {
			plural := strings.ToLower(kind) + "s"
			if strings.HasSuffix(kind, "Class") {
				plural = strings.ToLower(kind) + "es"
			}
			apiVersion := strings.TrimPrefix(strings.TrimPrefix(group, "/apis/"), "/api/")
			s.lists[group+"/"+plural] = map[string]any{"apiVersion": apiVersion, "kind": kind + "List", "items": []any{}}
		}
	}
	s.lists["/version"] = version.Info{GitVersion: "v1.36.1"}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then it is seen that a client has gone
	s.mu.Lock()
	s.queries = append(s.queries, r.URL.Path)
	list, known := s.lists[r.URL.Path]
	isDenied, silent := slices.Contains(s.denied, r.URL.Path), s.silent
	s.mu.Unlock()
	if silent != nil {
		select {
		case <-silent:
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case isDenied:
		w.WriteHeader(http.StatusForbidden)
		list = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}
	case !known:
		w.WriteHeader(http.StatusNotFound)
		list = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
	}
	_ = json.NewEncoder(w).Encode(list) // a client that has gone misses nothing
}

// planning is a process of the provider that plans against a cluster.
func planning(host, mode string, timeout time.Duration) *connection {
	return newConnection(cluster.Config{Host: host}, nil, forecastConfig{mode: mode, timeout: timeout})
}

func trainingJobNamed(t *testing.T, name, class string) forecast.Job {
	t.Helper()
	job, err := forecast.OfTrainingJob(forecasttest.TrainingJob(name, class, class, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// ofOne is the only diagnostic that there should be.
func ofOne(t *testing.T, diags diag.Diagnostics, severity diag.Severity, wantText ...string) {
	t.Helper()
	if len(diags) != 1 || diags[0].Severity() != severity {
		t.Fatalf("got %v", diags)
	}
	text := diags[0].Summary() + "\n" + diags[0].Detail()
	for _, sentence := range wantText {
		if !strings.Contains(text, sentence) {
			t.Errorf("%q is missing:\n%s", sentence, text)
		}
	}
}

func TestAForecastIsAWarning(t *testing.T) {
	s := newAPIServer(t)
	c := planning(s.URL, forecastWarn, patience.Medium)
	ofOne(t, c.forecast(t.Context(), trainingJobNamed(t, "high-prio-job", "high"), ""), diag.SeverityWarning, "high-prio-job will preempt",
		"evicts  default/low-prio-job-worker-1 (priority 1000) on node-2: job low-prio-job continues with 1 of 2 workers",
		"Based on the cluster state at", "nothing is reserved.")
	ofOne(t, c.forecast(t.Context(), trainingJobNamed(t, "next", "high"), ""), diag.SeverityWarning, "next will preempt", "low-prio-job-worker-0", "counting high-prio-job, planned before it")
	count := map[string]int{}
	for _, path := range s.queries {
		if count[path]++; count[path] > 1 && !strings.Contains(path, "configmaps") && !strings.HasSuffix(path, "/namespaces/default/pods") {
			t.Errorf("%s was requested %d times", path, count[path])
		}
	}
}

func TestAJobThatIsPlannedTwiceIsForecastOnce(t *testing.T) {
	c := planning(newAPIServer(t).URL, forecastError, patience.Medium)
	job := trainingJobNamed(t, "high-prio-job", "high")
	if first := c.forecast(t.Context(), job, ""); len(first) != 1 {
		t.Errorf("got %v", first)
	}
	if again := c.forecast(t.Context(), job, ""); len(again) > 0 {
		t.Errorf("got %v", again)
	}
}

func TestForecastsAreSilentWhileSomethingIsApplied(t *testing.T) {
	for _, mode := range []string{forecastWarn, forecastError} {
		s := newAPIServer(t)
		c := planning(s.URL, mode, patience.Medium)
		c.applies()
		if diags := c.forecast(t.Context(), trainingJobNamed(t, "high-prio-job", "high"), ""); len(diags) > 0 || len(s.queries) > 0 {
			t.Errorf("%s: got %v after %q", mode, diags, s.queries)
		}
	}
}

func TestForecastsThatAreOffAskNothing(t *testing.T) {
	s := newAPIServer(t)
	if diags := planning(s.URL, forecastOff, patience.Medium).forecast(t.Context(), trainingJobNamed(t, "high-prio-job", "high"), ""); len(diags) > 0 || len(s.queries) > 0 {
		t.Errorf("got %v after %q", diags, s.queries)
	}
}

func TestAGateRefusesEvictionsOnly(t *testing.T) {
	s := newAPIServer(t)
	c := planning(s.URL, forecastError, patience.Medium)
	ofOne(t, c.forecast(t.Context(), trainingJobNamed(t, "high-prio-job", "high"), ""), diag.SeverityError, "high-prio-job will preempt",
		`Rejected because of forecast = "error": evicts default/low-prio-job-worker-1 of training job low-prio-job.`)
	c = planning(s.URL, forecastError, patience.Medium)
	ofOne(t, c.forecast(t.Context(), trainingJobNamed(t, "another", "low"), ""), diag.SeverityWarning, "another will wait") // it evicts no other job
	big := forecasttest.TrainingJob("big", "high", "high", 1, 1)
	big.Workers.Resources.Requests = forecasttest.CPU("40")
	job, err := forecast.OfTrainingJob(big)
	if err != nil {
		t.Fatal(err)
	}
	c = planning(s.URL, forecastError, patience.Medium)
	ofOne(t, c.forecast(t.Context(), job, ""), diag.SeverityError, "big can never run", "it can never run")
}

func TestAClusterThatHadNoTimeToRespondIsNotUnreachable(t *testing.T) {
	s := newAPIServer(t)
	c := planning(s.URL, forecastError, patience.Medium)
	c.forecasts.spent = patience.Medium // by computing
	ofOne(t, c.forecast(t.Context(), trainingJobNamed(t, "big", "high"), ""), diag.SeverityError, "earlier forecasts of this plan used up forecast_timeout")
	if c.planned.isUnreachable() {
		t.Error("the cluster was not asked, and counts as unreachable")
	}
}

func TestWhereNoForecastCanBeMade(t *testing.T) {
	hanging := make(chan struct{})
	t.Cleanup(func() { close(hanging) })
	for reason, c := range map[string]struct {
		prepare  func(*apiServer)
		host     string
		timeout  time.Duration
		wantText []string
	}{
		"the cluster does not answer in time": {prepare: func(s *apiServer) { s.silent = hanging }, timeout: 50 * time.Millisecond, wantText: []string{"did not respond within forecast_timeout"}},
		"no server listens":                   {host: "https://127.0.0.1:1", timeout: patience.Medium, wantText: []string{"cannot be reached"}},
		"verbs are missing": {prepare: func(s *apiServer) {
			s.denied = []string{"/api/v1/pods", "/apis/scheduling.k8s.io/v1/priorityclasses"}
		}, timeout: patience.Medium, wantText: []string{"not allowed: list pods, list priorityclasses.scheduling.k8s.io (in the whole cluster)", "elastic-forecaster"}},
	} {
		t.Run(reason, func(t *testing.T) {
			s := newAPIServer(t)
			if c.prepare != nil {
				c.prepare(s)
			}
			host := c.host
			if host == "" {
				host = s.URL
			}
			warning := planning(host, forecastWarn, c.timeout)
			ofOne(t, warning.forecast(t.Context(), trainingJobNamed(t, "first", "high"), ""), diag.SeverityWarning, append(c.wantText, "There is no forecast for first")...)
			if more := warning.forecast(t.Context(), trainingJobNamed(t, "second", "high"), ""); len(more) > 0 {
				t.Errorf("it is reported again: %v", more)
			}
			gate := planning(host, forecastError, c.timeout)
			for _, name := range []string{"first", "second"} {
				ofOne(t, gate.forecast(t.Context(), trainingJobNamed(t, name, "high"), ""), diag.SeverityError, append(c.wantText, "No forecast for "+name)...)
			}
		})
	}
}

func TestAJobThatIsNotKnownYetIsNotCounted(t *testing.T) {
	s := newAPIServer(t)
	c := planning(s.URL, forecastWarn, patience.Medium)
	unknown := forecast.Job{Noun: "training job", Namespace: "default", Name: "unknown"}
	ofOne(t, c.forecast(t.Context(), unknown, "its workers are not known until apply"), diag.SeverityWarning, "There is no forecast for unknown", "its workers are not known until apply.")
	ofOne(t, c.forecast(t.Context(), trainingJobNamed(t, "high-prio-job", "high"), ""), diag.SeverityWarning, "approximate: unknown is planned before it, not known until apply, and not counted")
	gate := planning(s.URL, forecastError, patience.Medium)
	ofOne(t, gate.forecast(t.Context(), unknown, "its workers are not known until apply"), diag.SeverityError, "its workers are not known until apply")
}

func TestAPlannedClassCounts(t *testing.T) {
	c := planning(newAPIServer(t).URL, forecastWarn, patience.Medium)
	c.plansObject(reference{kind: aPriorityClass, name: "urgent"}, forecasttest.Class("urgent", 2000000))
	ofOne(t, c.forecast(t.Context(), trainingJobNamed(t, "high-prio-job", "urgent"), ""), diag.SeverityWarning, "high-prio-job will preempt", "evicts  default/low-prio-job-worker-1")
}

func TestAPlannedTopologyCounts(t *testing.T) {
	s := newAPIServer(t)
	for i := range s.lists["/api/v1/nodes"].(*corev1.NodeList).Items {
		node := &s.lists["/api/v1/nodes"].(*corev1.NodeList).Items[i]
		node.Labels = map[string]string{corev1.LabelHostname: node.Name, "rack": "r" + strings.TrimPrefix(node.Name, "node-")}
	}
	for _, kind := range []string{"ClusterQueue", "LocalQueue", "ResourceFlavor", "Cohort", "AdmissionCheck", "WorkloadPriorityClass", "Topology", "Workload"} {
		plural := strings.ToLower(kind) + "s"
		switch kind {
		case "WorkloadPriorityClass":
			plural = strings.ToLower(kind) + "es"
		case "Topology":
			plural = "topologies"
		}
		s.lists["/apis/"+kueue.SchemeGroupVersion.String()+"/"+plural] = map[string]any{"apiVersion": kueue.SchemeGroupVersion.String(), "kind": kind + "List", "items": []any{}}
	}
	c := planning(s.URL, forecastWarn, patience.Medium)
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	resources := kueue.ResourceGroup{CoveredResources: []corev1.ResourceName{"cpu", "memory"}, Flavors: []kueue.FlavorQuotas{{
		Name: "racked", Resources: []kueue.ResourceQuota{{Name: "cpu", NominalQuota: resource.MustParse("9")}, {Name: "memory", NominalQuota: resource.MustParse("90Gi")}},
	}}}
	local := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "default"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "racked"}}
	for name, object := range map[reference]cluster.Object{
		{kind: aResourceFlavor, name: "racked"}: &kueue.ResourceFlavor{ObjectMeta: named("racked"), Spec: kueue.ResourceFlavorSpec{TopologyName: new(kueue.TopologyReference("racks"))}},
		{kind: aClusterQueue, name: "racked"}: &kueue.ClusterQueue{ObjectMeta: named("racked"), Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{}, ResourceGroups: []kueue.ResourceGroup{resources},
		}},
		{kind: aLocalQueue, namespace: "default", name: "q"}: local,
		{kind: aTopology, name: "racks"}:                     &kueue.Topology{ObjectMeta: named("racks"), Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: "rack"}}}},
	} {
		c.plansObject(name, object)
	}
	d := forecasttest.TrainingJob("digits", "low", "low", 1, 1)
	d.Queue = &trainingjob.Queue{Name: "q", Topology: &trainingjob.Topology{Required: "rack"}}
	job, err := forecast.OfTrainingJob(d)
	if err != nil {
		t.Fatal(err)
	}
	// The master of 1 CPU and the worker of 3 would be in one rack, each of which has a node of 3.92.
	ofOne(t, c.forecast(t.Context(), job, ""), diag.SeverityWarning, `topology "racks"`)
}

func codes(texts ...string) types.List {
	list, _ := types.ListValueFrom(context.Background(), types.StringType, texts)
	return list
}

func TestTheSettingOfForecasts(t *testing.T) {
	for given, c := range map[string]struct {
		model configModel
		want  forecastConfig
		fails bool
	}{
		"nothing is a warning within ten seconds":          {configModel{}, forecastConfig{mode: forecastWarn, timeout: 10 * time.Second}, false},
		"a mode and a time":                                {configModel{Forecast: types.StringValue("error"), ForecastTimeout: types.StringValue("500ms")}, forecastConfig{mode: forecastError, timeout: 500 * time.Millisecond}, false},
		"a time without a unit is refused":                 {configModel{ForecastTimeout: types.StringValue("3")}, forecastConfig{}, true},
		"no time at all is refused":                        {configModel{ForecastTimeout: types.StringValue("0s")}, forecastConfig{}, true},
		"reasons are accepted by their codes":              {configModel{ForecastAcceptedReasons: codes("too-many-choices")}, forecastConfig{mode: forecastWarn, timeout: 10 * time.Second, accepted: []forecast.ReasonCode{forecast.TooManyChoices}}, false},
		"a code that does not exist is refused":            {configModel{ForecastAcceptedReasons: codes("to-many-choices")}, forecastConfig{}, true},
		"a mode that is not known yet might be the gate's": {configModel{Forecast: types.StringUnknown()}, forecastConfig{}, true},
	} {
		got, diags := resolveForecast(c.model)
		if diags.HasError() != c.fails || !c.fails && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, %v", given, got, diags)
		}
	}
}
