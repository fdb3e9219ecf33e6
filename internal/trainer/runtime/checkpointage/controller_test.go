package checkpointage

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/checkpointage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	now  = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	rule = checkpointage.Rule{Step: 5 * time.Minute, Max: 24, Hold: time.Minute}
)

// reporting is an object with a controller and a report; "-" is none of either.
func reporting(uid, controller, report string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	if controller != "-" {
		o.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(controller), Controller: new(true)}}
	}
	if report != "-" {
		o.Annotations = map[string]string{trainingjob.AnnotationLastCheckpoint: report}
	}
	return o
}

// workload holds quota since an hour, with the given owners.
func workload(owners ...string) *kueue.Workload {
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "ns", UID: "w-uid", Annotations: map[string]string{}}}
	for _, owner := range owners {
		w.OwnerReferences = append(w.OwnerReferences, metav1.OwnerReference{UID: types.UID(owner)})
	}
	for _, condition := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))})
	}
	return w
}

func TestAReportCountsForTheWorkloadOfItsJob(t *testing.T) {
	ago := func(d time.Duration) string { return now.Add(-d).Format(time.RFC3339) }
	for name, c := range map[string]struct {
		objects []metav1.Object
		change  func(*kueue.Workload)
		want    int32
		left    bool // alone
	}{
		"of the Job":                 {objects: []metav1.Object{reporting("job", "-", ago(20*time.Minute))}, want: 4},
		"of a pod of the Job":        {objects: []metav1.Object{reporting("p", "job", ago(20*time.Minute)), reporting("q", "job", "-")}, want: 4},
		"of the newest of two pods":  {objects: []metav1.Object{reporting("p", "job", ago(40*time.Minute)), reporting("q", "job", ago(20*time.Minute))}, want: 4},
		"of a pod of a JobSet's Job": {objects: []metav1.Object{reporting("p", "part", ago(20*time.Minute)), reporting("part", "job", "-")}, want: 4},
		"of the Job of a pod with a Workload of its own": {
			objects: []metav1.Object{reporting("p", "master", "-"), reporting("master", "-", ago(20*time.Minute))},
			change:  func(w *kueue.Workload) { w.OwnerReferences[0].UID = "p" }, want: 4,
		},
		"of the Workload": {change: func(w *kueue.Workload) {
			w.Annotations[trainingjob.AnnotationLastCheckpoint] = ago(20 * time.Minute)
		}, want: 4},
		"without a checkpoint yet": {objects: []metav1.Object{reporting("job", "-", "")}, want: 12},
		"of nobody":                {objects: []metav1.Object{reporting("other", "-", ago(time.Hour))}, left: true},
		"that is no time":          {objects: []metav1.Object{reporting("job", "-", "yesterday")}, left: true},
		"of a cycle":               {objects: []metav1.Object{reporting("job", "b", ""), reporting("b", "job", "-")}, want: 12},
		"with somebody else's boost": {objects: []metav1.Object{reporting("job", "-", "")}, change: func(w *kueue.Workload) {
			w.Annotations[controllerconstants.PriorityBoostAnnotationKey] = "-100000"
		}, left: true},
		"of one that has finished": {objects: []metav1.Object{reporting("job", "-", "")}, change: func(w *kueue.Workload) {
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
		}, left: true},
		"of one that is being evicted": {objects: []metav1.Object{reporting("job", "-", "")}, change: func(w *kueue.Workload) {
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue})
		}},
		"of one in the queue": {objects: []metav1.Object{reporting("job", "-", "")}, change: func(w *kueue.Workload) { w.Status.Conditions = nil }},
		"that has gone with its pods": {change: func(w *kueue.Workload) {
			w.Annotations[controllerconstants.PriorityBoostAnnotationKey], w.Annotations[AnnotationSet] = "7", "7"
		}},
	} {
		w := workload("job")
		if c.change != nil {
			c.change(w)
		}
		boost, _ := present(w)
		got, ours := decide(rule, now, w, read(c.objects...), boost, time.Time{})
		if got != c.want || ours == c.left {
			t.Errorf("a report %s: boost %d (its matter: %t), want %d", name, got, ours, c.want)
		}
	}
}

// server has the lists of an API server, without changes, and records patches.
type server struct {
	t       *testing.T
	mu      sync.Mutex
	lists   map[string]any // by the last part of the path
	patched chan string
	denied  string // a resource that may not be listed
	looks   int    // how often the classes were listed, which every look at the ages begins with
}

// awaitLooks waits until the controller has looked at the ages a few more times.
func (s *server) awaitLooks() {
	s.t.Helper()
	looks := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.looks
	}
	before := looks()
	eventually.True(s.t, "further looks", func() bool { return looks() >= before+5 })
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPatch:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			s.t.Error(err)
		}
		s.patched <- r.URL.Path + " " + string(body)
		_, _ = io.WriteString(w, `{"kind":"Workload","apiVersion":"kueue.x-k8s.io/v1beta2"}`)
	case resource == s.denied:
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
	case r.URL.Query().Get("watch") != "" && strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList"):
		s.t.Errorf("a watch of %s asks for lists: an API server ends it at the first event", resource)
	case r.URL.Query().Get("sendInitialEvents") != "": // a server without streaming lists
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case r.URL.Query().Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		if metadata := strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList"); metadata != (resource == "jobs" || resource == "pods") {
			s.t.Errorf("%s are asked for as %q", resource, r.Header.Get("Accept"))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if resource == "workloadpriorityclasses" {
			s.looks++
		}
		_ = json.NewEncoder(w).Encode(s.lists[resource])
	}
}

func start(t *testing.T, classes ...int32) (*server, Config) {
	t.Helper()
	held, job := workload("job"), reporting("job", "-", "")
	for i := range held.Status.Conditions {
		held.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-17 * time.Minute))
	}
	list := func(kind, version string) metav1.TypeMeta { return metav1.TypeMeta{Kind: kind, APIVersion: version} }
	priorities := &kueue.WorkloadPriorityClassList{TypeMeta: list("WorkloadPriorityClassList", kueue.SchemeGroupVersion.String())}
	for _, value := range classes {
		priorities.Items = append(priorities.Items, kueue.WorkloadPriorityClass{Value: value})
	}
	s := &server{t: t, patched: make(chan string, 10), lists: map[string]any{
		"workloads":               &kueue.WorkloadList{TypeMeta: list("WorkloadList", kueue.SchemeGroupVersion.String()), Items: []kueue.Workload{*held}},
		"workloadpriorityclasses": priorities,
		"jobs":                    &metav1.PartialObjectMetadataList{TypeMeta: list("PartialObjectMetadataList", "meta.k8s.io/v1"), Items: []metav1.PartialObjectMetadata{*job}},
		"pods":                    &metav1.PartialObjectMetadataList{TypeMeta: list("PartialObjectMetadataList", "meta.k8s.io/v1")},
	}}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return s, Config{
		REST: &rest.Config{Host: web.URL, Transport: transport, QPS: -1}, Rule: rule, Every: 20 * time.Millisecond, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func TestTheControllerPatchesABoostOnceAndStopsWithItsContext(t *testing.T) {
	s, config := start(t, 100, 1000)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, config) }()
	select {
	case got := <-s.patched:
		want := `/apis/kueue.x-k8s.io/v1beta2/namespaces/ns/workloads/w ` +
			`{"metadata":{"annotations":{"elastic-training.github.io/checkpoint-age-boost":"3","kueue.x-k8s.io/priority-boost":"3"},"uid":"w-uid"}}`
		if got != want {
			t.Errorf("the patch is %s, want %s", got, want)
		}
	case err := <-ended:
		t.Fatalf("it has ended: %v", err)
	case <-time.After(patience.Medium):
		t.Error("no boost is set")
	}
	s.awaitLooks() // the server does not report the change, and these looks must not repeat it
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(s.patched) != 0 {
		t.Errorf("a second patch: %s", <-s.patched)
	}
}

func TestADryRunPatchesNothing(t *testing.T) {
	s, config := start(t, 100, 1000)
	config.DryRun = true
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, config) }()
	s.awaitLooks()
	stop()
	if err := <-ended; err != nil || len(s.patched) != 0 {
		t.Errorf("%v, %d patches", err, len(s.patched))
	}
}

func TestTheControllerDoesNotBeginWithoutRightsOrRoomBetweenClasses(t *testing.T) {
	_, config := start(t, 100, 110)
	if err := Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), "between priorities 100 and 110") {
		t.Errorf("with classes that are too near: %v", err)
	}
	s, config := start(t, 100)
	s.denied = "pods"
	if err := Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), "list pods of all namespaces") {
		t.Errorf("without a right: %v", err)
	}
}
