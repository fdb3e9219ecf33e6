package scenario

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// The second tutorial among the examples, and the configuration in it that asks the queue.
const (
	queueExample     = "tutorials/queue-priorities"
	workloadsExample = queueExample + "/workloads"
)

// Names of the story's tasks.
const (
	LowTask  = "low"
	HighTask = "high"
)

// queuePriorities is the story of the second tutorial: a low-priority task takes the whole quota of a queue, a
// high-priority one takes it away, and when that has ended the low one runs again, without anyone's doing.
type queuePriorities struct {
	highLasts time.Duration // the page's task takes eleven days
}

// Stages of the story, besides StageSubmitLow, StageSubmitHigh and StageDestroy.
const (
	StageQueues = "queues"
	StageReturn = "return"
)

func (s queuePriorities) tell(ctx context.Context, t *telling) error {
	t.vars["high_seconds"] = strconv.Itoa(int(s.highLasts.Seconds()))
	t.vars["submit_low"], t.vars["submit_high"] = "false", "false"
	if t.cluster.TaskImage != "" {
		t.vars["image"] = t.cluster.TaskImage
	}
	t.stage(StageQueues, "terraform apply: a flavor, a queue with quota for four GPUs, two priority classes.")
	if err := t.apply(ctx, StageQueues); err != nil {
		return err
	}

	t.vars["submit_low"] = "true"
	t.stage(StageSubmitLow, "terraform apply: task %s takes all four GPUs.", LowTask)
	if err := t.apply(ctx, StageSubmitLow); err != nil {
		return err
	}
	if err := t.log.Wait(ctx, LowTask+" runs", startLimit, taskRuns(LowTask, 1)); err != nil {
		return err
	}
	if err := t.ask(ctx, StageSubmitLow); err != nil {
		return err
	}

	t.vars["submit_high"] = "true"
	t.stage(StageSubmitHigh, "terraform apply: task %s wants the same four GPUs.", HighTask)
	if err := t.apply(ctx, StageSubmitHigh); err != nil {
		return err
	}
	if err := t.log.Wait(ctx, HighTask+" runs", preemptLimit, taskRuns(HighTask, 1)); err != nil {
		return err
	}
	if err := t.log.Wait(ctx, LowTask+" waits in the queue", preemptLimit, workloadWaits(LowTask)); err != nil {
		return err
	}
	if err := t.ask(ctx, StageSubmitHigh); err != nil {
		return err
	}

	t.stage(StageReturn, "Nobody does anything: %s ends after %d s.", HighTask, int(s.highLasts.Seconds()))
	if err := t.log.Wait(ctx, LowTask+" runs again", finishLimit, taskRuns(LowTask, 2)); err != nil {
		return err
	}
	if err := t.plan(ctx, StageReturn); err != nil {
		return err
	}
	if err := t.ask(ctx, StageReturn); err != nil {
		return err
	}
	return t.destroy(ctx)
}

// ask records what data.elastic_workloads says.
func (t *telling) ask(ctx context.Context, after string) error {
	var workloads []struct {
		Owner   eventlog.Owner `json:"owner"`
		Queue   string         `json:"queue"`
		Phase   string         `json:"phase"`
		Message string         `json:"message"`
	}
	if err := t.tf.output(ctx, workloadsExample, variables{"config_path": t.vars["config_path"], "namespace": t.vars["namespace"]},
		"workloads", &workloads); err != nil {
		return fmt.Errorf("data.elastic_workloads after stage %s: %w", after, err)
	}
	answer := eventlog.Answer{After: after}
	for _, w := range workloads {
		answer.Workloads = append(answer.Workloads, eventlog.AnsweredWorkload{Owner: w.Owner.Name, Queue: w.Queue, Phase: w.Phase, Reason: w.Message})
	}
	t.log.Add(eventlog.Event{Answer: &answer})
	return nil
}

// taskRuns waits until so many pods of a task have begun to run.
func taskRuns(task string, times int) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) { return len(ranPods(h, task)) >= times, nil }
}

// workloadWaits waits until a task's workload has lost its quota and says why it waits.
func workloadWaits(task string) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) {
		for _, workload := range h.WorkloadsOf(task) {
			if workload.ReservedIn == "" && workload.Waits != "" {
				return true, nil
			}
		}
		return false, nil
	}
}

// ranPods are the pods of a task that ran, in the order of their creation.
func ranPods(h *eventlog.History, task string) []*eventlog.Life {
	var lives []*eventlog.Life
	for _, life := range h.Pods {
		if life.Job == task && !life.Running.IsZero() {
			lives = append(lives, life)
		}
	}
	return lives
}
