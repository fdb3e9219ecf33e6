// Package trainingjob defines an elastic training job as data: job.json and workers.json, which the master reads, the
// status that the master reports, and the Kubernetes objects of a job. It is pure: the provider applies what it
// renders, and the trainer reads what it defines.
package trainingjob

import (
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Keys of ConfigMap NAME-job, mounted at ConfigDir in the master, and of NAME-status and NAME-model.
const (
	JobKey     = "job.json"     // a Job: decides the result; changing it replaces the job
	WorkersKey = "workers.json" // a Workers: may change while the job runs
	ModelKey   = "model.py"     // the model file's text; empty where the model is built in
	// DefinitionKey has Settings.
	DefinitionKey = "definition.json"
	StatusKey     = "status.json" // a Status, in ConfigMap NAME-status
)

// Where the pods find their files, and the ports they use.
const (
	ConfigDir      = "/etc/elastic"             // ConfigMap NAME-job
	CredentialsDir = "/etc/elastic-credentials" // Secret NAME-credentials: tls.crt, tls.key, token
	MasterPort     = 50001                      // gRPC, as in the tutorial
	StatusPort     = 8080                       // HTTP: the job's page and its metrics
)

// Labels of every pod. The first two are the tutorial's.
const (
	LabelApp      = "app"                                  // "elasticdl"
	LabelJobName  = "elasticdl_job_name"                   // the job's name
	LabelRole     = "elastic-training.github.io/role"      // "master" or "worker"
	LabelJobUID   = "elastic-training.github.io/job-uid"   // UID of the master's Job; set by the master on worker pods
	LabelWorkerID = "elastic-training.github.io/worker-id" // a worker's number
	LabelMinimum  = "elastic-training.github.io/minimum"   // "true" on workers that carry the minimum's priority class
)

// AnnotationCheckpoint on ConfigMap NAME-job asks the master for a checkpoint, whenever its value changes.
const AnnotationCheckpoint = "elastic-training.github.io/checkpoint-requested"

// AnnotationLastWorkerID on the Job is the highest worker number ever used.
const AnnotationLastWorkerID = "elastic-training.github.io/last-worker-id"

// AnnotationLastCheckpoint is the time of a job's last checkpoint (RFC 3339), empty before the first one. The master
// keeps it on its Job; on any other Job or pod it means the same to `elastic-trainer checkpoint-age`.
const AnnotationLastCheckpoint = "elastic-training.github.io/last-checkpoint-time"

// ConfigMapName is the name of the ConfigMap with job.json, workers.json and model.py. All of a job's objects are in
// its namespace.
func ConfigMapName(job string) string { return job + "-job" }

// StatusName is the name of the ConfigMap with the master's status.
func StatusName(job string) string { return job + "-status" }

// ModelName is the name of the ConfigMap with the final model when it is small.
func ModelName(job string) string { return job + "-model" }

// CredentialsName is the name of the Secret.
func CredentialsName(job string) string { return job + "-credentials" }

// MasterName is the name of the Service and of the Lease, and the TLS server name.
func MasterName(job string) string { return job + "-master" }

// ServiceAccountName is the name of the ServiceAccount, the Role and the RoleBinding.
func ServiceAccountName(job string) string { return job }

// MaxModelConfigMapBytes is the largest model that is kept in ConfigMap NAME-model, below etcd's 1 MiB with room
// for base64 left to the API server's own encoding of binaryData.
const MaxModelConfigMapBytes = 900 << 10

// Job is job.json: what decides the result, and where input and output are.
type Job struct {
	Name      string   `json:"name"`
	Namespace string   `json:"namespace"`
	Model     Model    `json:"model"`
	Data      Data     `json:"data"`
	Training  Training `json:"training"`
	Output    string   `json:"output,omitempty"` // a directory; "" keeps the model in ConfigMap NAME-model only

	// Command is workers.command in HCL. It computes the job with a framework of its own: the model file is then a
	// script, and its path the command's last argument, as in ["python3"]. Empty: the model file is one that
	// elastic-trainer computes itself.
	Command []string `json:"command,omitempty"`

	// Elastic is workers.elastic in HCL: how a script's gradients are exchanged, one of ElasticModes. "" is
	// ElasticGradients. It has no effect without a Command.
	Elastic string `json:"elastic,omitempty"`

	// Restart is set, as far as it differs from its defaults, where Elastic is ElasticRestart.
	Restart *Restart `json:"restart,omitempty"`

	// ProcessesPerWorker is workers.processes in HCL: how many processes of a script with a process group of its own a
	// worker runs, LOCAL_WORLD_SIZE. 0 is 1.
	ProcessesPerWorker int `json:"processes,omitempty"`

	// Step is workers.step in HCL: a script with a process group of its own runs on a multiple of so many workers. 0 is 1.
	Step int `json:"step,omitempty"`

	Checkpoint *Checkpoint `json:"checkpoint,omitempty"` // nil: one each epoch, and the newest few are kept
	Evaluation *Evaluation `json:"evaluation,omitempty"` // nil: once, after the last step
}

// How the gradients of a script are exchanged, and what happens when workers come and go.
const (
	ElasticGradients   = "gradients"   // through the workers' and the master's processes; the others compute a lost worker's share
	ElasticCollectives = "collectives" // the script's own process group, which the workers form anew in the same processes
	ElasticRestart     = "restart"     // the script's own, as torchrun starts it; the command is started again when workers come and go
)

// ElasticModes are the values of Job.Elastic.
var ElasticModes = []string{ElasticGradients, ElasticCollectives, ElasticRestart}

// Collectives reports whether the script exchanges gradients in a process group that is formed anew in the same
// processes.
func (j Job) Collectives() bool { return len(j.Command) > 0 && j.Elastic == ElasticCollectives }

// Restarts reports whether the job is a command that is started again when its workers change. It then has no data,
// training and model that are known here; only the script, if the job brings it.
func (j Job) Restarts() bool { return len(j.Command) > 0 && j.Elastic == ElasticRestart }

// OwnGroup reports whether the script exchanges gradients itself: the master decides about its members alone, computes
// nothing, and does not run it.
func (j Job) OwnGroup() bool { return j.Collectives() || j.Restarts() }

// Restart defines how a command is started again.
type Restart struct {
	// IntervalSeconds is how long the command runs at least before it is stopped because workers join. 0 is
	// DefaultRestartIntervalSeconds.
	IntervalSeconds int64 `json:"interval_seconds,omitempty"`
}

// DefaultRestartIntervalSeconds is Restart.IntervalSeconds: a job that grows by a worker each minute spends most of it
// computing.
const DefaultRestartIntervalSeconds = 60

// Processes is how many processes of the script each worker runs.
func (j Job) Processes() int { return max(1, j.ProcessesPerWorker) }

// Multiple is the number that divides the job's number of workers at any time.
func (j Job) Multiple() int { return max(1, j.Step) }

// RestartInterval is how long a command runs at least before it is stopped because workers join.
func (j Job) RestartInterval() time.Duration {
	seconds := int64(DefaultRestartIntervalSeconds)
	if r := j.Restart; r != nil && r.IntervalSeconds > 0 {
		seconds = r.IntervalSeconds
	}
	return time.Duration(seconds) * time.Second
}

// CheckpointRoot is the directory of the job's checkpoints, and "" for a job without an output.
func (j Job) CheckpointRoot() string {
	switch {
	case j.Checkpoint != nil && j.Checkpoint.Directory != "":
		return j.Checkpoint.Directory
	case j.Output != "":
		return path.Join(j.Output, CheckpointsDir)
	}
	return ""
}

// Evaluation defines when the validation data are evaluated besides after the last step: training waits meanwhile, and
// what it comes to does not depend on it.
type Evaluation struct {
	Steps  int64 `json:"interval_steps,omitempty"`  // between two of them; 0: not by steps
	Epochs int64 `json:"interval_epochs,omitempty"` // between two of them; 0: not by epochs
}

// Due reports whether the state after step updates is evaluated, in a job with so many steps in an epoch. A nil
// Evaluation is never due.
func (e *Evaluation) Due(step, stepsPerEpoch int64) bool {
	if e == nil {
		return false
	}
	every := func(n int64) bool { return n > 0 && step%n == 0 }
	return every(e.Steps) || every(e.Epochs*stepsPerEpoch)
}

// Checkpoint defines when and where the state is kept, from which an interrupted job continues.
type Checkpoint struct {
	Steps     int64  `json:"interval_steps,omitempty"` // between two of them; 0: an epoch's
	KeepMax   *int   `json:"max_to_keep,omitempty"`    // the newest so many are kept; nil: DefaultKeepCheckpoints; 0: all
	Directory string `json:"directory,omitempty"`      // "": CheckpointsDir below the output
}

// CheckpointsDir is the directory of a job's checkpoints below its output.
const CheckpointsDir = "checkpoints"

// DefaultKeepCheckpoints is how many are kept where a job does not say: a damaged one has others before it.
const DefaultKeepCheckpoints = 3

// Keep is how many checkpoints of a job are kept; 0: all.
func (j Job) Keep() int {
	if c := j.Checkpoint; c != nil && c.KeepMax != nil {
		return *c.KeepMax
	}
	return DefaultKeepCheckpoints
}

// LargestMinibatch is how many records a minibatch has at most: none spans two ranges. Buffers are made for it.
func (j Job) LargestMinibatch() int { return min(j.Training.MinibatchSize, j.Data.RecordsPerTask) }

// Model names the model file (a path; in a pod ConfigDir/model.py) or a built-in model (BuiltInModels). Exactly
// one is set.
type Model struct {
	File string `json:"file,omitempty"`
	Name string `json:"name,omitempty"`
}

// Data defines where the records are and how they are stored.
type Data struct {
	Training       string `json:"training"`             // file, directory, s3://, gs:// or synthetic://digits?records=10000&seed=1
	Validation     string `json:"validation,omitempty"` // as Training; "" for none
	Format         string `json:"format"`               // one of dataset.Formats(); of no effect on synthetic data
	Codec          string `json:"codec"`                // one of dataset.Codecs(); of no effect on CSV and IDX
	RecordsPerTask int    `json:"records_per_task"`     // records in a range

	CSV *CSV `json:"csv,omitempty"` // nil: every feature is the column of its name
}

// CSV defines what the header row of CSV files and the model's schema do not.
type CSV struct {
	Columns map[string][]string `json:"columns,omitempty"`      // of a feature, one for each of its elements, where they are called otherwise
	Words   map[string][]string `json:"vocabularies,omitempty"` // of a column whose cells are words: in the order of their numbers, from 0 on
}

// Training holds the numbers of a run.
type Training struct {
	Epochs        int      `json:"epochs"`
	MinibatchSize int      `json:"minibatch_size"`
	GradsToWait   int      `json:"grads_to_wait"` // virtual workers
	Seed          uint64   `json:"seed"`
	LearningRate  *float64 `json:"learning_rate,omitempty"` // overrides the model file's
	Aggregation   string   `json:"aggregation,omitempty"`   // where gradients are added: one of Aggregations; "" is AggregationMaster. Of no effect on the result
}

// Where the gradients of a step are added.
const (
	AggregationMaster    = "master"    // all workers send theirs to the master, and it sends the sum to all
	AggregationAllReduce = "allreduce" // between the workers, each of which finishes a slice of the sum
	AggregationAuto      = "auto"      // where it takes less time, by the model's size and the number of workers
)

// Aggregations are the values of Training.Aggregation.
var Aggregations = []string{AggregationMaster, AggregationAllReduce, AggregationAuto}

// Workers is workers.json: how many workers, and what their pods look like. The master watches it.
type Workers struct {
	Min                  int                    `json:"min"` // the minimum
	Max                  int                    `json:"max"`
	MinPriorityClassName string                 `json:"min_priority_class_name,omitempty"` // of the first Min workers
	Queue                *Queue                 `json:"queue,omitempty"`                   // nil: not queued. Under one the first Min workers are made by Job NAME-min
	Template             corev1.PodTemplateSpec `json:"template"`                          // of a worker pod; the master adds name, owner, number and arguments
}

// Phase of a job.
type Phase string

// The phases of a job, in the usual order.
const (
	PhasePending    Phase = "Pending"    // no master has reported yet
	PhaseQueued     Phase = "Queued"     // its queue has not admitted it, or no longer; said by who reads the queue, not by the master
	PhaseSuspended  Phase = "Suspended"  // somebody has suspended its Job; said by who reads the Job, not by the master
	PhaseWaiting    Phase = "Waiting"    // fewer workers than the minimum
	PhaseRunning    Phase = "Running"    // training
	PhaseEvaluating Phase = "Evaluating" // the last step is done, validation data is being evaluated
	PhaseCannotSave Phase = "CannotSave" // the final model cannot be written; retried every 10 s
	PhaseSucceeded  Phase = "Succeeded"
	PhaseFailed     Phase = "Failed"
)

// Phases are all of them, in that order.
func Phases() []Phase {
	return []Phase{PhasePending, PhaseQueued, PhaseSuspended, PhaseWaiting, PhaseRunning, PhaseEvaluating, PhaseCannotSave, PhaseSucceeded, PhaseFailed}
}

// Status is status.json, written by the master at most every 2 s and at every change of phase.
type Status struct {
	Phase          Phase              `json:"phase"`
	Message        string             `json:"message,omitempty"` // why it waits, or why it failed
	Generation     int64              `json:"generation"`        // of the master that wrote it
	Epoch          int                `json:"epoch"`
	StepsDone      int64              `json:"steps_done"`
	StepsTotal     int64              `json:"steps_total"`
	Loss           *float64           `json:"loss,omitempty"` // of the last step while training; of the validation data at the end where there is any
	Metrics        map[string]float64 `json:"metrics,omitempty"`
	WorkersRunning int                `json:"workers_running"` // members: connected and in step
	WorkersPending int                `json:"workers_pending"`
	Processes      int                `json:"processes,omitempty"` // of the script on each worker, if there are several
	Workers        []WorkerStatus     `json:"workers,omitempty"`
	Preemptions    int                `json:"preemptions"`
	Aggregation    string             `json:"aggregation,omitempty"` // where gradients are added now: AggregationMaster or AggregationAllReduce
	ModelSHA256    string             `json:"model_sha256,omitempty"`
	OutputFiles    []string           `json:"output_files,omitempty"`
	CheckpointStep int64              `json:"checkpoint_step,omitempty"` // the newest checkpoint's
	Evaluations    []Measurement      `json:"evaluations,omitempty"`     // of the validation data, the newest ones, oldest first
	JobDigest      string             `json:"job_digest,omitempty"`
	Starts         int64              `json:"starts,omitempty"`  // of the command by this master, where the job restarts it
	Goodput        *float64           `json:"goodput,omitempty"` // of this master's time: steps done, over those that its workers would have done undisturbed
	GoodputSplit   *GoodputSplit      `json:"goodput_split,omitempty"`
	Disruptions    *Disruptions       `json:"disruptions,omitempty"`
}

// Measurement is what an evaluation of the validation data gave.
type Measurement struct {
	Step    int64              `json:"step"` // updates of the state that was evaluated
	Loss    float64            `json:"loss"` // mean over the records
	Metrics map[string]float64 `json:"metrics,omitempty"`
	Records int64              `json:"records"`
}

// WorkerStatus is one worker as its master sees it.
type WorkerStatus struct {
	ID        int    `json:"id"`
	Pod       string `json:"pod,omitempty"`
	State     string `json:"state"` // "pending", "starting", "joining", "ready"
	Reason    string `json:"reason,omitempty"`
	Gradients int64  `json:"gradients"` // virtual-worker gradients taken from it
}
