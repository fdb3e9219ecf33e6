package scenario

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// The second tutorial among the examples, and the configuration in it that reads data.elastic_workloads.
const (
	queueExample     = "tutorials/queue-priorities"
	workloadsExample = queueExample + "/workloads"
)

// Names of the scenario's tasks.
const (
	LowTask  = "low"
	HighTask = "high"
)

// queuePriorities is the scenario of the second tutorial: a low-priority task uses the whole quota of a queue, a
// high-priority task preempts it, and Kueue admits the low one again when the high one has finished.
type queuePriorities struct {
	highLasts time.Duration // the guide's task takes eleven days
}

// Stages of the scenario, besides StageSubmitLow, StageForecast, StageSubmitHigh and StageDestroy.
const (
	StageQueues = "queues"
	StageReturn = "return"
)

func (s queuePriorities) run(ctx context.Context, r *runner) error {
	r.vars["high_seconds"] = strconv.Itoa(int(s.highLasts.Seconds()))
	r.vars["submit_low"], r.vars["submit_high"] = "false", "false"
	if r.cluster.TaskImage != "" {
		r.vars["image"] = r.cluster.TaskImage
	}
	r.beginStage(StageQueues, "terraform apply: a flavor, a queue with quota for four GPUs, two priority classes.")
	if err := r.apply(ctx, StageQueues); err != nil {
		return err
	}

	r.vars["submit_low"] = "true"
	r.beginStage(StageSubmitLow, "terraform apply: submit task %s, which uses all four GPUs.", LowTask)
	if err := r.apply(ctx, StageSubmitLow); err != nil {
		return err
	}
	if err := r.log.Wait(ctx, LowTask+" runs", startLimit, taskRuns(LowTask, 1)); err != nil {
		return err
	}
	if err := r.recordQueriedWorkloads(ctx, StageSubmitLow); err != nil {
		return err
	}

	r.vars["submit_high"] = "true"
	r.beginStage(StageForecast, "terraform plan: what would task %s evict, which needs the same four GPUs?", HighTask)
	if err := r.forecast(ctx, StageSubmitHigh); err != nil {
		return err
	}
	r.beginStage(StageSubmitHigh, "terraform apply: submit task %s.", HighTask)
	if err := r.apply(ctx, StageSubmitHigh); err != nil {
		return err
	}
	if err := r.log.Wait(ctx, HighTask+" runs", preemptLimit, taskRuns(HighTask, 1)); err != nil {
		return err
	}
	if err := r.log.Wait(ctx, LowTask+" waits in the queue", preemptLimit, workloadWaits(LowTask)); err != nil {
		return err
	}
	if err := r.recordQueriedWorkloads(ctx, StageSubmitHigh); err != nil {
		return err
	}

	r.beginStage(StageReturn, "No user action: %s finishes after %d s.", HighTask, int(s.highLasts.Seconds()))
	if err := r.log.Wait(ctx, LowTask+" runs again", finishLimit, taskRuns(LowTask, 2)); err != nil {
		return err
	}
	if err := r.plan(ctx, StageReturn); err != nil {
		return err
	}
	if err := r.recordQueriedWorkloads(ctx, StageReturn); err != nil {
		return err
	}
	return r.destroy(ctx)
}

// recordQueriedWorkloads records the result of data.elastic_workloads.
func (r *runner) recordQueriedWorkloads(ctx context.Context, after string) error {
	var workloads []struct {
		Owner   eventlog.Owner `json:"owner"`
		Queue   string         `json:"queue"`
		Phase   string         `json:"phase"`
		Message string         `json:"message"`
	}
	if err := r.tf.output(ctx, workloadsExample, variables{"config_path": r.vars["config_path"], "namespace": r.vars["namespace"]},
		"workloads", &workloads); err != nil {
		return fmt.Errorf("data.elastic_workloads after stage %s: %w", after, err)
	}
	queried := eventlog.QueriedWorkloads{After: after}
	for _, w := range workloads {
		queried.Workloads = append(queried.Workloads, eventlog.QueriedWorkload{Owner: w.Owner.Name, Queue: w.Queue, Phase: w.Phase, Reason: w.Message})
	}
	r.log.Add(eventlog.Event{Queried: &queried})
	return nil
}

// taskRuns waits until that many pods of a task have started.
func taskRuns(task string, times int) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) { return len(ranPods(h, task)) >= times, nil }
}

// workloadWaits waits until a task's workload has lost its quota and reported why it waits, and fails once it has its quota
// again: then it is too late to ask for that.
func workloadWaits(task string) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) {
		for _, workload := range h.WorkloadsOf(task) {
			if workload.ReservedIn == "" && workload.Waits != "" {
				return true, nil
			}
			if len(admissions(workload)) > 1 {
				return false, fmt.Errorf("%s was admitted again before it was seen to wait: this machine is busier than the scenario allows for", task)
			}
		}
		return false, nil
	}
}

// ranPods are the pods of a task that ran, in the order of their creation.
func ranPods(h *eventlog.History, task string) []*eventlog.PodHistory {
	var pods []*eventlog.PodHistory
	for _, pod := range h.Pods {
		if pod.Job == task && !pod.Running.IsZero() {
			pods = append(pods, pod)
		}
	}
	return pods
}
