package forecast_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// admittedAt is a workload that was admitted some minutes before the snapshot and, with ran > 0, ended after so many.
func admittedAt(w *kueue.Workload, ago, ran int) *kueue.Workload {
	at := forecasttest.AsOf.Add(-time.Duration(ago) * time.Minute)
	w.CreationTimestamp = metav1.NewTime(at)
	w.Status.Conditions = slices.DeleteFunc(w.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kueue.WorkloadAdmitted })
	set := func(kind string, at time.Time) {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)})
	}
	set(kueue.WorkloadAdmitted, at)
	if ran > 0 {
		set(kueue.WorkloadFinished, at.Add(time.Duration(ran)*time.Minute))
	}
	return w
}

// ended are jobs that ended after an hour, the first of which came a week ago.
func ended(n int) (workloads []*kueue.Workload) {
	for i := range n {
		name := fmt.Sprintf("ended-%d", i)
		w, _ := runningTask(name, 100)
		workloads = append(workloads, admittedAt(w, 7*24*60, 60))
	}
	return workloads
}

func TestAJobThatWaitsForQuotaHasAnEstimateFromTheRunTimesOfOthers(t *testing.T) {
	running, pod := runningTask("busy", 1000)
	waiting := taskJob(t, forecasttest.Task("next", "user-queue", "high", "4", 1))
	estimate := func(finished int, change ...func(*forecast.Snapshot)) *forecast.Estimate {
		s := team(append(ended(finished), admittedAt(running.DeepCopy(), 20, 0)), pod)
		for _, c := range change {
			c(s)
		}
		answer := forecast.Run(t.Context(), s, nil, waiting)
		if answer.Outcome != forecast.Pends {
			t.Fatalf("it does not wait:\n%s", answer.Text())
		}
		return answer.Estimate
	}
	if e := estimate(4); e != nil {
		t.Errorf("four finished workloads do not tell run times: %+v", e)
	}
	e := estimate(6)
	if e == nil || e.At.Sub(forecasttest.AsOf).Round(time.Minute) != 40*time.Minute || !strings.Contains(e.From, "the run times of 6 finished Jobs of LocalQueue default/user-queue") {
		t.Errorf("all others ran for an hour, and this one has run for twenty minutes: %+v", e)
	}
	deadline := func(s *forecast.Snapshot) {
		limit := int64(30 * 60)
		s.BatchJobs = append(s.BatchJobs, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "busy", Namespace: "default", UID: running.OwnerReferences[0].UID}, Spec: batchv1.JobSpec{ActiveDeadlineSeconds: &limit},
		})
	}
	e = estimate(0, deadline)
	if e == nil || e.Latest.Sub(forecasttest.AsOf).Round(time.Minute) != 10*time.Minute || !e.Earliest.Before(e.At) || !strings.Contains(e.From, "deadlines") {
		t.Errorf("at the latest it starts at the deadline of the one before it: %+v", e)
	}
}
