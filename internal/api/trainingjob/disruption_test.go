package trainingjob

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheCauseOfAPodsEndIsWhatItsConditionsSay(t *testing.T) {
	condition := func(kind corev1.PodConditionType, reason, message string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message}}}
	}
	killed := corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"},
	}}}}
	for name, test := range map[string]struct {
		status        corev1.PodStatus
		deleted       bool
		kind          DisruptionKind
		reason, byUID string
	}{
		"by kube-scheduler":        {condition(corev1.DisruptionTarget, "PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"), true, DisruptionPreempted, "PreemptionByScheduler", ""},
		"by Kueue":                 {condition("TerminationTarget", "WorkloadEvicted", "Preempted to accommodate a workload (UID: w-1, JobUID: j-1) due to reclamation within the cohort; preemptor path: /a; preemptee path: /b"), true, DisruptionPreempted, "InCohortReclamation", "w-1"},
		"by Kueue, for who knows":  {condition("TerminationTarget", "WorkloadEvicted", "Preempted to accommodate a workload (UID: UNKNOWN, JobUID: UNKNOWN) due to something new"), true, DisruptionPreempted, "WorkloadEvicted", ""},
		"by Kueue, in old words":   {condition("TerminationTarget", "WorkloadEvicted", "Preempted to accommodate a workload (UID: w-1) due to prioritization in the ClusterQueue"), true, DisruptionPreempted, "InClusterQueue", "w-1"},
		"by Kueue, queue stopped":  {condition("TerminationTarget", "WorkloadEvicted", "The ClusterQueue is stopped"), true, DisruptionEvicted, "WorkloadEvicted", ""},
		"through the eviction API": {condition(corev1.DisruptionTarget, "EvictionByEvictionAPI", "Eviction API: evicting"), true, DisruptionEvicted, "EvictionByEvictionAPI", ""},
		"deleted":                  {corev1.PodStatus{Phase: corev1.PodRunning}, true, DisruptionDeleted, "", ""},
		"out of memory":            {killed, false, DisruptionFailed, "OOMKilled", ""},
		"not at all":               {corev1.PodStatus{Phase: corev1.PodRunning}, false, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}, Status: test.status}
			if test.deleted {
				pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}
			if c := CauseOf(pod); c.Kind != test.kind || c.Reason != test.reason || c.ByUID != test.byUID || c.Pod != "p" || c.UID != "u" {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func TestALongMessageOfACauseIsCut(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Message: strings.Repeat("ä", 500),
	}}}}
	if c := CauseOf(pod); len(c.Message) > longestDisruptionMessage+len("…") || !strings.HasSuffix(c.Message, "ä…") {
		t.Errorf("%q", c.Message)
	}
}

func TestTheSchedulersEventNamesThePreemptor(t *testing.T) {
	taken := []Disruption{
		{DisruptionCause: DisruptionCause{UID: "victim", Kind: DisruptionPreempted}},
		{DisruptionCause: DisruptionCause{UID: "other", Kind: DisruptionPreempted}},
		{DisruptionCause: DisruptionCause{UID: "victim", Kind: DisruptionDeleted}},
	}
	events := []corev1.Event{{
		InvolvedObject: corev1.ObjectReference{UID: "victim"}, Reason: "Preempted", Message: "Preempted by pod uid-high on node node-1",
		Related: &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "high-worker-0"},
	}}
	named := NamePreemptors(taken, events)
	if got := named[0]; got.Preemptor() != "pod default/high-worker-0" || got.ByUID != "uid-high" || got.Why() != " (for pod default/high-worker-0)" {
		t.Errorf("got %+v", got)
	}
	if named[1].Preemptor() != "unknown" || named[2].Preemptor() != "" || taken[0].By != "" {
		t.Errorf("got %+v of %+v", named, taken)
	}
	events[0].Related = nil // as of an older scheduler
	byUID := NamePreemptors(taken, events)
	if got := byUID[0].Preemptor(); got != "UID uid-high" {
		t.Errorf("got %s", got)
	}
	if got := NameUIDs(byUID, map[string]string{"uid-high": "pod default/high-worker-0"}); got[0].Preemptor() != "pod default/high-worker-0" || got[1].By != "" {
		t.Errorf("got %+v", got)
	}
}
