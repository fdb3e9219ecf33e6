package kube

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// heldBy writes a Lease of generation 4.
func (s *server) heldBy(holder string) {
	generation, renewed := int32(4), metav1.NowMicro()
	s.put("leases", &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "digits-master"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseTransitions: &generation, RenewTime: &renewed},
	})
}

func acquire(t *testing.T, s *server) *Fence {
	t.Helper()
	f, err := Acquire(t.Context(), s.cluster, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return f
}

func TestTheLeaseIsTakenFromAHolderWhosePodIsNoMore(t *testing.T) {
	ended := metav1.Now()
	for name, pod := range map[string]*corev1.Pod{
		"gone":                                  nil,
		"failed":                                {ObjectMeta: metav1.ObjectMeta{Name: "other"}, Status: corev1.PodStatus{Phase: corev1.PodFailed}},
		"ending":                                {ObjectMeta: metav1.ObjectMeta{Name: "other", DeletionTimestamp: &ended}},
		"this one, whose process was restarted": nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			holder := "other"
			if strings.HasPrefix(name, "this one") {
				holder = s.cluster.Pod
			}
			if pod != nil {
				s.put("pods", pod)
			}
			s.heldBy(holder)
			if f := acquire(t, s); f.Generation() != 5 {
				t.Errorf("generation %d after 4", f.Generation())
			}
		})
	}
}

func TestASecondMasterIsRefusedWhileTheFirstRenews(t *testing.T) {
	s := newServer(t)
	s.put("pods", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
	s.heldBy("other")
	received, release := s.wait(http.MethodGet, "pods")
	go func() {
		defer release()
		select {
		case <-received: // the second has read the Lease, and looks whether the first one's pod is there
			s.heldBy("other")
		case <-t.Context().Done():
		}
	}()
	_, err := Acquire(t.Context(), s.cluster, quiet())
	if !errors.Is(err, ErrOtherMaster) || !strings.Contains(err.Error(), "job digits already has a master: pod other") {
		t.Errorf("the second master: %v", err)
	}
}

func TestAMasterLearnsThatItsLeaseWasTaken(t *testing.T) {
	s := newServer(t)
	f := acquire(t, s)
	s.heldBy("other")
	if reason := <-f.Lost(); !strings.Contains(reason, "held by other") {
		t.Errorf("the reason: %s", reason)
	}
	if err := f.Check(t.Context()); err == nil {
		t.Error("files may be written all the same")
	}
}

func TestAMasterWhoseLeaseIsTakenWhileItIsCutOffStopsWithTheAPIServersFirstAnswer(t *testing.T) {
	s := newServer(t)
	f := acquire(t, s)
	received, release := s.wait(http.MethodPut, "leases")
	<-received // a renewal waits, and others reach the API server
	s.heldBy("other")
	select {
	case reason := <-f.Lost():
		t.Errorf("it cannot know, and says %q", reason)
	default:
	}
	release()
	if reason := <-f.Lost(); !strings.Contains(reason, "held by other") {
		t.Errorf("the reason: %s", reason)
	}
	if lease := s.objects["leases/digits-master"].(*coordinationv1.Lease); *lease.Spec.HolderIdentity != "other" {
		t.Errorf("it has taken the Lease back from %s", *lease.Spec.HolderIdentity)
	}
}

func TestTheGenerationIsKnownWhileTheAPIServerDoesNotAnswer(t *testing.T) {
	s := newServer(t)
	f := acquire(t, s)
	f.mu.Lock() // as during a request, but without its time limit
	defer f.mu.Unlock()
	known := make(chan int64, 1)
	go func() { known <- f.Generation() }()
	select {
	case g := <-known:
		if g != 1 {
			t.Errorf("generation %d", g)
		}
	case <-time.After(patience.Medium):
		t.Error("it waits for the API server, and the master's loop with it")
	}
}

func TestClosingReleasesTheLease(t *testing.T) {
	s := newServer(t)
	f, err := Acquire(t.Context(), s.cluster, quiet())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease := s.objects["leases/digits-master"].(*coordinationv1.Lease)
	if lease.Spec.HolderIdentity != nil || *lease.Spec.LeaseTransitions != 1 {
		t.Errorf("the Lease afterwards: %+v", lease.Spec)
	}
}
