package kube

import (
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

func startLauncher(t *testing.T, s *server) *Launcher {
	t.Helper()
	l, existing, last, err := Start(t.Context(), s.cluster, "10.0.0.1:50001", quiet())
	if err != nil || len(existing) != 0 || last != -1 {
		t.Fatalf("%v, last worker %d: %v", existing, last, err)
	}
	t.Cleanup(l.Close)
	return l
}

func TestADeletionComesAfterTheCreationThatIsUnderWay(t *testing.T) {
	s := newServer(t)
	l := startLauncher(t, s)
	received, release := s.wait(http.MethodPost, "pods")
	defer release()
	l.Create(0, false)
	<-received
	l.Delete(0)
	l.Delete(1) // which nobody creates: a deletion that does not wait arrives
	eventually.True(t, "the other deletion", func() bool {
		return slices.Contains(s.writes(), "DELETE pods/digits-worker-1")
	})
	if slices.Contains(s.writes(), "DELETE pods/digits-worker-0") {
		t.Errorf("it is deleted while it is being created: %v", s.writes())
	}
	release()
	eventually.True(t, "creation and deletion", func() bool {
		return slices.Contains(s.writes(), "POST pods") && slices.Contains(s.writes(), "DELETE pods/digits-worker-0")
	})
	if s.has("pods/digits-worker-0") {
		t.Errorf("the pod is there: %v", s.writes())
	}
}

func TestTheNextMasterLearnsTheHighestWorkerNumberThatWasEverUsed(t *testing.T) {
	s := newServer(t)
	l := startLauncher(t, s)
	for _, worker := range []int{3, 1, 5, 4} {
		l.Create(worker, false)
		eventually.True(t, "its pod", func() bool { return s.has("pods/" + trainingjob.WorkerName("digits", worker)) })
	}
	l.Close()
	next, _, last, err := Start(t.Context(), s.cluster, "10.0.0.1:50001", quiet())
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
	if last != 5 {
		t.Errorf("the highest number is %d, want 5", last)
	}
}

func TestAPodThatNeverWasIsReportedAsEnded(t *testing.T) {
	s := newServer(t)
	l := startLauncher(t, s)
	l.Delete(7)
	for {
		e, ok := (<-l.Events()).(coordinator.PodChanged)
		if ok && e.Worker == 7 {
			if e.State != coordinator.PodEnded || !e.Disrupted {
				t.Errorf("%+v", e)
			}
			return
		}
	}
}

func TestAPodThatWentWhileTheWatchWasTooOldIsReportedAsEnded(t *testing.T) {
	s := newServer(t)
	l := startLauncher(t, s)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "digits-worker-3", Labels: map[string]string{
		trainingjob.LabelWorkerID: "3", trainingjob.LabelRole: trainingjob.RoleWorker, trainingjob.LabelJobUID: "uid", trainingjob.LabelJobName: "digits",
	}}}
	awaitState := func(want coordinator.PodState) {
		t.Helper()
		late := time.NewTimer(patience.Medium)
		defer late.Stop()
		for {
			select {
			case e := <-l.Events():
				if e, ok := e.(coordinator.PodChanged); ok && e.Worker == 3 && e.State == want {
					return
				}
			case <-late.C:
				t.Fatalf("worker 3 is not reported as %v", want)
			}
		}
	}
	s.put("pods", pod)
	s.forget()
	awaitState(coordinator.PodPending)
	s.remove("pods/digits-worker-3")
	s.forget()
	awaitState(coordinator.PodEnded)
}

func TestDeletionsOrderedAtTheEndAreSent(t *testing.T) {
	s := newServer(t)
	l := startLauncher(t, s)
	s.put("pods", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "digits-worker-3"}})
	l.Delete(3)
	l.Close()
	if s.has("pods/digits-worker-3") {
		t.Errorf("the pod is there: %v", s.writes())
	}
}

func TestAPodAsTheCoordinatorSeesIt(t *testing.T) {
	now := metav1.Now()
	ended := func(code int32, reason string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "worker", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}},
		}}}
	}
	disrupted := func(reason string) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason}}
	}
	for name, c := range map[string]struct {
		status   corev1.PodStatus
		deleted  *metav1.Time
		want     coordinator.PodChanged
		noReason bool
	}{
		"one that waits": {status: corev1.PodStatus{Phase: corev1.PodPending}, want: coordinator.PodChanged{State: coordinator.PodPending}},
		"one that runs":  {status: corev1.PodStatus{Phase: corev1.PodRunning}, want: coordinator.PodChanged{State: coordinator.PodRunning}, noReason: true},
		"one that is being preempted": {
			status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: disrupted(corev1.PodReasonPreemptionByScheduler)},
			want:   coordinator.PodChanged{State: coordinator.PodRunning, Terminating: true, Preempted: true, Disrupted: true}, noReason: true,
		},
		"one that its queue takes away": {
			status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: "TerminationTarget", Status: corev1.ConditionTrue}}},
			want:   coordinator.PodChanged{State: coordinator.PodRunning, Terminating: true, Preempted: true, Disrupted: true}, noReason: true,
		},
		"one that is being evicted": {
			status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: disrupted("EvictionByEvictionAPI")},
			want:   coordinator.PodChanged{State: coordinator.PodRunning, Terminating: true, Disrupted: true}, noReason: true,
		},
		"one that somebody deletes": {
			status: corev1.PodStatus{Phase: corev1.PodRunning}, deleted: &now,
			want: coordinator.PodChanged{State: coordinator.PodRunning, Terminating: true, Disrupted: true}, noReason: true,
		},
		"one that failed":          {status: ended(1, "Error"), want: coordinator.PodChanged{State: coordinator.PodEnded}},
		"one that left":            {status: ended(143, "Error"), want: coordinator.PodChanged{State: coordinator.PodEnded, Disrupted: true}},
		"one that was killed":      {status: ended(137, "Error"), want: coordinator.PodChanged{State: coordinator.PodEnded, Disrupted: true}},
		"one that ate its memory":  {status: ended(137, "OOMKilled"), want: coordinator.PodChanged{State: coordinator.PodEnded}},
		"one whose node went down": {status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Terminated"}, want: coordinator.PodChanged{State: coordinator.PodEnded, Disrupted: true}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "digits-worker-4", DeletionTimestamp: c.deleted, Labels: map[string]string{trainingjob.LabelWorkerID: "4", trainingjob.LabelMinimum: "true"}},
				Status:     c.status,
			}
			got, ok := podEvent(pod)
			if !ok || (got.Reason == "") != c.noReason {
				t.Errorf("%+v", got)
			}
			got.Reason, c.want.Worker, c.want.Minimum = "", 4, true
			c.want.Cause = trainingjob.CauseOf(pod) // which has its own test
			if got != c.want {
				t.Errorf("%+v, not %+v", got, c.want)
			}
		})
	}
	if _, ok := podEvent(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "another"}}); ok {
		t.Error("a pod that is no worker is taken for one")
	}
}
