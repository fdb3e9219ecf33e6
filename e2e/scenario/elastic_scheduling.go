package scenario

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// The tutorial among the examples, and the model file that it names.
const (
	tutorialExample = "tutorials/elastic-scheduling"
	tutorialModel   = "models/mnist_functional_api.py"
)

// elasticScheduling is the story of the tutorial: a low-priority job with two workers, a high-priority job that takes
// one of them away, and both finish.
type elasticScheduling struct {
	lowLasts  time.Duration
	highLasts time.Duration // at most; less when the low job would not outlive it well
}

// Stages of the story.
const (
	StageCalibrate  = "calibrate"
	StageSubmitLow  = "submit-low"
	StageGrowLow    = "grow-low"
	StageSubmitHigh = "submit-high"
)

// LowSelector is the tutorial's label selector of the first job.
const LowSelector = trainingjob.LabelJobName + "=" + LowJob

func (s elasticScheduling) tell(ctx context.Context, t *telling) error {
	t.stage(StageCalibrate, "How fast is this machine? One short run without a cluster.")
	pace, err := t.measurePace(ctx)
	if err != nil {
		return err
	}
	lowEpochs := pace.epochs(s.lowLasts)
	t.say("From here on it takes about %s, if this machine stays as busy as it is.", wording.Number(minutes(pace.story(lowEpochs)), "minute"))
	t.vars["image"] = t.cluster.Image
	t.vars["data_host_path"] = t.cluster.DataDir
	t.vars["low_epochs"] = strconv.Itoa(lowEpochs)
	t.vars["low_workers"] = "1"
	t.vars["submit_high"] = "false"

	// The first job starts with one worker and is given its second one later: that is the tutorial's job, and the
	// worker that will be preempted is determined.
	t.stage(StageSubmitLow, "terraform apply: %s, %s, one worker for now.", LowJob, wording.Number(lowEpochs, "epoch"))
	if err := t.apply(ctx, StageSubmitLow); err != nil {
		return err
	}
	if err := t.log.Wait(ctx, LowJob+" trains with one worker", startLimit, membersOf(LowJob, 1)); err != nil {
		return err
	}
	if err := waitSince(ctx, lastStart(t.log)); err != nil {
		return err
	}

	t.vars["low_workers"] = "2"
	t.stage(StageGrowLow, "terraform apply: a second worker, in place.")
	if err := t.apply(ctx, StageGrowLow); err != nil {
		return err
	}
	if err := t.log.Wait(ctx, LowJob+" trains with two workers", startLimit, membersOf(LowJob, 2)); err != nil {
		return err
	}
	if err := recordListing(ctx, t.clients.kubernetes, t.cluster.Namespace, t.log); err != nil {
		return err
	}

	highEpochs := highEpochs(pace, s.highLasts, remainingAt(eventlog.Replay(t.log.Events()).Job(LowJob).Points, time.Now()))
	t.vars["high_epochs"], t.vars["submit_high"] = strconv.Itoa(highEpochs), "true"
	t.stage(StageSubmitHigh, "terraform apply: %s, %s. There is no room for its worker.", HighJob, wording.Number(highEpochs, "epoch"))
	if err := t.apply(ctx, StageSubmitHigh); err != nil {
		return err
	}
	if err := t.log.Wait(ctx, HighJob+" trains", preemptLimit, membersOf(HighJob, 1)); err != nil {
		return err
	}
	if err := t.succeed(ctx, HighJob, LowJob); err != nil {
		return err
	}

	t.stage(StageFinished, "Both jobs have finished.")
	if err := t.plan(ctx, StageFinished); err != nil {
		return err
	}
	model, err := finalModel(ctx, t.clients.kubernetes, t.cluster.Namespace, LowJob)
	if err != nil {
		return err
	}
	if err := t.destroy(ctx); err != nil {
		return err
	}

	t.stage(StageCompare, "The same job once more, undisturbed and without a cluster: is its model the same?")
	return t.compare(ctx, model, localRun{job: LowJob, part: trainPart, epochs: lowEpochs, gradsToWait: tutorialGradsToWait})
}

func recordListing(ctx context.Context, client kubernetes.Interface, namespace string, log *Log) error {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: LowSelector})
	if err != nil {
		return fmt.Errorf("list the pods of %s: %w", LowSelector, err)
	}
	listing := eventlog.Listing{Selector: LowSelector}
	for _, pod := range pods.Items {
		listing.Pods = append(listing.Pods, pod.Name)
	}
	log.Add(eventlog.Event{Listing: &listing})
	return nil
}

// finalModel is the SHA-256 of a job's final model, of the bytes themselves in ConfigMap NAME-model.
func finalModel(ctx context.Context, client kubernetes.Interface, namespace, job string) (string, error) {
	name := trainingjob.ModelName(job)
	configMap, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("the final model of %s: %w", job, err)
	}
	model, ok := configMap.BinaryData[modelFileName]
	if !ok {
		return "", fmt.Errorf("the final model of %s: config map %s holds no %s", job, name, modelFileName)
	}
	sum := sha256.Sum256(model)
	return hex.EncodeToString(sum[:]), nil
}

// membersOf waits for a job to train with that many workers, and for their pods to be seen running: a worker tells its
// master that it is there before its kubelet tells the API server.
func membersOf(job string, workers int) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) {
		status := h.Job(job).Last().Status
		for _, worker := range status.Workers {
			run := func(life *eventlog.Life) bool { return life.Name == worker.Pod && !life.Running.IsZero() }
			if worker.State == workerReady && !slices.ContainsFunc(h.PodsOf(job, trainingjob.RoleWorker), run) {
				return false, notFailed(job, status)
			}
		}
		return status.WorkersRunning == workers && status.StepsDone > 0, notFailed(job, status)
	}
}

// workerReady is the state of a worker that computes, in a master's report.
const workerReady = "ready"

// succeed waits for jobs to have succeeded, one after the other, and for their pods and workloads to say so too: what
// they say is told, and destruction would come in between.
func (t *telling) succeed(ctx context.Context, jobs ...string) error {
	for _, job := range jobs {
		if err := t.log.Wait(ctx, job+" has succeeded", finishLimit, succeeded(job)); err != nil {
			return err
		}
	}
	for _, job := range jobs {
		if err := t.log.Wait(ctx, "the pods of "+job+" have ended", startLimit, nothingRuns(job)); err != nil {
			return err
		}
		if err := t.log.Wait(ctx, "the workload of "+job+" is finished", startLimit, workloadFinished(job)); err != nil {
			return err
		}
	}
	return nil
}

func succeeded(job string) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) {
		status := h.Job(job).Last().Status
		return status.Phase == trainingjob.PhaseSucceeded, notFailed(job, status)
	}
}

// nothingRuns waits until no pod of a job runs any more.
func nothingRuns(job string) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) {
		for _, life := range h.Pods {
			if life.Job == job && !life.Running.IsZero() && life.Ended.IsZero() {
				return false, nil
			}
		}
		return true, nil
	}
}

// workloadFinished waits until a job's own workload is finished, where it has one.
func workloadFinished(job string) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) {
		workload := ownWorkload(h, job)
		return workload.UID == "" || workload.Finished, nil
	}
}

func notFailed(job string, status trainingjob.Status) error {
	if status.Phase == trainingjob.PhaseFailed {
		return fmt.Errorf("%s failed: %s", job, status.Message)
	}
	return nil
}

// lastStart is when the low job's newest worker began to run.
func lastStart(log *Log) time.Time {
	var last time.Time
	for _, worker := range eventlog.Replay(log.Events()).PodsOf(LowJob, "worker") {
		if worker.Running.After(last) {
			last = worker.Running
		}
	}
	return last
}

// waitSince waits until minStartGap has passed since a worker's start. This is no wait for something to happen: the
// passing of time is what is wanted.
func waitSince(ctx context.Context, start time.Time) error {
	select {
	case <-time.After(time.Until(start.Add(minStartGap))):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
