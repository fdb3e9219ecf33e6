// Package scenario tells the project's stories on a cluster: it runs the real terraform with the real provider on the
// examples' configurations, records what the cluster does, and judges the record. A story does not know what its
// cluster is: the embedded one and kind are the same to it.
//
// A story does not judge while it runs: it brings things about, waits for them, and writes the event log; the promises
// are checked on the log (CheckElasticScheduling), which is pure. It leaves the cluster as it found it.
package scenario

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/e2e/wording"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// Cluster is where a story is told.
type Cluster struct {
	Kubeconfig string
	Namespace  string
	Image      string // the trainer's image, as the cluster's nodes know it
	DataDir    string // the directory, here and on every node, that holds mnist/train and mnist/test
}

// Tools are the executables that a story runs.
type Tools struct {
	Terraform string
	Provider  string // its file name is terraform-provider-elastic
	Trainer   string
}

// The tutorial among the examples, and the model file that it names.
const (
	tutorialExample = "tutorials/elastic-scheduling"
	tutorialModel   = "models/mnist_functional_api.py"
)

// ElasticScheduling is the story of the tutorial: a low-priority job with two workers, a high-priority job that takes
// one of them away, and both finish.
type ElasticScheduling struct {
	Cluster   Cluster
	Tools     Tools
	Examples  string // the repository's examples
	Dir       string // an empty directory, for terraform's state and output, and for events.jsonl
	LowLasts  time.Duration
	HighLasts time.Duration // at most; less when the low job would not outlive it well
	Observe   func(eventlog.Event)
}

// Stages of the story. PlannedStages are those after which `terraform plan` must be empty.
const (
	StageCalibrate  = "calibrate"
	StageSubmitLow  = "submit-low"
	StageGrowLow    = "grow-low"
	StageSubmitHigh = "submit-high"
	StageFinished   = "finished"
	StageDestroy    = "destroy"
	StageCompare    = "compare"
)

// PlannedStages are the stages after which a plan is made.
var PlannedStages = []string{StageSubmitLow, StageGrowLow, StageSubmitHigh, StageFinished}

// LowSelector is the tutorial's label selector of the first job.
const LowSelector = trainingjob.LabelJobName + "=" + LowJob

// Limits of the waits. They are generous: a story that hangs says on what, one that is slow is not wrong.
const (
	startLimit   = 2 * time.Minute
	preemptLimit = 2 * time.Minute
	finishLimit  = 15 * time.Minute
)

// Run tells the story and returns its events, those of a story that failed too.
func (s *ElasticScheduling) Run(ctx context.Context) (events []eventlog.Event, err error) {
	file, err := os.Create(filepath.Join(s.Dir, "events.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("the event log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	output, err := os.Create(filepath.Join(s.Dir, "terraform.log"))
	if err != nil {
		return nil, fmt.Errorf("the log of terraform: %w", err)
	}
	defer func() { err = errors.Join(err, output.Close()) }()

	log := NewLog(file, s.Observe)
	err = s.tell(ctx, log, output)
	return log.Events(), errors.Join(err, log.Err())
}

func (s *ElasticScheduling) tell(ctx context.Context, log *Log, output io.Writer) (err error) {
	client, err := connect(s.Cluster.Kubeconfig)
	if err != nil {
		return err
	}
	if err := recordNodes(ctx, client, log); err != nil {
		return err
	}
	tf, err := newTerraform(s.Tools.Terraform, s.Tools.Provider, s.Examples, tutorialExample, s.Dir, output)
	if err != nil {
		return err
	}

	stage(log, StageCalibrate, "How fast is this machine? One short run without a cluster.")
	pace, err := s.measurePace(ctx)
	if err != nil {
		return err
	}
	lowEpochs := pace.epochs(s.LowLasts)
	vars := variables{
		"config_path":    s.Cluster.Kubeconfig,
		"namespace":      s.Cluster.Namespace,
		"image":          s.Cluster.Image,
		"data_host_path": s.Cluster.DataDir,
		"low_epochs":     strconv.Itoa(lowEpochs),
		"low_workers":    "1",
		"submit_high":    "false",
	}

	before, err := inventory(ctx, client, s.Cluster.Namespace)
	if err != nil {
		return err
	}
	stop, err := Record(ctx, client, s.Cluster.Namespace, log)
	if err != nil {
		return err
	}
	defer stop()

	destroyed := false
	defer func() {
		if destroyed {
			return
		}
		// The story failed or was interrupted: clean up nevertheless, with a time limit of its own.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startLimit)
		defer cancel()
		err = errors.Join(err, tf.destroy(ctx, vars))
	}()

	// The first job starts with one worker and is given its second one later: that is the tutorial's job, and the
	// worker that will be preempted is determined.
	stage(log, StageSubmitLow, fmt.Sprintf("terraform apply: %s, %s, one worker for now.", LowJob, wording.Number(lowEpochs, "epoch")))
	if err := s.applyAndPlan(ctx, tf, vars, log, StageSubmitLow); err != nil {
		return err
	}
	if err := log.Wait(ctx, LowJob+" trains with one worker", startLimit, membersOf(LowJob, 1)); err != nil {
		return err
	}
	if err := waitSince(ctx, lastStart(log)); err != nil {
		return err
	}

	vars["low_workers"] = "2"
	stage(log, StageGrowLow, "terraform apply: a second worker, in place.")
	if err := s.applyAndPlan(ctx, tf, vars, log, StageGrowLow); err != nil {
		return err
	}
	if err := log.Wait(ctx, LowJob+" trains with two workers", startLimit, membersOf(LowJob, 2)); err != nil {
		return err
	}
	if err := recordListing(ctx, client, s.Cluster.Namespace, log); err != nil {
		return err
	}

	highEpochs := highEpochs(pace, s.HighLasts, remainingAt(eventlog.Replay(log.Events()).Job(LowJob).Points, time.Now()))
	vars["high_epochs"], vars["submit_high"] = strconv.Itoa(highEpochs), "true"
	stage(log, StageSubmitHigh, fmt.Sprintf("terraform apply: %s, %s. There is no room for its worker.", HighJob, wording.Number(highEpochs, "epoch")))
	if err := s.applyAndPlan(ctx, tf, vars, log, StageSubmitHigh); err != nil {
		return err
	}
	if err := log.Wait(ctx, HighJob+" trains", preemptLimit, membersOf(HighJob, 1)); err != nil {
		return err
	}
	for _, job := range []string{HighJob, LowJob} {
		if err := log.Wait(ctx, job+" has succeeded", finishLimit, succeeded(job)); err != nil {
			return err
		}
	}

	stage(log, StageFinished, "Both jobs have finished.")
	if err := recordPlan(ctx, tf, vars, log, StageFinished); err != nil {
		return err
	}
	model, err := finalModel(ctx, client, s.Cluster.Namespace, LowJob)
	if err != nil {
		return err
	}

	stage(log, StageDestroy, "terraform destroy.")
	destroyed = true
	if err := tf.destroy(ctx, vars); err != nil {
		return err
	}
	rest, err := left(ctx, client, s.Cluster.Namespace, before)
	if err != nil {
		return err
	}
	log.Add(eventlog.Event{Left: &rest})

	stage(log, StageCompare, "The same job once more, undisturbed and without a cluster: is its model the same?")
	began := time.Now()
	undisturbed, err := s.trainUndisturbed(ctx, lowEpochs)
	if err != nil {
		return err
	}
	log.Add(eventlog.Event{Result: &eventlog.Result{
		Job: LowJob, SHA256: model, UndisturbedSHA256: undisturbed, UndisturbedTook: time.Since(began),
	}})
	return nil
}

// applyAndPlan applies and records what a plan would change after it.
func (s *ElasticScheduling) applyAndPlan(ctx context.Context, tf *terraform, vars variables, log *Log, after string) error {
	if err := tf.apply(ctx, vars); err != nil {
		return fmt.Errorf("stage %s: %w", after, err)
	}
	return recordPlan(ctx, tf, vars, log, after)
}

func recordPlan(ctx context.Context, tf *terraform, vars variables, log *Log, after string) error {
	changes, err := tf.changes(ctx, vars)
	if err != nil {
		return fmt.Errorf("after stage %s: %w", after, err)
	}
	log.Add(eventlog.Event{Plan: &eventlog.Plan{After: after, Changes: changes}})
	return nil
}

func stage(log *Log, name, text string) {
	log.Add(eventlog.Event{Stage: &eventlog.Stage{Name: name, Text: text}})
}

func recordNodes(ctx context.Context, client kubernetes.Interface, log *Log) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	for _, node := range nodes.Items {
		log.Add(eventlog.Event{Node: &eventlog.Node{
			Name:   node.Name,
			CPU:    node.Status.Allocatable.Cpu().String(),
			Memory: node.Status.Allocatable.Memory().String(),
		}})
	}
	return nil
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

// membersOf waits for a job to train with that many workers.
func membersOf(job string, workers int) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) {
		status := h.Job(job).Last().Status
		return status.WorkersRunning == workers && status.StepsDone > 0, notFailed(job, status)
	}
}

func succeeded(job string) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) {
		status := h.Job(job).Last().Status
		return status.Phase == trainingjob.PhaseSucceeded, notFailed(job, status)
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
