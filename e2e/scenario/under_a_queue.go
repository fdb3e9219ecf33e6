package scenario

import (
	"context"
	"strconv"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// The example of an elastic job under a queue.
const underAQueueExample = "elastic-under-a-queue"

// Names of the story's jobs: the elastic one, and two urgent ones of one and of three workers.
const (
	ElasticJob = "elastic"
	UrgentJob  = "urgent"
	LargeJob   = "large"
)

// The elastic job's size, and what is left of it while the smaller urgent job has two of the queue's five CPUs.
const (
	elasticWorkers = 4
	shrunkWorkers  = 2
)

// How the elastic job takes its time: long enough to shrink and to grow back before it is evicted.
const (
	underAQueueEpochs = 3
	underAQueuePace   = "50ms" // a gradient lasts that long at least, so that the story takes its time on every machine
)

// Stages of the story, besides StageFinished, StageDestroy and StageCompare.
const (
	StageSubmit = "submit"
	StageShrink = "shrink"
	StageGrow   = "grow"
	StageEvict  = "evict"
	StageAgain  = "again"
)

// tellUnderAQueue is the story of an elastic job under a queue: it shrinks when an urgent job needs two CPUs, grows
// back, is evicted as a whole when a larger one needs four, and comes again.
func tellUnderAQueue(ctx context.Context, t *telling) error {
	t.vars["image"], t.vars["data_host_path"] = t.cluster.Image, t.cluster.DataDir
	t.vars["epochs"], t.vars["pace"] = strconv.Itoa(underAQueueEpochs), underAQueuePace

	t.stage(StageSubmit, "terraform apply: a queue of five CPUs, and job %s, of a master and one to four workers.", ElasticJob)
	if err := t.apply(ctx, StageSubmit); err != nil {
		return err
	}
	if err := t.log.Wait(ctx, ElasticJob+" trains with four workers", startLimit, membersOf(ElasticJob, elasticWorkers)); err != nil {
		return err
	}

	t.vars["urgent"] = `{"` + UrgentJob + `"=1}`
	t.stage(StageShrink, "terraform apply: job %s needs two CPUs.", UrgentJob)
	if err := t.apply(ctx, StageShrink); err != nil {
		return err
	}
	if err := t.log.Wait(ctx, ElasticJob+" has trained with two workers", preemptLimit, hadMembers(ElasticJob, shrunkWorkers)); err != nil {
		return err
	}

	t.stage(StageGrow, "Nobody does anything: %s ends.", UrgentJob)
	if err := t.succeed(ctx, UrgentJob); err != nil {
		return err
	}
	if err := t.log.Wait(ctx, ElasticJob+" trains with four workers again", preemptLimit, membersOf(ElasticJob, elasticWorkers)); err != nil {
		return err
	}
	if err := t.plan(ctx, StageGrow); err != nil {
		return err
	}

	t.vars["urgent"] = `{"` + UrgentJob + `"=1,"` + LargeJob + `"=3}`
	t.stage(StageEvict, "terraform apply: job %s needs four CPUs, those of master and floor among them.", LargeJob)
	if err := t.apply(ctx, StageEvict); err != nil {
		return err
	}
	if err := t.log.Wait(ctx, "every pod of "+ElasticJob+" has gone", preemptLimit, nothingRuns(ElasticJob)); err != nil {
		return err
	}

	t.stage(StageAgain, "Nobody does anything: %s ends.", LargeJob)
	if err := t.succeed(ctx, LargeJob, ElasticJob); err != nil {
		return err
	}

	t.stage(StageFinished, "All jobs have finished.")
	if err := t.plan(ctx, StageFinished); err != nil {
		return err
	}
	model, err := finalModel(ctx, t.clients.kubernetes, t.cluster.Namespace, ElasticJob)
	if err != nil {
		return err
	}
	if err := t.destroy(ctx); err != nil {
		return err
	}
	t.stage(StageCompare, "The same job once more, undisturbed and without a cluster: is its model the same?")
	return t.compare(ctx, model, localRun{job: ElasticJob, part: trainPart, epochs: underAQueueEpochs, gradsToWait: elasticWorkers})
}

// hadMembers waits until a job has trained with that many workers since the last stage began.
func hadMembers(job string, workers int) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) {
		since := h.Stages[len(h.Stages)-1].Time
		for _, point := range h.Job(job).Points {
			if point.Time.After(since) && point.Status.WorkersRunning == workers && point.Status.Phase == trainingjob.PhaseRunning {
				return true, nil
			}
		}
		return false, notFailed(job, h.Job(job).Last().Status)
	}
}
