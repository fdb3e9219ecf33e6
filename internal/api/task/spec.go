// Package task defines a queued task as data: the task that a user describes in HCL or in a SkyPilot task file, the
// Kubernetes objects for it, and the progress that these objects report. It is pure: the provider applies the rendered
// objects and shows the progress; Kueue and the Job controller run the task, without a controller of this project. Only
// a task of several nodes needs the trainer's image, whose supervisor (internal/trainer/runtime/rank) starts, stops and
// restarts the ranks together.
package task

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/accelerator"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// Task is what a user requested: everything that Render needs to write a task's objects, and what Of reads back from
// them. Its JSON is definition.json in ConfigMap NAME-task.
type Task struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`

	// Setup and Run are shell scripts: bash's where the image has one, sh's otherwise. Setup runs once in each pod
	// before Run; a setup that fails ends the pod as a run that fails does.
	Setup string `json:"setup,omitempty"`
	Run   string `json:"run,omitempty"`
	// NumNodes is the number of pods, each with all the resources below. With more than one they are a gang: they start
	// together, and when one fails all run again.
	NumNodes int `json:"num_nodes"`
	// Rejoin is true if the command of one node can rejoin those of the others, which continue while it is replaced.
	Rejoin bool `json:"rejoin,omitempty"`

	Image            string            `json:"image"`
	ImagePullPolicy  corev1.PullPolicy `json:"image_pull_policy,omitempty"`
	ImagePullSecrets []string          `json:"image_pull_secrets,omitempty"`
	// TrainerImage holds the supervisor of a gang; of no effect with one node.
	TrainerImage string `json:"supervisor_image,omitempty"`

	Envs map[string]string `json:"env,omitempty"`
	// Secrets are environment variables whose values stay in Secrets that exist already.
	Secrets map[string]SecretKey `json:"secrets,omitempty"`
	// SecretValues names the environment variables whose values are in Secret NAME-secrets, made with the task. The
	// values themselves are given to Render and are in no Task.
	SecretValues []string `json:"secret_values,omitempty"`
	// SecretsVersion is what the user calls these values' version; nil without values. It is kept for who imports the
	// task: the values themselves cannot be compared.
	SecretsVersion *int64 `json:"secrets_version,omitempty"`
	// Workdir are files, by their paths relative to the directory in which Setup and Run start.
	Workdir map[string]string `json:"workdir,omitempty"`
	Volumes []Volume          `json:"volumes,omitempty"`

	// Accelerators are alternatives, any of which will do; none at all asks for no accelerator. Ordered prefers the
	// earlier ones. They must agree in resource and count, which a pod can ask for only once.
	Accelerators []accelerator.Request `json:"accelerators,omitempty"`
	Ordered      bool                  `json:"ordered,omitempty"`
	// AcceleratorLabels extends and overrides the table of accelerators, by name.
	AcceleratorLabels map[string]accelerator.Definition `json:"accelerator_labels,omitempty"`
	// CPUs and Memory are of each node, as SkyPilot writes them: "4" is a request and a limit, "4+" a request without
	// a limit. A bare number of Memory is GiB; Kubernetes' quantities ("500m", "32Gi") are understood too.
	CPUs   string `json:"cpus,omitempty"`
	Memory string `json:"memory,omitempty"`

	// Queue is the LocalQueue, and PriorityClass the WorkloadPriorityClass, of Kueue. Without a queue the task starts
	// at once.
	Queue         string `json:"queue,omitempty"`
	PriorityClass string `json:"workload_priority_class,omitempty"`
	// Topology is where the pods run, relative to each other; only under a queue.
	Topology *Topology `json:"topology,omitempty"`
	// PriorityClassName is the pods' own, kube-scheduler's.
	PriorityClassName string   `json:"priority_class_name,omitempty"`
	Recovery          Recovery `json:"recovery,omitzero"`

	// Labels and Annotations are those of every object and of the pods.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`

	NodeSelector                  map[string]string   `json:"node_selector,omitempty"`
	Tolerations                   []corev1.Toleration `json:"tolerations,omitempty"`
	ServiceAccountName            string              `json:"service_account_name,omitempty"` // "" makes one for a gang only
	RuntimeClassName              string              `json:"runtime_class_name,omitempty"`
	TerminationGracePeriodSeconds *int64              `json:"termination_grace_period_seconds,omitempty"` // nil: 30
	// ActiveDeadlineSeconds is how long the Job may be active before Kubernetes fails it, from when it starts or Kueue
	// admits it anew; nil: for ever.
	ActiveDeadlineSeconds *int64 `json:"active_deadline_seconds,omitempty"`
	// TTLSecondsAfterFinished removes the task's objects so long after its end; nil keeps them.
	TTLSecondsAfterFinished *int32           `json:"ttl_seconds_after_finished,omitempty"`
	SecurityContext         *SecurityContext `json:"security_context,omitempty"`
	InitContainers          []InitContainer  `json:"init_containers,omitempty"`
	// PodOverrides is a strategic-merge patch of the pod ({"spec": {…}}), applied last.
	PodOverrides json.RawMessage `json:"pod_overrides,omitempty"`
}

// Volume is one volume and where it is mounted; its Mount is of no effect.
type Volume = trainingjob.Volume

type (
	// SecurityContext is as that of a training job's pods.
	SecurityContext = trainingjob.SecurityContext
	// InitContainer is as that of a training job's pods.
	InitContainer = trainingjob.InitContainer
	// Topology is as that of a training job's minimum workers.
	Topology = trainingjob.Topology
)

// Problem is something wrong with one attribute, in a sentence.
type Problem = trainingjob.Problem

// Object is one of a task's objects.
type Object = trainingjob.Object

// JobRef names a task's Job.
type JobRef = trainingjob.JobRef

// SecretKey is where a secret's value is.
type SecretKey struct {
	SecretName string `json:"secret_name"`
	Key        string `json:"key"`
}

// Recovery defines when a task that failed runs again. A preemption is no failure: it is always followed by another
// run.
type Recovery struct {
	// MaxRestartsOnErrors is how many failures are followed by another run; 0 is SkyPilot's default.
	MaxRestartsOnErrors int `json:"max_restarts_on_errors,omitempty"`
	// RecoverOnExitCodes (1 to 255, not 137) are followed by another run and not counted.
	RecoverOnExitCodes []int `json:"recover_on_exit_codes,omitempty"`
}

// Labels of Kueue on the Job: the queue and the workload's priority class.
const (
	LabelQueue         = controllerconstants.QueueLabel
	LabelPriorityClass = controllerconstants.WorkloadPriorityClassLabel
)

// LabelTask on every object and pod is the task's name, LabelJobUID the UID of its Job.
const (
	LabelTask   = "elastic-training.github.io/task"
	LabelJobUID = trainingjob.LabelJobUID
)

// ContainerName is that of the container in which setup and run are executed.
const ContainerName = "task"

// DefaultImage is what a task runs in that names no image: it has bash, coreutils and nothing else of note.
const DefaultImage = "docker.io/library/debian:stable-slim"

// DefaultTrainerImage is where a gang's supervisor comes from, for a release of the provider.
func DefaultTrainerImage(version string) string {
	return trainingjob.DefaultImage(version)
}

// KeepDefaultImage is the image of a task that names none, and has had an image before: a release of the provider may
// have another default than the one before it, and what runs keeps what it was made with.
func KeepDefaultImage(before string) string {
	if slices.Contains(formerDefaultImages, before) {
		return before
	}
	return DefaultImage
}

// formerDefaultImages are the values that DefaultImage had in earlier releases.
var formerDefaultImages []string

// KeepDefaultTrainerImage is the same of the supervisor's image, for a release of the provider.
func KeepDefaultTrainerImage(before, version string) string {
	if strings.HasPrefix(before, DefaultTrainerImage("")) {
		return before
	}
	return DefaultTrainerImage(version)
}

// ConfigMapName is the name of the ConfigMap with the definition, the scripts and the workdir's files. All of a task's
// objects are in its namespace.
func ConfigMapName(task string) string { return task + "-task" }

// SecretName is the name of the Secret with the values of SecretValues.
func SecretName(task string) string { return task + "-secrets" }

// ServiceAccountName is the name of a gang's ServiceAccount, Role and RoleBinding.
func ServiceAccountName(task string) string { return task }
