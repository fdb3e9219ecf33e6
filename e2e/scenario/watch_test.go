package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

func TestPodEventHasThePodsState(t *testing.T) {
	now := metav1.Now()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "low-prio-job-worker-1", UID: "u1", DeletionTimestamp: &now,
			Labels: map[string]string{trainingjob.LabelJobName: LowJob, trainingjob.LabelRole: "worker"},
		},
		Spec: corev1.PodSpec{NodeName: "node-2", PriorityClassName: "low-priority"},
		Status: corev1.PodStatus{
			Phase: corev1.PodFailed,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, Message: "not of interest"},
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: eventlog.PreemptionByScheduler, Message: "room"},
			},
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 143, Reason: "Error"},
			}}},
		},
	}
	code := int32(143)
	want := &eventlog.Event{Pod: &eventlog.Pod{
		Name: "low-prio-job-worker-1", UID: "u1", Job: LowJob, Role: "worker", PriorityClass: "low-priority", Node: "node-2",
		Phase: "Failed", Disruption: eventlog.PreemptionByScheduler, Cause: "room", Deleting: true, ExitCode: &code, Reason: "Error",
	}}
	if diff := cmp.Diff(want, podEvent(watch.Modified, pod)); diff != "" {
		t.Error(diff)
	}
	if event := podEvent(watch.Error, &metav1.Status{}); event != nil {
		t.Errorf("a watch's error became %+v", event)
	}
}

func TestPodEventOfAGatedPodIsNotUnschedulable(t *testing.T) {
	for reason, want := range map[string]string{corev1.PodReasonUnschedulable: "no room", corev1.PodReasonSchedulingGated: ""} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: "no room"},
		}}}
		if got := podEvent(watch.Modified, pod).Pod.Unschedulable; got != want {
			t.Errorf("with reason %s it is unschedulable for %q, want %q", reason, got, want)
		}
	}
}

func TestJobEventAcceptsOnlyStatusConfigMaps(t *testing.T) {
	report := func(name, text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{trainingjob.StatusKey: text}}
	}
	event := jobEvent(watch.Modified, report(trainingjob.StatusName(LowJob), `{"phase":"Running","steps_done":7}`))
	if event == nil || event.Job.Name != LowJob || event.Job.Status.StepsDone != 7 {
		t.Errorf("the report became %+v", event)
	}
	for name, configMap := range map[string]*corev1.ConfigMap{
		"another config map":     report(trainingjob.ConfigMapName(LowJob), `{}`),
		"a report without text":  {ObjectMeta: metav1.ObjectMeta{Name: trainingjob.StatusName(LowJob)}},
		"a report without sense": report(trainingjob.StatusName(LowJob), `{`),
	} {
		if event := jobEvent(watch.Modified, configMap); event != nil {
			t.Errorf("%s became %+v", name, event)
		}
	}
}

func TestReconcileAddsOnlyWhatHasChanged(t *testing.T) {
	at := func(name, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: version}}
	}
	before, err := objectsOf(&corev1.PodList{Items: []corev1.Pod{*at("same", "1"), *at("gone", "2"), *at("other", "3")}})
	if err != nil {
		t.Fatal(err)
	}
	after, err := objectsOf(&corev1.PodList{Items: []corev1.Pod{*at("same", "1"), *at("other", "5"), *at("new", "4")}})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	before.reconcile(after, func(kind watch.EventType, object runtime.Object) {
		seen = append(seen, string(kind)+" "+object.(*corev1.Pod).Name)
	})
	if diff := cmp.Diff([]string{"DELETED gone", "MODIFIED new", "MODIFIED other"}, seen); diff != "" {
		t.Error(diff)
	}
}
