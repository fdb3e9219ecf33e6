package kube

import (
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// object is an object in the API server.
type object interface {
	metav1.Object
	runtime.Object
}

// server is the part of an API server that a master needs: it stores objects by path, rejects stale
// writes, and can be made to wait before it answers.
type server struct {
	*testing.T
	cluster *Cluster

	mu      sync.Mutex
	objects map[string]object
	version int
	log     []string              // the writes, in order, when they were carried out
	merges  map[string][]string   // the bodies of patches, by what they are of
	before  func(r *http.Request) // called for each request, unless nil
	oldest  int                   // watches of earlier versions end with 410 Gone
	cut     chan struct{}         // closed when oldest changes
}

// lists are the kinds of lists, by resource.
var lists = map[string]metav1.TypeMeta{"pods": {Kind: "PodList", APIVersion: "v1"}, "configmaps": {Kind: "ConfigMapList", APIVersion: "v1"}}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{T: t, objects: map[string]object{}, merges: map[string][]string{}, cut: make(chan struct{})}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	s.cluster = &Cluster{Namespace: "ns", Pod: "digits-abcde", Job: trainingjob.JobRef{Name: "digits", Namespace: "ns", UID: "uid"}}
	if err := s.cluster.dial(&rest.Config{Host: web.URL, Transport: transport, QPS: -1}); err != nil {
		t.Fatal(err)
	}
	s.put("jobs", &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "digits", UID: "uid"}})
	s.put("leases", &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "digits-master"}})
	workers, err := json.Marshal(map[string]any{"min": 1, "max": 1, "template": template()})
	if err != nil {
		t.Fatal(err)
	}
	s.put("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "digits-job"}, Data: map[string]string{trainingjob.WorkersKey: string(workers)}})
	return s
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "worker", Image: "image"}}}}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// put stores an object directly, without a request.
func (s *server) put(resource string, o object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	o.SetNamespace("ns")
	o.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[resource+"/"+o.GetName()] = o
}

func (s *server) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[name] != nil
}

func (s *server) writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

func (s *server) patches(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.merges[name])
}

// wait makes every later request that matches wait until release is called or the client disconnects. received receives
// when there is such a request.
func (s *server) wait(method, resource string) (received <-chan struct{}, release func()) {
	waits, released := make(chan struct{}, 1), make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = func(r *http.Request) {
		if r.Method == method && strings.Contains(r.URL.Path, "/"+resource) {
			select {
			case waits <- struct{}{}:
			default:
			}
			select {
			case <-released:
			case <-r.Context().Done():
			}
		}
	}
	return waits, sync.OnceFunc(func() { close(released) })
}

// annotate carries out what tests read of a merge patch: it sets annotations.
func (s *server) annotate(o object, patch []byte) {
	var set struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(patch, &set); err != nil {
		s.Error(err)
		return
	}
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, set.Metadata.Annotations)
	o.SetAnnotations(annotations)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		before(r)
	}
	_, where, _ := strings.Cut(r.URL.Path, "/namespaces/ns/")
	resource, name, _ := strings.Cut(where, "/")
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method != http.MethodGet {
		s.log = append(s.log, r.Method+" "+where)
	}
	if r.Method == http.MethodPatch {
		s.merges[where] = append(s.merges[where], string(body))
	}
	have := s.objects[where]
	if r.Method == http.MethodPatch && have != nil {
		s.annotate(have, body)
	}
	switch {
	case r.Method == http.MethodGet && name == "":
		selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
		if err != nil {
			s.Error(err)
			return
		}
		s.answer(w, http.StatusOK, s.list(resource, selector))
	case r.Method == http.MethodPost:
		o := s.decode(body)
		o.SetNamespace("ns")
		s.objects[path.Join(resource, o.GetName())] = o
		s.answer(w, http.StatusCreated, s.typed(resource, o))
	case have == nil:
		s.answer(w, http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound))
	case r.Method == http.MethodDelete:
		delete(s.objects, where)
		s.answer(w, http.StatusOK, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
	case r.Method == http.MethodPut:
		o := s.decode(body)
		if o.GetResourceVersion() != have.GetResourceVersion() {
			s.answer(w, http.StatusConflict, failure(http.StatusConflict, metav1.StatusReasonConflict))
			return
		}
		s.version++
		o.SetResourceVersion(strconv.Itoa(s.version))
		s.objects[where] = o
		s.answer(w, http.StatusOK, s.typed(resource, o))
	default: // GET, and PATCH
		s.answer(w, http.StatusOK, s.typed(resource, have))
	}
}

// watch reports no change: it ends with its client, or because its version is too old.
func (s *server) watch(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("sendInitialEvents") != "" { // a server without streaming lists
		s.answer(w, http.StatusUnprocessableEntity, failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid))
		return
	}
	since, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		s.Error(err)
		return
	}
	s.mu.Lock()
	cut, oldest := s.cut, s.oldest
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	if since >= oldest {
		select {
		case <-r.Context().Done():
		case <-cut:
		}
	}
	if r.Context().Err() == nil {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "ERROR", "object": failure(http.StatusGone, metav1.StatusReasonExpired)})
	}
}

// forget makes every earlier version too old for a watch.
func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest = s.version
	close(s.cut)
	s.cut = make(chan struct{})
}

// remove deletes an object without notifying watches.
func (s *server) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	delete(s.objects, name)
}

func (s *server) list(resource string, selector labels.Selector) runtime.Object {
	list := &metav1.List{TypeMeta: lists[resource], ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}, Items: []runtime.RawExtension{}}
	for at, o := range s.objects {
		if strings.HasPrefix(at, resource+"/") && selector.Matches(labels.Set(o.GetLabels())) {
			list.Items = append(list.Items, runtime.RawExtension{Object: s.typed(resource, o)})
		}
	}
	return list
}

func (s *server) typed(resource string, o object) runtime.Object {
	typed := o.DeepCopyObject()
	kinds, _, err := scheme.Scheme.ObjectKinds(typed)
	if err != nil {
		s.Errorf("%s: %v", resource, err)
		return typed
	}
	typed.GetObjectKind().SetGroupVersionKind(kinds[0])
	return typed
}

func (s *server) decode(body []byte) object {
	o, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), body)
	if err != nil {
		s.Error(err)
		return &corev1.Pod{}
	}
	return o.(object)
}

func (s *server) answer(w http.ResponseWriter, code int, o runtime.Object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(o) // the client may have gone
}

func failure(code int32, reason metav1.StatusReason) *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: string(reason)}
}
