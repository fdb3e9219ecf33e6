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

// elasticScheduling is the scenario of the first tutorial: a high-priority job preempts one of a low-priority job's two
// workers, and both jobs finish.
type elasticScheduling struct {
	lowLasts  time.Duration
	highLasts time.Duration // at most; less if the low job would finish too soon after it
}

// Stages of the scenario.
const (
	StageCalibrate  = "calibrate"
	StageSubmitLow  = "submit-low"
	StageGrowLow    = "grow-low"
	StageForecast   = "forecast" // of what the next stage submits
	StageSubmitHigh = "submit-high"
)

// LowSelector is the tutorial's label selector of the first job.
const LowSelector = trainingjob.LabelJobName + "=" + LowJob

func (s elasticScheduling) run(ctx context.Context, r *runner) error {
	r.beginStage(StageCalibrate, "Calibration: a short training run without a cluster measures the speed of this machine.")
	calibration, err := r.calibrate(ctx)
	if err != nil {
		return err
	}
	lowEpochs := calibration.epochs(s.lowLasts)
	r.logf("The rest takes about %s if the load of this machine does not change.", wording.Number(minutes(calibration.scenarioLength(lowEpochs)), "minute"))
	r.vars["image"] = r.cluster.Image
	r.vars["data_host_path"] = r.cluster.DataDir
	r.vars["low_epochs"], r.vars["pace"] = strconv.Itoa(lowEpochs), calibration.pace().String()
	r.vars["low_workers"] = "1"
	r.vars["submit_high"] = "false"

	// The first job starts with one worker and is resized to two later, so that the workers' start times differ:
	// kube-scheduler preempts the pod that started last.
	r.beginStage(StageSubmitLow, "terraform apply: submit %s, %s, one worker for now.", LowJob, wording.Number(lowEpochs, "epoch"))
	if err := r.apply(ctx, StageSubmitLow); err != nil {
		return err
	}
	if err := r.log.Wait(ctx, LowJob+" trains with one worker", startLimit, trainsWith(LowJob, 1)); err != nil {
		return err
	}
	if err := waitSince(ctx, lastStart(r.log)); err != nil {
		return err
	}

	r.vars["low_workers"] = "2"
	r.beginStage(StageGrowLow, "terraform apply: resize it to two workers, in place.")
	if err := r.apply(ctx, StageGrowLow); err != nil {
		return err
	}
	if err := r.log.Wait(ctx, LowJob+" trains with two workers", startLimit, trainsWith(LowJob, 2)); err != nil {
		return err
	}
	if err := recordListing(ctx, r.clients.kubernetes, r.cluster.Namespace, r.log); err != nil {
		return err
	}

	r.vars["submit_high"] = "true"
	r.beginStage(StageForecast, "terraform plan: what would %s evict? No node has room for its worker.", HighJob)
	if err := r.forecast(ctx, StageSubmitHigh); err != nil {
		return err
	}

	highEpochs := highEpochs(calibration, s.highLasts, remainingAt(eventlog.Replay(r.log.Events()).Job(LowJob).Points, time.Now()))
	r.vars["high_epochs"] = strconv.Itoa(highEpochs)
	r.beginStage(StageSubmitHigh, "terraform apply: submit %s, %s.", HighJob, wording.Number(highEpochs, "epoch"))
	if err := r.apply(ctx, StageSubmitHigh); err != nil {
		return err
	}
	if err := r.log.Wait(ctx, HighJob+" trains", preemptLimit, trainsWith(HighJob, 1)); err != nil {
		return err
	}
	if err := r.waitForSuccess(ctx, HighJob, LowJob); err != nil {
		return err
	}

	r.beginStage(StageFinished, "Both jobs have finished.")
	if err := r.plan(ctx, StageFinished); err != nil {
		return err
	}
	model, err := finalModel(ctx, r.clients.kubernetes, r.cluster.Namespace, LowJob)
	if err != nil {
		return err
	}
	if err := r.destroy(ctx); err != nil {
		return err
	}

	r.beginStage(StageCompare, "The same training once more, undisturbed and without a cluster: is its model the same?")
	return r.compareModel(ctx, model, localRun{job: LowJob, part: trainPart, epochs: lowEpochs, gradsToWait: tutorialGradsToWait})
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

// trainsWith waits until a job trains with that many workers and their pods are observed Running: a worker joins its
// master before its kubelet updates the pod's status.
func trainsWith(job string, workers int) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) {
		status := h.Job(job).Last().Status
		for _, worker := range status.Workers {
			run := func(pod *eventlog.PodHistory) bool { return pod.Name == worker.Pod && !pod.Running.IsZero() }
			if worker.State == workerReady && !slices.ContainsFunc(h.PodsOf(job, trainingjob.RoleWorker), run) {
				return false, notOver(job, status)
			}
		}
		if status.WorkersRunning == workers && status.StepsDone > 0 {
			return true, nil
		}
		return false, notOver(job, status)
	}
}

// workerReady is the state of a worker that computes, in a master's report.
const workerReady = "ready"

// waitForSuccess waits until the jobs have succeeded and their pods and workloads have finished too. The outline
// contains these states, and terraform destroy would otherwise interrupt them.
func (r *runner) waitForSuccess(ctx context.Context, jobs ...string) error {
	for _, job := range jobs {
		if err := r.log.Wait(ctx, job+" has succeeded", finishLimit, succeeded(job)); err != nil {
			return err
		}
	}
	for _, job := range jobs {
		if err := r.log.Wait(ctx, "the pods of "+job+" have ended", startLimit, nothingRuns(job)); err != nil {
			return err
		}
		if err := r.log.Wait(ctx, "the workload of "+job+" is finished", startLimit, workloadFinished(job)); err != nil {
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
		for _, pod := range h.Pods {
			if pod.Job == job && !pod.Running.IsZero() && pod.Ended.IsZero() {
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

// notOver is an error once a job trains no more, so that nobody waits for what it should still do.
func notOver(job string, status trainingjob.Status) error {
	if status.Phase == trainingjob.PhaseSucceeded {
		return fmt.Errorf("%s finished before that: this machine is faster or busier than the scenario allows for", job)
	}
	return notFailed(job, status)
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

// waitSince waits until minStartGap has passed since a worker's start. It waits for no condition: the gap itself is
// needed.
func waitSince(ctx context.Context, start time.Time) error {
	select {
	case <-time.After(time.Until(start.Add(minStartGap))):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
