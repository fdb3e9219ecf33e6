package rank

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/kube"
)

// server is the part of an API server that a gang needs: pods and one ConfigMap, which can be listed, watched and, with
// a merge patch with or without a version, changed.
type server struct {
	*testing.T
	web *httptest.Server

	mu      sync.Mutex
	version int
	pods    map[string]*corev1.Pod
	board   *corev1.ConfigMap
	watches map[chan []byte]string // resource by channel
	down    bool                   // answers every request with 503
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{
		T: t, pods: map[string]*corev1.Pod{}, watches: map[chan []byte]string{}, version: 1,
		board: &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: "train-gang", Namespace: "ns", ResourceVersion: "1"}, Data: map[string]string{},
		},
	}
	s.web = httptest.NewServer(s)
	t.Cleanup(s.web.Close)
	return s
}

// gang is a rank's view of the server.
func (s *server) gang(pod string) *kube.Gang {
	s.Helper()
	transport := &http.Transport{}
	s.Cleanup(transport.CloseIdleConnections)
	cluster, err := kube.Dial(&rest.Config{Host: s.web.URL, Transport: transport, QPS: -1}, "ns", pod)
	if err != nil {
		s.Fatal(err)
	}
	g, err := kube.WatchGang(s.Context(), cluster, "job", "uid", "train-gang")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(g.Close)
	return g
}

func (s *server) addPod(name string) types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("uid-of-" + name), ResourceVersion: strconv.Itoa(s.version), Labels: map[string]string{"job": "uid"}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	s.pods[name] = pod
	s.publish("pods", "ADDED", pod)
	return pod.UID
}

func (s *server) removePod(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	pod := s.pods[name]
	delete(s.pods, name)
	pod.ResourceVersion = strconv.Itoa(s.version)
	s.publish("pods", "DELETED", pod)
}

func (s *server) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *server) publish(resource, event string, o any) {
	for watch, of := range s.watches {
		if of == resource {
			s.tellOne(watch, event, o)
		}
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, where, _ := strings.Cut(r.URL.Path, "/namespaces/ns/")
	resource, name, _ := strings.Cut(where, "/")
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r, resource)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.down:
		s.refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
	case r.Method == http.MethodGet && name == "":
		s.answer(w, s.list(resource))
	case r.Method == http.MethodGet:
		s.answer(w, s.board)
	case r.Method == http.MethodPatch:
		s.patch(w, r)
	default:
		s.Errorf("%s %s", r.Method, r.URL)
	}
}

func (s *server) list(resource string) any {
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}
	if resource == "configmaps" {
		return &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: meta, Items: []corev1.ConfigMap{*s.board}}
	}
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: meta, Items: []corev1.Pod{}}
	for _, pod := range s.pods {
		list.Items = append(list.Items, *pod)
	}
	return list
}

func (s *server) patch(w http.ResponseWriter, r *http.Request) {
	var patch corev1.ConfigMap
	if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
		s.Error(err)
		return
	}
	if v := patch.ResourceVersion; v != "" && v != s.board.ResourceVersion {
		s.refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	}
	s.version++
	next := s.board.DeepCopy()
	maps.Copy(next.Data, patch.Data)
	next.ResourceVersion = strconv.Itoa(s.version)
	s.board = next
	s.publish("configmaps", "MODIFIED", next)
	s.answer(w, next)
}

// watch streams the existing objects, a bookmark, and later changes.
func (s *server) watch(w http.ResponseWriter, r *http.Request, resource string) {
	s.mu.Lock()
	if s.down {
		defer s.mu.Unlock()
		s.refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		return
	}
	events := make(chan []byte, 1000)
	s.watches[events] = resource
	end := metav1.ObjectMeta{ResourceVersion: strconv.Itoa(s.version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
	if resource == "configmaps" {
		s.tellOne(events, "ADDED", s.board)
		s.tellOne(events, "BOOKMARK", &corev1.ConfigMap{TypeMeta: s.board.TypeMeta, ObjectMeta: end})
	} else {
		for _, pod := range s.pods {
			s.tellOne(events, "ADDED", pod)
		}
		s.tellOne(events, "BOOKMARK", &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: end})
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, events)
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case text := <-events:
			if _, err := fmt.Fprintf(w, "%s\n", text); err != nil {
				return
			}
		}
	}
}

func (s *server) tellOne(watch chan []byte, event string, o any) {
	text, err := json.Marshal(map[string]any{"type": event, "object": o})
	if err != nil {
		s.Error(err)
		return
	}
	watch <- text
}

func (s *server) refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	s.answer(w, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: string(reason)})
}

func (s *server) answer(w http.ResponseWriter, o any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o) // the client may have gone
}
