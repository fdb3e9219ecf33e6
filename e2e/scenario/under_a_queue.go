package scenario

import (
	"context"
	"strconv"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// The example of an elastic job under a queue.
const underAQueueExample = "elastic-under-a-queue"

// Names of the scenario's jobs: the elastic one, and two urgent ones with one and with three workers.
const (
	ElasticJob = "elastic"
	UrgentJob  = "urgent"
	LargeJob   = "large"
)

// The elastic job's workers, and those that remain while the smaller urgent job uses two of the queue's five CPUs.
const (
	elasticWorkers = 4
	shrunkWorkers  = 2
)

// The elastic job's duration: long enough to shrink and to grow back before it is evicted.
const (
	underAQueueEpochs = 3
	underAQueuePace   = 50 * time.Millisecond // a lower bound for each gradient, so that the job lasts long enough on a fast machine too
)

// Stages of the scenario, besides StageFinished, StageDestroy and StageCompare.
const (
	StageSubmit = "submit"
	StageShrink = "shrink"
	StageGrow   = "grow"
	StageEvict  = "evict"
	StageAgain  = "again"
)

// runUnderAQueue runs an elastic job in a Kueue queue: it shrinks when an urgent job needs two CPUs, grows back, is
// evicted as a whole when a larger job needs four, and is admitted again.
func runUnderAQueue(ctx context.Context, r *runner) error {
	r.vars["image"], r.vars["data_host_path"] = r.cluster.Image, r.cluster.DataDir
	r.vars["epochs"], r.vars["pace"] = strconv.Itoa(underAQueueEpochs), patience.Scaled(underAQueuePace).String()

	r.beginStage(StageSubmit, "terraform apply: a queue of five CPUs, and job %s, of a master and one to four workers.", ElasticJob)
	if err := r.apply(ctx, StageSubmit); err != nil {
		return err
	}
	if err := r.log.Wait(ctx, ElasticJob+" trains with four workers", startLimit, trainsWith(ElasticJob, elasticWorkers)); err != nil {
		return err
	}

	r.vars["urgent"] = `{"` + UrgentJob + `"=1}`
	r.beginStage(StageShrink, "terraform apply: submit job %s, which needs two CPUs.", UrgentJob)
	if err := r.apply(ctx, StageShrink); err != nil {
		return err
	}
	if err := r.log.Wait(ctx, ElasticJob+" has trained with two workers", preemptLimit, hasTrainedWith(ElasticJob, shrunkWorkers)); err != nil {
		return err
	}

	r.beginStage(StageGrow, "No user action: %s finishes.", UrgentJob)
	if err := r.waitForSuccess(ctx, UrgentJob); err != nil {
		return err
	}
	if err := r.log.Wait(ctx, ElasticJob+" trains with four workers again", preemptLimit, trainsWith(ElasticJob, elasticWorkers)); err != nil {
		return err
	}
	if err := r.plan(ctx, StageGrow); err != nil {
		return err
	}

	r.vars["urgent"] = `{"` + UrgentJob + `"=1,"` + LargeJob + `"=3}`
	r.beginStage(StageEvict, "terraform apply: submit job %s, which needs four CPUs, more than the workers above the minimum use.", LargeJob)
	if err := r.apply(ctx, StageEvict); err != nil {
		return err
	}
	if err := r.log.Wait(ctx, "every pod of "+ElasticJob+" has ended", preemptLimit, nothingRuns(ElasticJob)); err != nil {
		return err
	}

	r.beginStage(StageAgain, "No user action: %s finishes.", LargeJob)
	if err := r.waitForSuccess(ctx, LargeJob, ElasticJob); err != nil {
		return err
	}

	r.beginStage(StageFinished, "All jobs have finished.")
	if err := r.plan(ctx, StageFinished); err != nil {
		return err
	}
	model, err := finalModel(ctx, r.clients.kubernetes, r.cluster.Namespace, ElasticJob)
	if err != nil {
		return err
	}
	if err := r.destroy(ctx); err != nil {
		return err
	}
	r.beginStage(StageCompare, "The same training once more, undisturbed and without a cluster: is its model the same?")
	return r.compareModel(ctx, model, localRun{job: ElasticJob, part: trainPart, epochs: underAQueueEpochs, gradsToWait: elasticWorkers})
}

// hasTrainedWith waits until a job has trained with that many workers since the last stage began.
func hasTrainedWith(job string, workers int) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) {
		since := h.Stages[len(h.Stages)-1].Time
		for _, point := range h.Job(job).Points {
			if point.Time.After(since) && point.Status.WorkersRunning == workers && point.Status.Phase == trainingjob.PhaseRunning {
				return true, nil
			}
		}
		return false, notOver(job, h.Job(job).Last().Status)
	}
}
