package scenario

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// server is an API server as a recorder sees it: it answers lists and watches, in turn.
type server struct {
	lists   chan *corev1.PodList
	watches chan *watch.FakeWatcher
}

func (s server) List(ctx context.Context, _ metav1.ListOptions) (*corev1.PodList, error) {
	select {
	case list := <-s.lists:
		return list, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s server) Watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	select {
	case w := <-s.watches:
		return w, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestRecorderListsAgainAfterTheAPIServerRestarts uses a restarted server, for which the recorder's last version is too
// old.
func TestRecorderListsAgainAfterTheAPIServerRestarts(t *testing.T) {
	defer goleak.VerifyNone(t)
	pod := func(name, version string, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: version}, Status: corev1.PodStatus{Phase: phase}}
	}
	list := func(version string, pods ...corev1.Pod) *corev1.PodList {
		return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: pods}
	}
	s := server{lists: make(chan *corev1.PodList, 2), watches: make(chan *watch.FakeWatcher, 2)}
	before, after := watch.NewFakeWithChanSize(2, false), watch.NewFakeWithChanSize(2, false)
	s.lists <- list("1", pod("old", "1", corev1.PodRunning))
	s.lists <- list("9", pod("new", "8", corev1.PodPending))
	s.watches <- before
	s.watches <- after

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := NewLog(io.Discard, nil)
	r := &recorder{log: log, namespace: "default"}
	if err := follow(ctx, r, "pods", s, podEvent); err != nil {
		t.Fatal(err)
	}
	expect := func(what string, holds func(eventlog.Pod) bool) {
		t.Helper()
		if err := log.Wait(ctx, what, time.Minute, func(h *eventlog.History) (bool, error) {
			for _, pod := range h.Pods {
				if holds(pod.Pod) {
					return true, nil
				}
			}
			return false, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	seen := pod("old", "2", corev1.PodFailed)
	before.Modify(&seen)
	expect("a change is seen", func(p eventlog.Pod) bool { return p.Name == "old" && p.Phase == "Failed" })
	before.Error(&metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
	expect("what went meanwhile is seen", func(p eventlog.Pod) bool { return p.Name == "old" && p.Deleted })
	expect("what came meanwhile is seen", func(p eventlog.Pod) bool { return p.Name == "new" && p.Phase == "Pending" })
	seen = pod("new", "10", corev1.PodRunning)
	after.Modify(&seen)
	expect("what comes then is seen", func(p eventlog.Pod) bool { return p.Name == "new" && p.Phase == "Running" })
	cancel()
	r.watches.Wait()
}
