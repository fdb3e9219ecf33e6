package audit_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/audit"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

// simulated is the audit of a log of the simulator's own tests.
func simulated(t *testing.T, name string) audit.Report {
	t.Helper()
	events, err := eventlog.ReadFile(filepath.Join("..", "..", "scheduler", "simulator", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return audit.OfLog(events)
}

func TestTheAuditOfASimulationNamesThePreemptorAndTheCost(t *testing.T) {
	for name, want := range map[string][]audit.Entry{
		"elastic-scheduling.jsonl": {{Job: "low-prio-job", Class: "low-priority", ByClass: "high-priority", Disruption: trainingjob.Disruption{
			At: at(6.102), Role: "worker", Workers: 3, Step: 1449, Recovered: new(0.2), FullSize: new(8.5),
			DisruptionCause: trainingjob.DisruptionCause{Pod: "low-prio-job-worker-1", UID: "2", Kind: "preempted", Reason: "PreemptionByScheduler", By: "pod high-prio-job-worker-0"},
		}}},
		// A gang without checkpoints computes its minute again, after two minutes and five seconds without room.
		"queue-priorities.jsonl": {{Job: "low", Class: "low-priority", ByClass: "high-priority", Disruption: trainingjob.Disruption{
			At: at(60), Workers: 1, LostSeconds: 184.001, Recovered: new(184.001), FullSize: new(125.002),
			DisruptionCause: trainingjob.DisruptionCause{Pod: "workload job-low", Kind: "preempted", Reason: "InClusterQueue", By: "workload job-high"},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := simulated(t, name)
			for i := range r.Disruptions {
				r.Disruptions[i].ByUID, r.Disruptions[i].Message = "", ""
			}
			if diff := cmp.Diff(want, r.Disruptions); diff != "" {
				t.Error(diff)
			}
			if len(r.Sums) != 1 || r.Sums[0].Count != 1 || r.Sums[0].ByClass != "high-priority" || r.Sums[0].LostSeconds != want[0].LostSeconds {
				t.Errorf("the sums are %+v", r.Sums)
			}
		})
	}
}

func TestAMastersOwnRecordIsTakenWithWhatTheLogKnowsBesides(t *testing.T) {
	victim := eventlog.Pod{Name: "low-worker-1", UID: "v", Job: "low", Role: "worker", PriorityClass: "low", Phase: "Running"}
	taken := victim
	taken.Disruption, taken.Deleting = eventlog.PreemptionByScheduler, true
	reported := trainingjob.Disruption{At: at(2), Role: "worker", LostSteps: 3, LostSeconds: 1.5, DisruptionCause: trainingjob.DisruptionCause{
		Pod: victim.Name, Kind: trainingjob.DisruptionPreempted, Reason: "PreemptionByScheduler", ByUID: "h",
	}}
	recovered := reported
	recovered.Recovered = new(1.75)
	status := func(d trainingjob.Disruption) *eventlog.Job {
		return &eventlog.Job{Name: "low", Status: trainingjob.Status{Phase: trainingjob.PhaseRunning, Disruptions: &trainingjob.Disruptions{Count: 1, Newest: []trainingjob.Disruption{d}}}}
	}
	r := audit.OfLog([]eventlog.Event{
		{Time: at(0), Pod: &victim},
		{Time: at(1), Pod: &eventlog.Pod{Name: "high-worker-0", UID: "h", Job: "high", PriorityClass: "high", Phase: "Pending"}},
		{Time: at(2), Pod: &taken},
		{Time: at(3), Job: status(reported)},
		{Time: at(4), Job: status(recovered)},
	})
	if len(r.Disruptions) != 1 {
		t.Fatalf("got %+v", r)
	}
	if d := r.Disruptions[0]; d.LostSteps != 3 || d.Recovered == nil || d.By != "pod high-worker-0" || d.ByClass != "high" || d.Class != "low" {
		t.Errorf("got %+v", d)
	}
}

func TestAPodThatIsGoneWithItsNodeWasEvicted(t *testing.T) {
	pod := eventlog.Pod{Name: "a-0", UID: "a", Job: "a", Phase: "Running", Node: "n"}
	gone := pod
	gone.Deleted = true
	r := audit.OfLog([]eventlog.Event{
		{Time: at(0), Pod: &pod},
		{Time: at(1), Node: &eventlog.Node{Name: "n", Lost: true}},
		{Time: at(1), Pod: &gone},
		{Time: at(1), Lost: &eventlog.Lost{Job: "a", Steps: 4, Seconds: 8}},
	})
	if len(r.Disruptions) != 1 || r.Disruptions[0].Reason != "NodeLost" || r.Disruptions[0].LostSteps != 4 || r.Disruptions[0].Recovered != nil || r.Sums[0].LostSeconds != 8 {
		t.Errorf("got %+v", r)
	}
}

func TestTheAuditOfAClusterHasWhatMastersReportedAndOtherWorkloads(t *testing.T) {
	message := "Previously: Preempted to accommodate a workload (UID: w-high, JobUID: j) due to reclamation within the cohort; preemptor path: /a; preemptee path: /b"
	workload := func(name, class string, conditions ...metav1.Condition) *kueue.Workload {
		w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		w.Spec.PriorityClassRef, w.Status.Conditions = &kueue.PriorityClassRef{Name: class}, conditions
		return w
	}
	preempted := metav1.Condition{Type: kueue.WorkloadPreempted, Status: metav1.ConditionFalse, Message: message, LastTransitionTime: metav1.NewTime(at(9))}
	high := workload("job-high", "high")
	high.UID = "w-high"
	r := audit.OfCluster(audit.Cluster{
		Jobs: []audit.Job{{Namespace: "team", Name: "low", Status: trainingjob.Status{Disruptions: &trainingjob.Disruptions{Newest: []trainingjob.Disruption{
			{At: at(1), LostSeconds: 2, DisruptionCause: trainingjob.DisruptionCause{Pod: "low-worker-1", UID: "victim", Kind: trainingjob.DisruptionPreempted}},
		}}}}},
		Events: []corev1.Event{{InvolvedObject: corev1.ObjectReference{UID: "victim"}, Reason: "Preempted", Message: "Preempted by pod p-high on node n"}},
		Pods:   []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "urgent", UID: "p-high"}, Spec: corev1.PodSpec{PriorityClassName: "urgent"}}},
		Workloads: []*kueue.Workload{
			high, workload("job-batch", "batch", preempted), workload("low-min-1234abcd", "low", preempted), // whose master has reported
		},
	})
	if len(r.Disruptions) != 2 {
		t.Fatalf("got %+v", r.Disruptions)
	}
	if other := audit.OfCluster(audit.Cluster{Namespace: "other", Workloads: []*kueue.Workload{workload("job-batch", "batch", preempted)}}); len(other.Disruptions) != 0 {
		t.Errorf("of another namespace are %+v", other.Disruptions)
	}
	if d := r.Disruptions[0]; d.Job != "low" || d.By != "pod other/urgent" || d.ByClass != "urgent" {
		t.Errorf("got %+v", d)
	}
	if d := r.Disruptions[1]; d.Job != "job-batch" || d.Class != "batch" || d.By != "workload team/job-high" || d.ByClass != "high" || d.Reason != kueue.InCohortReclamationReason {
		t.Errorf("got %+v", d)
	}
}
