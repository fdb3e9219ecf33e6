package trainingjob

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestExplain(t *testing.T) {
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "worker", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}}
	}
	exited := func(code int32, reason string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "worker", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}},
		}}}
	}
	unschedulable := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient cpu.",
	}}}
	nominated := *unschedulable.DeepCopy()
	nominated.NominatedNodeName = "node-2"

	for name, c := range map[string]struct {
		pod    corev1.Pod
		events []corev1.Event
		want   string // "" for nothing
	}{
		"a running pod is not mentioned":   {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}, nil, ""},
		"a succeeded pod is not mentioned": {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, nil, ""},
		"a pod that fits nowhere is said in the scheduler's words": {
			corev1.Pod{Status: unschedulable}, nil, "cannot be scheduled: 0/3 nodes are available: 3 Insufficient cpu.",
		},
		"a preemptor is said with its node": {
			corev1.Pod{Status: nominated},
			nil,
			"cannot be scheduled: 0/3 nodes are available: 3 Insufficient cpu.; pods of lower priority are being preempted for it on node node-2",
		},
		"a gated pod is said with its gate": {
			corev1.Pod{Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/quota"}}}, Status: corev1.PodStatus{Phase: corev1.PodPending}},
			nil, `waits for scheduling gate "example.com/quota" to be removed`,
		},
		"a pod that Kueue holds back is said with its queue": {
			corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"kueue.x-k8s.io/queue-name": "user-queue"}},
				Spec:       corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}, {Name: "kueue.x-k8s.io/topology"}}},
				Status:     corev1.PodStatus{Phase: corev1.PodPending},
			},
			nil, "is queued: Kueue has not admitted it to queue user-queue yet",
		},
		"a missing image is said with the remedy": {
			corev1.Pod{Status: waiting("ErrImagePull", "no such image")},
			nil,
			"container worker: ErrImagePull: no such image; check the image's name, and image_pull_secrets for a private registry",
		},
		"a volume that cannot be mounted is said by its newest event": {
			corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: waiting("ContainerCreating", "")},
			[]corev1.Event{
				{Type: "Warning", Reason: "FailedMount", Message: "old", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "w", UID: "w1"}, LastTimestamp: metav1.Unix(1, 0)},
				{Type: "Warning", Reason: "FailedMount", Message: `configmap "x" not found`, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "w", UID: "w1"}, LastTimestamp: metav1.Unix(2, 0)},
				{Type: "Warning", Reason: "FailedMount", Message: "of another pod of that name", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "w", UID: "other"}, LastTimestamp: metav1.Unix(3, 0)},
			},
			`FailedMount: configmap "x" not found`,
		},
		"a pod without any reason waits for the scheduler": {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}, nil, "waits for the scheduler"},
		"too much memory is said with the limit": {
			corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "worker", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("64Mi")}}}}}, Status: exited(137, "OOMKilled")},
			nil, "container worker used more memory than its limit (64Mi) and was killed; raise resources.limits.memory",
		},
		"an exit code is said": {corev1.Pod{Status: exited(2, "Error")}, nil, "container worker exited with code 2"},
		"a preempted pod is said with the reason": {
			corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Conditions: []corev1.PodCondition{{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "PreemptionByScheduler", Message: "default-scheduler: preempting to accommodate a higher priority pod",
			}}}},
			nil, "was taken away (PreemptionByScheduler): default-scheduler: preempting to accommodate a higher priority pod",
		},
		"a pod that its queue took back is said with what for": {
			corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Conditions: []corev1.PodCondition{{
				Type: "TerminationTarget", Status: corev1.ConditionTrue, Reason: "WorkloadEvicted", Message: "Preempted to accommodate a workload",
			}}}},
			nil, "was taken away by its queue: Preempted to accommodate a workload",
		},
		"a pod held by a finalizer is said with it": {
			corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}, Finalizers: []string{"example.com/hold"}}},
			nil,
			"is being deleted and waits for finalizer example.com/hold",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.pod.Name, c.pod.UID = "w", "w1"
			var want []string
			if c.want != "" {
				want = []string{"pod w: " + c.want}
			}
			if got := Explain([]corev1.Pod{c.pod}, c.events); !slices.Equal(got, want) {
				t.Errorf("\n got %q\nwant %q", got, want)
			}
		})
	}
}

func TestEventsAbout(t *testing.T) {
	event := func(kind, name string, uid types.UID, second int64) corev1.Event {
		return corev1.Event{
			Reason: "R", Message: "m", InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name, UID: uid},
			EventTime: metav1.NewMicroTime(time.Unix(second, 0)),
		}
	}
	events := []corev1.Event{
		event("Pod", "a-worker-0", "worker", 5), event("Job", "a", "job", 4), event("Pod", "a-x7k2p", "master", 3),
		event("Job", "a", "earlier job", 6), event("Pod", "a-worker-0", "earlier worker", 7), event("Job", "a", "", 8), event("Job", "a", "job", 1),
	}
	got := EventLines(EventsAbout(events, map[types.UID]bool{"job": true, "master": true, "worker": true}), 3)
	want := []string{"1970-01-01T00:00:03Z R pod/a-x7k2p: m", "1970-01-01T00:00:04Z R job/a: m", "1970-01-01T00:00:05Z R pod/a-worker-0: m"}
	if !slices.Equal(got, want) {
		t.Errorf("the newest events of the objects with these UIDs, and of no earlier ones of the same name:\n got %q\nwant %q", got, want)
	}
}

func TestBlockedPodsAreThoseThatDoNotStartByThemselves(t *testing.T) {
	pending := func(conditions ...corev1.PodCondition) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}, Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: conditions}}
	}
	waits := func(reason string) corev1.Pod {
		pod := pending()
		pod.Spec.NodeName = "node-1"
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "task", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
		return pod
	}
	unscheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}
	preempting := pending(unscheduled)
	preempting.Status.NominatedNodeName = "node-2"
	going := pending(unscheduled)
	going.DeletionTimestamp = &metav1.Time{}
	unmounted := []corev1.Event{{Type: corev1.EventTypeWarning, Reason: "FailedMount", Message: "configmap not found", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "p", UID: "u"}}}
	for name, c := range map[string]struct {
		pod     corev1.Pod
		events  []corev1.Event
		blocked bool
		asks    bool // for events
	}{
		"an image that is not there":         {waits("ImagePullBackOff"), nil, true, false},
		"a container that is being made":     {waits("ContainerCreating"), nil, false, true},
		"a volume that cannot be mounted":    {waits("ContainerCreating"), unmounted, true, true},
		"a pod that fits nowhere":            {pending(unscheduled), nil, true, false},
		"a pod that preempts others":         {preempting, nil, false, false},
		"a pod that its queue holds back":    {pending(corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}), nil, false, false},
		"a pod that nobody has looked at":    {pending(), nil, false, false},
		"a pod that is being deleted":        {going, nil, false, false},
		"a pod that runs":                    {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}, nil, false, false},
		"a pod that has failed is no longer": {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}, nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			pods := []corev1.Pod{c.pod}
			if got := Blocked(pods, c.events); (len(got) > 0) != c.blocked {
				t.Errorf("blocked: %q", got)
			}
			if got := MayBeBlocked(pods); got != c.asks {
				t.Errorf("asks for events: %t", got)
			}
		})
	}
}
