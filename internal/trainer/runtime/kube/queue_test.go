package kube

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// newQueuedServer has a job under a queue, whose minimum is one worker, and its master's pod.
func newQueuedServer(t *testing.T, managed bool) *server {
	t.Helper()
	s := newServer(t)
	workers, err := json.Marshal(trainingjob.Workers{Min: 1, Max: 3, Queue: &trainingjob.Queue{Name: "user-queue"}, Template: template()})
	if err != nil {
		t.Fatal(err)
	}
	s.put("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "digits-job"}, Data: map[string]string{trainingjob.WorkersKey: string(workers)}})
	s.put("pods", member("digits-abcde", "", managed))
	s.put("jobs", &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "digits-min"}})
	return s
}

// member is a pod of the job's group; the minimum's have an index.
func member(name, index string, managed bool) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{podconstants.GroupNameLabel: "digits-min-0a1b2c3d"}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if index != "" {
		pod.Labels[trainingjob.LabelJobUID], pod.Labels[trainingjob.LabelRole] = "uid", trainingjob.RoleWorker
		pod.Labels[trainingjob.LabelMinimum], pod.Labels[batchv1.JobCompletionIndexAnnotation] = "true", index
	}
	if managed {
		pod.Labels[kueueconstants.ManagedByKueueLabelKey] = "true"
	}
	return pod
}

func TestAMasterThatKueueDidNotAdmitDoesNotBegin(t *testing.T) {
	s := newQueuedServer(t, false)
	_, _, _, err := Start(t.Context(), s.cluster, "10.0.0.1:50001", quiet())
	if unmanaged := (*UnmanagedError)(nil); !errors.As(err, &unmanaged) || !strings.Contains(err.Error(), "namespace ns") {
		t.Errorf("got %v", err)
	}
}

func TestAQueuedWorkerThatNoGateHoldsBackEndsTheJob(t *testing.T) {
	s := newQueuedServer(t, true)
	l, _, _, err := Start(t.Context(), s.cluster, "10.0.0.1:50001", quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Create(1, false) // this server marks no pod, as in a cluster without Kueue
	for {
		if e, ok := (<-l.Events()).(coordinator.Unhealthy); ok {
			if !strings.Contains(e.Reason, "Kueue does not manage pods in namespace ns") {
				t.Error(e.Reason)
			}
			return
		}
	}
}

func TestWhatAnEvictedMasterLeftIsRemovedByTheNext(t *testing.T) {
	s := newQueuedServer(t, true)
	left := func(id, code int32) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name:   trainingjob.WorkerName("digits", int(id)),
				Labels: map[string]string{trainingjob.LabelWorkerID: strconv.Itoa(int(id)), trainingjob.LabelJobUID: "uid", trainingjob.LabelRole: trainingjob.RoleWorker},
			},
			Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}},
			}}},
		}
	}
	s.put("pods", left(3, 143))
	s.put("pods", left(4, 1))
	l, _, last, err := Start(t.Context(), s.cluster, "10.0.0.1:50001", quiet())
	if err != nil || last != 4 {
		t.Fatalf("last worker %d: %v", last, err)
	}
	l.Close()
	if s.has("pods/digits-worker-3") || !s.has("pods/digits-worker-4") {
		t.Errorf("the worker that lost its master should go, the one that failed by itself stay for who looks: %v", s.writes())
	}
}

func TestAMinimumWorkerIsEndedUnderTheNameThatItsJobGaveIt(t *testing.T) {
	s := newQueuedServer(t, true)
	s.put("pods", member("digits-min-0-x7k2p", "0", true))
	l, existing, _, err := Start(t.Context(), s.cluster, "10.0.0.1:50001", quiet())
	if err != nil || len(existing) != 1 || existing[0].Name != "digits-min-0-x7k2p" || !existing[0].Minimum {
		t.Fatalf("%+v, %v", existing, err)
	}
	l.Delete(0)
	l.Close()
	if s.has("pods/digits-min-0-x7k2p") {
		t.Errorf("the pod is there: %v", s.writes())
	}
}

func TestAMinimumWorkerThatIsCreatedAgain(t *testing.T) {
	at := func(pod *corev1.Pod, second int64) *corev1.Pod {
		pod.CreationTimestamp = metav1.Unix(second, 0)
		return pod
	}
	first, second := at(member("digits-min-0-aaaaa", "0", true), 1), at(member("digits-min-0-bbbbb", "0", true), 2)
	sees := func(f minPods, pod *corev1.Pod) []string {
		e, _ := podEvent(pod)
		var seen []string
		for _, e := range f.changes(pod, e) {
			seen = append(seen, e.Name+" "+e.State.String())
		}
		return seen
	}
	t.Run("has ended under its first name when it is seen under its second", func(t *testing.T) {
		f := minPods{}
		sees(f, first)
		if got, want := sees(f, second), []string{first.Name + " ended", second.Name + " running"}; !slices.Equal(got, want) {
			t.Errorf("%v, not %v", got, want)
		}
	})
	t.Run("is not taken for gone when the first is seen to go", func(t *testing.T) {
		f := minPods{}
		sees(f, first)
		sees(f, second)
		if got := sees(f, first); got != nil {
			t.Error(got)
		}
		if f[0] != second {
			t.Error("the first is kept for the newest")
		}
	})
	t.Run("within a second is known by the other's end", func(t *testing.T) {
		f := minPods{}
		again := at(member("digits-min-0-ccccc", "0", true), 2)
		sees(f, again)
		ended := second.DeepCopy()
		ended.Status.Phase = corev1.PodFailed
		if got := sees(f, ended); got != nil {
			t.Error(got)
		}
	})
}

func TestTheEndOfAQueuedJob(t *testing.T) {
	const markMaster, stopMinJob = "PATCH pods/digits-abcde", "PATCH jobs/digits-min"
	for name, c := range map[string]struct {
		minimum corev1.PodPhase
		want    []string
	}{
		"marks the master's pod when the minimum has succeeded": {corev1.PodSucceeded, []string{markMaster}},
		"stops minimum workers that continue":                   {corev1.PodRunning, []string{markMaster, stopMinJob}},
		"stops minimum workers that would be made again":        {corev1.PodFailed, []string{markMaster, stopMinJob}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newQueuedServer(t, true)
			worker := member("digits-min-0-x7k2p", "0", true)
			worker.Status.Phase = c.minimum
			s.put("pods", worker)
			burst := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "digits-worker-1", Labels: map[string]string{trainingjob.LabelJobUID: "uid", trainingjob.LabelRole: trainingjob.RoleWorker}}}
			s.put("pods", burst) // above the minimum: no Job makes it again
			if err := s.cluster.Finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := s.writes(); !slices.Equal(got, c.want) {
				t.Errorf("%v, not %v", got, c.want)
			}
		})
	}
	t.Run("without a queue changes nothing", func(t *testing.T) {
		s := newServer(t)
		s.put("pods", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "digits-abcde"}})
		if err := s.cluster.Finish(t.Context()); err != nil || len(s.writes()) > 0 {
			t.Errorf("%v, %v", s.writes(), err)
		}
	})
}
