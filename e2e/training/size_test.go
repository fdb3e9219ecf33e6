package training_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

func TestAJobIsResizedWhileItRuns(t *testing.T) {
	t.Parallel()
	d := paced(define(t, referenceModel), 200*time.Millisecond)
	d.Job.Training.Epochs = 1000 // it is resized, not finished
	j := start(t, d)
	atWork := func(n int) func([]corev1.Pod) bool {
		return func(pods []corev1.Pod) bool { return len(living(pods)) == n && len(running(pods)) == n }
	}
	minimum := func(pods []corev1.Pod) int {
		n := 0
		for _, p := range living(pods) {
			if p.Labels[trainingjob.LabelMinimum] == "true" {
				n++
			}
		}
		return n
	}
	j.awaitWorkers("two workers at first", atWork(2))
	j.setSize(1, 4)
	j.awaitWorkers("four workers when max is raised", atWork(4))
	j.awaitStatus("four members", func(s trainingjob.Status) bool { return s.WorkersRunning == 4 })
	j.setSize(1, 2)
	left := j.awaitWorkers("two workers when max is lowered", func(pods []corev1.Pod) bool { return len(pods) == 2 || len(living(pods)) == 2 })
	for _, p := range living(left) {
		if id, _ := trainingjob.WorkerID(&p); id > 1 {
			t.Errorf("worker %d is left: the highest numbers go first", id)
		}
	}
	j.setSize(2, 2)
	j.awaitWorkers("a second minimum pod in a burst pod's place when min is raised", func(pods []corev1.Pod) bool {
		return len(living(pods)) == 2 && minimum(pods) == 2
	})
	j.awaitStatus("two members of the minimum", func(s trainingjob.Status) bool { return s.WorkersRunning == 2 && s.Phase == trainingjob.PhaseRunning })
	if s, err := j.status(t.Context()); err != nil || s.Preemptions != 0 || s.Disruptions != nil {
		t.Errorf("a resize is no preemption: %+v %v", s, err)
	}
}

func TestAJobWithoutCapacityReportsTheReason(t *testing.T) {
	t.Parallel()
	d := define(t, referenceModel)
	d.Workers.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100")
	j := start(t, d)
	j.awaitStatus("the scheduler's reason", func(s trainingjob.Status) bool {
		return s.Phase == trainingjob.PhaseWaiting && has(s.Message, "0 of at least 1 workers are ready", "workers 0, 1 are pending", "Insufficient cpu")
	})
}
