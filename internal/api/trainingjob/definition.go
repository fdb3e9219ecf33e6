package trainingjob

import (
	"encoding/json"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Definition is what a user requested: everything that Render needs to write a job's objects, and what
// DefinitionOf reads back from them.
type Definition struct {
	Job       Job               // job.json; Model.File is set by Render, unless Model.Name is set
	ModelText string            // model.py; "" for a built-in model
	Labels    map[string]string // of every object of the job; pods have their own in PodSettings
	// Annotations are those of every object of the job.
	Annotations map[string]string

	Min                  int
	Max                  int
	MinPriorityClassName string
	Queue                *Queue // nil: not queued
	// ActiveDeadlineSeconds is how long the Job may be active before Kubernetes fails it, from when it is resumed; nil:
	// for ever. It is in the Job and in no ConfigMap.
	ActiveDeadlineSeconds *int64

	Settings
}

// Settings is definition.json: the part of a Definition that can be read from no other object without loss, because
// it is merged with defaults, with the pod_overrides or with what the API server adds.
type Settings struct {
	Image              string            `json:"image"`
	ImagePullPolicy    corev1.PullPolicy `json:"image_pull_policy,omitempty"`
	ImagePullSecrets   []string          `json:"image_pull_secrets,omitempty"`
	ServiceAccountName string            `json:"service_account_name,omitempty"` // the master's; "" makes one with its Role
	Volumes            []Volume          `json:"volumes,omitempty"`
	Master             PodSettings       `json:"master"`
	Workers            PodSettings       `json:"workers"`
}

// PodSettings is what a user may say about the master's pod, or about the workers'.
type PodSettings struct {
	PriorityClassName             string                       `json:"priority_class_name,omitempty"`
	Resources                     *corev1.ResourceRequirements `json:"resources,omitempty"` // nil: DefaultResources
	NodeSelector                  map[string]string            `json:"node_selector,omitempty"`
	Tolerations                   []corev1.Toleration          `json:"tolerations,omitempty"`
	Affinity                      *corev1.Affinity             `json:"affinity,omitempty"`
	Env                           map[string]string            `json:"env,omitempty"`
	Labels                        map[string]string            `json:"labels,omitempty"`
	Annotations                   map[string]string            `json:"annotations,omitempty"`
	TerminationGracePeriodSeconds *int64                       `json:"termination_grace_period_seconds,omitempty"` // nil: 30
	RuntimeClassName              string                       `json:"runtime_class_name,omitempty"`
	SecurityContext               *SecurityContext             `json:"security_context,omitempty"` // on top of what every pod of a job has
	InitContainers                []InitContainer              `json:"init_containers,omitempty"`
	// PodOverrides is a strategic-merge patch of the pod ({"spec": {…}}), applied last.
	PodOverrides json.RawMessage `json:"pod_overrides,omitempty"`
}

// Which pods mount a volume.
const (
	MountAll     = "all"
	MountMaster  = "master"
	MountWorkers = "workers"
)

// Volume is one volume and where it is mounted. Exactly one of PVC, HostPath, EmptyDir and ConfigMap is set.
type Volume struct {
	Name      string    `json:"name"`
	MountPath string    `json:"mount_path"`
	PVC       string    `json:"claim_name,omitempty"` // a claim's name
	HostPath  string    `json:"host_path,omitempty"`  // a path of the node
	EmptyDir  *EmptyDir `json:"empty_dir,omitempty"`
	ConfigMap string    `json:"config_map,omitempty"` // a ConfigMap's name
	Mount     string    `json:"mount_on,omitempty"`   // MountAll (also ""), MountMaster or MountWorkers
	// ReadOnly, when nil, is true on workers, which only read data, and false on the master, which writes the output.
	ReadOnly *bool `json:"read_only,omitempty"`
}

// EmptyDir is a directory that lives as long as its pod.
type EmptyDir struct {
	Medium    corev1.StorageMedium `json:"medium,omitempty"`
	SizeLimit *resource.Quantity   `json:"size_limit,omitempty"`
}

// DefaultResources are those of ElasticDL's client at the tutorial's time: 100m and 1024Mi for the master, 1000m and
// 4096Mi for a worker, as requests and as limits.
func DefaultResources(role string) corev1.ResourceRequirements {
	cpu, memory := "1000m", "4096Mi"
	if role == RoleMaster {
		cpu, memory = "100m", "1024Mi"
	}
	list := func() corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse(cpu),
			corev1.ResourceMemory: resource.MustParse(memory),
		}
	}
	return corev1.ResourceRequirements{Requests: list(), Limits: list()}
}

// Accelerators is how many accelerators a container gets: extended resources such as nvidia.com/gpu and amd.com/gpu,
// shared or partitioned ones included. A command runs one process for each of them by default, as torchrun's
// --nproc-per-node=gpu does.
func Accelerators(r *corev1.ResourceRequirements) int {
	if r == nil {
		return 0
	}
	n := int64(0)
	for name, amount := range r.Limits { // an extended resource has a limit, which its request equals
		domain, kind, qualified := strings.Cut(string(name), "/")
		if qualified && (kind == "gpu" || kind == "gaudi" || domain == "nvidia.com" || domain == "gpu.intel.com") {
			n += amount.Value()
		}
	}
	return int(min(max(n, 0), MaxProcesses))
}

// Roles: the values of LabelRole, and the names of the pods' first container.
const (
	RoleMaster = "master"
	RoleWorker = "worker"
)

// Exit codes of the master with a meaning for its Job (the protocol's "Leaving" and "The master dies").
const (
	ExitJobFailed = 64  // the training itself failed: never run it again
	ExitOther     = 65  // another master has the job: run it again later, elsewhere
	ExitStopped   = 143 // signalled to stop, half done: run it again, and do not count it as a failure
)

// DefaultTerminationGracePeriodSeconds is Kubernetes' own; a worker needs the time of one minibatch of it, a master
// that of one step and a checkpoint.
const DefaultTerminationGracePeriodSeconds = 30

const (
	// userID is the user and group that run in the pods: "nonroot" of the distroless images.
	userID = 65532

	// unreachableSeconds is how long a pod stays on a node that stopped reporting: Kubernetes' 300 s would hold a lost
	// worker's place for five minutes.
	unreachableSeconds = 15

	// backoffLimit is as good as none: the limit to restarts is the supervisor's in the pod, and a Job that gives up
	// loses training that could continue.
	backoffLimit = math.MaxInt32
)

// job is job.json: its model is built in, or the file of this ConfigMap, or its command has none.
func (d Definition) job() Job {
	if d.Job.Model.Name == "" && (d.ModelText != "" || !d.Job.Restarts()) {
		d.Job.Model.File = ConfigDir + "/" + ModelKey
	}
	return d.Job
}
