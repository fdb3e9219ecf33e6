// Package scenariofile defines the file of a simulation: the nodes, classes, queues and jobs of a cluster, and what
// happens to it. The types below are its documentation: a scenario is YAML with their fields, and nothing else.
//
// It guarantees that a scenario which Parse returns can be simulated: everything that is named is there, nothing
// contradicts itself, sizes and times are within bounds; and that errors are reported with file, line and column,
// before much memory is used. The specs of the queues' objects are those of Kueue's v1beta2, and their rules are those of
// package kueue/validation.
package scenariofile

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// Scenario is one simulation.
type Scenario struct {
	// Name of the scenario, its title.
	Name string `json:"name"`
	// Description is what it shows.
	Description string `json:"description"`
	// Seed of the random numbers; another seed is another run of the same scenario.
	Seed uint64 `json:"seed"`
	// Until ends the simulation at this time; 0: when every job has ended, or nothing can happen any more.
	Until Duration `json:"until"`

	Nodes                   []NodeGroup             `json:"nodes"`
	PriorityClasses         []PriorityClass         `json:"priorityClasses"`
	WorkloadPriorityClasses []WorkloadPriorityClass `json:"workloadPriorityClasses"`
	// Topologies are how nodes are divided; a flavor names one in topologyName.
	Topologies      []Topology       `json:"topologies"`
	ResourceFlavors []ResourceFlavor `json:"resourceFlavors"`
	Cohorts         []Cohort         `json:"cohorts"`
	ClusterQueues   []ClusterQueue   `json:"clusterQueues"`
	LocalQueues     []LocalQueue     `json:"localQueues"`
	// FairSharing switches Kueue's fair sharing on.
	FairSharing bool `json:"fairSharing"`
	// AdmissionFairSharing is Kueue's: in a cluster queue with an admissionScope, workloads of local queues that have used
	// less come first; nil: it is off.
	AdmissionFairSharing *AdmissionFairSharing `json:"admissionFairSharing"`
	// CheckpointAge raises the priority of workloads with much unsaved work, as elastic-trainer checkpoint-age does; nil:
	// priorities do not depend on checkpoints.
	CheckpointAge *CheckpointAge `json:"checkpointAge"`

	Jobs []Job `json:"jobs"`
	// Trace adds the jobs of a recorded cluster, and its nodes where none are listed above.
	Trace *Trace `json:"trace"`

	Faults []Fault `json:"faults"`
	// Failures of nodes at random, besides those above.
	Failures *Failures `json:"failures"`

	// Stages are captions in the log and the picture, without any effect.
	Stages []Stage `json:"stages"`
}

// Resources are amounts by resource name.
type Resources map[corev1.ResourceName]resource.Quantity

// NodeGroup is a number of equal nodes.
type NodeGroup struct {
	// Name of the node, or with a count the beginning of their names: NAME-0, NAME-1 and so on.
	Name string `json:"name"`
	// Count of nodes; nil: one, with just that name.
	Count *int `json:"count"`
	// Allocatable is the total that pods can request. "pods" is 110 where it is left out.
	Allocatable Resources         `json:"allocatable"`
	Labels      map[string]string `json:"labels"`
	// Domains divide the nodes, in their order, into equal parts by a label's values: of four nodes with {rack: [r1, r2]}
	// two have rack=r1 and two rack=r2. The levels of a topology are such labels, and kubernetes.io/hostname, which every
	// node has.
	Domains map[string][]string `json:"domains"`
	Taints  []corev1.Taint      `json:"taints"`
	// Autoscale sizes the group by the pending pods; Count is its size at the start.
	Autoscale *Autoscale `json:"autoscale"`
}

// Autoscale is a node group that an autoscaler sizes: an unschedulable pod adds a node, and a node without
// pods is removed.
type Autoscale struct {
	Min int `json:"min"`
	Max int `json:"max"`
	// Provision is how long it takes from the decision until the node is ready, a minute or more in a cloud.
	Provision Duration `json:"provision"`
	// Idle is how long a node stays without pods before it is removed. Cluster Autoscaler waits 10m.
	Idle Duration `json:"idle"`
}

// PriorityClass is kube-scheduler's.
type PriorityClass struct {
	Name  string `json:"name"`
	Value int32  `json:"value"`
	// PreemptionPolicy is PreemptLowerPriority or Never; "" is the former.
	PreemptionPolicy corev1.PreemptionPolicy `json:"preemptionPolicy"`
}

// WorkloadPriorityClass is Kueue's.
type WorkloadPriorityClass struct {
	Name  string `json:"name"`
	Value int32  `json:"value"`
}

// Topology is Kueue's object: its levels are labels of nodes, from the widest.
type Topology struct {
	Name               string `json:"name"`
	kueue.TopologySpec `json:",inline"`
}

// ResourceFlavor is Kueue's object: a name, and beside it the fields of its spec.
type ResourceFlavor struct {
	Name                     string `json:"name"`
	kueue.ResourceFlavorSpec `json:",inline"`
}

// Cohort is Kueue's object.
type Cohort struct {
	Name             string `json:"name"`
	kueue.CohortSpec `json:",inline"`
}

// ClusterQueue is Kueue's object. Without a namespaceSelector it serves every namespace: a scenario has only one.
type ClusterQueue struct {
	Name                   string `json:"name"`
	kueue.ClusterQueueSpec `json:",inline"`
}

// LocalQueue is Kueue's object, in the only namespace.
type LocalQueue struct {
	Name                 string `json:"name"`
	kueue.LocalQueueSpec `json:",inline"`
}

// AdmissionFairSharing orders workloads by what their local queues have used.
type AdmissionFairSharing struct {
	// UsageHalfLifeTime is how long it takes until half of what was used does not count any more; 0: nothing is remembered.
	UsageHalfLifeTime Duration `json:"usageHalfLifeTime"`
	// UsageSamplingInterval is how often what is used is looked at, at least a second.
	UsageSamplingInterval Duration `json:"usageSamplingInterval"`
	// ResourceWeights multiply what is used of a resource, 1 where one is left out.
	ResourceWeights Resources `json:"resourceWeights"`
}

// CheckpointAge is the rule of package checkpointage: while a workload holds quota, its priority rises by one for each
// Step since its last checkpoint, so that those of a class that lose least are evicted first.
type CheckpointAge struct {
	// Step of unsaved time that adds one to the priority; 0: 5m.
	Step Duration `json:"step"`
	// Max is the most that is added, less than the distance between two priorities; 0: 24.
	Max int32 `json:"max"`
	// Hold is the shortest time between two changes of one workload; nil: 1m.
	Hold *Duration `json:"hold"`
	// Every is how often the ages are looked at; 0: 15s.
	Every Duration `json:"every"`
}

// Job is something that is submitted, computes, and ends: either elastic or a gang.
type Job struct {
	Name string `json:"name"`
	// Submit is when it is submitted, since the start.
	Submit Duration `json:"submit"`
	// Repeat submits it again and again, as NAME-0, NAME-1 and so on.
	Repeat  *Repeat  `json:"repeat"`
	Elastic *Elastic `json:"elastic"`
	Gang    *Gang    `json:"gang"`
}

// Repeat is a stream of equal jobs.
type Repeat struct {
	Count int      `json:"count"`
	Every Duration `json:"every"`
	// Random makes Every the mean of exponentially distributed intervals: independent arrivals.
	Random bool `json:"random"`
}

// Pod is a pod's requests and its behavior.
type Pod struct {
	Requests Resources `json:"requests"`
	// PriorityClass is kube-scheduler's; "" has value 0.
	PriorityClass string `json:"priorityClass"`
	// Labels are what other pods' affinity is about.
	Labels       map[string]string   `json:"labels"`
	NodeSelector map[string]string   `json:"nodeSelector"`
	Tolerations  []corev1.Toleration `json:"tolerations"`
	Affinity     *corev1.Affinity    `json:"affinity"`
	// TerminationGracePeriod is how long it may continue after it was signalled to end; nil: 30s.
	TerminationGracePeriod *Duration `json:"terminationGracePeriod"`
	// Starts is how long it takes from being bound to a node until it runs: image, volumes, process.
	Starts Duration `json:"starts"`
	// Stops is how long it takes to end once asked, at most the grace period. nil: of an elastic job's pods at once,
	// because they end with the current minibatch; of a gang's pods the whole grace period, because a shell that runs a
	// program does not hear the signal.
	Stops *Duration `json:"stops"`
}

// Gang is a job that computes only while all its pods run: a plain pod, a queued task, a PyTorch job. A pod that is
// lost is recreated; the work since the last checkpoint is lost with it.
type Gang struct {
	// Pods of the gang; 0 is 1.
	Pods int `json:"pods"`
	Pod  `json:",inline"`
	// Runs is how long it computes when nothing disturbs it.
	Runs Duration `json:"runs"`
	// CheckpointEvery is how much computing lies between two checkpoints; 0: there are none, and it starts over.
	CheckpointEvery Duration `json:"checkpointEvery"`
	// Restart is how long it takes to resume after an interruption, before anything new is computed: rendezvous,
	// loading the checkpoint.
	Restart Duration `json:"restart"`
	// Queue is the LocalQueue that it waits in; "": none, its pods are made at once.
	Queue string `json:"queue"`
	// Topology is where the pods are to be, relative to each other, as attribute topology of elastic_task; nil: they do
	// not say.
	Topology *trainingjob.Topology `json:"topology"`
	// WorkloadPriorityClass counts in the queue; "" is the pods' priority.
	WorkloadPriorityClass string `json:"workloadPriorityClass"`
}

// Elastic is an elastic training job: a master, and workers whose number follows the free capacity. It follows the
// rules of the real master (internal/trainer/protocol/coordinator).
type Elastic struct {
	Master  Pod     `json:"master"`
	Workers Workers `json:"workers"`
	// Steps are all updates of the model.
	Steps int64 `json:"steps"`
	Speed Speed `json:"speed"`
	// CheckpointEvery is the time between two checkpoints, which count only when no worker survives; 0: there are none.
	CheckpointEvery Duration `json:"checkpointEvery"`
	// Queue is where it waits for quota; nil: it is not queued.
	Queue *ElasticQueue `json:"queue"`
	// Topology is where the pods are to be, relative to each other, as attribute topology of elastic_training_job; nil:
	// they do not say.
	Topology *trainingjob.Topology `json:"topology"`
	// Resize changes the number of workers while it runs, as somebody who edits the configuration does.
	Resize []Resize `json:"resize"`
}

// Workers are the workers' pods.
type Workers struct {
	// Min is the minimum: with fewer workers nothing is computed. 0 is 1.
	Min int `json:"min"`
	// Max is the greatest number of workers. 0 is Min.
	Max int `json:"max"`
	Pod `json:",inline"`
	// MinPriorityClass is kube-scheduler's class of the first Min workers; "" is PriorityClass.
	MinPriorityClass string `json:"minPriorityClass"`
	// Joins is how long a running worker takes until it computes: data, connection, state.
	Joins Duration `json:"joins"`
}

// Speed is how fast a job computes with a number of workers. Either StepsPerSecond is given, measured; or GradsToWait
// and Gradient, and it follows from the master's assignments: a step lasts as long as the worker with the most virtual
// workers takes, ⌈GradsToWait ÷ workers⌉ gradients.
type Speed struct {
	// StepsPerSecond by number of workers; between two of them linear, beyond the last constant.
	StepsPerSecond map[int]Rate `json:"stepsPerSecond"`
	// GradsToWait is the number of gradients (virtual workers) of a step.
	GradsToWait int `json:"gradsToWait"`
	// Gradient is how long one takes.
	Gradient Duration `json:"gradient"`
	// Overhead is the rest of a step: communication and the update.
	Overhead Duration `json:"overhead"`
}

// ElasticQueue is where an elastic job waits for quota: master and minimum workers together, every worker above the
// minimum by itself.
type ElasticQueue struct {
	// Name of the LocalQueue.
	Name string `json:"name"`
	// WorkloadPriorityClass of each worker above the minimum.
	PriorityClass string `json:"priorityClass"`
	// MinPriorityClass is the WorkloadPriorityClass of master and minimum workers; "" is PriorityClass.
	MinPriorityClass string `json:"minPriorityClass"`
}

// Resize is a new size of an elastic job.
type Resize struct {
	At  Duration `json:"at"` // since the start
	Min int      `json:"min"`
	Max int      `json:"max"`
}

// Fault is the loss of a node, of a pod of a job, or of the API server; one of Node, Job and APIServer is set.
type Fault struct {
	At Duration `json:"at"`
	// Node is lost: its pods end at once, as when a cloud's node controller deletes the Node object.
	Node string `json:"node"`
	// Returns is how long it stays away; 0: for ever.
	Returns Duration `json:"returns"`
	// Job loses its running pod with the lowest number, of an elastic job a worker: it is deleted.
	Job string `json:"job"`
	// Master selects the master of an elastic job instead.
	Master bool `json:"master"`
	// Kill deletes the pod without a grace period.
	Kill bool `json:"kill"`
	// APIServer is killed, and starts again. A simulation has none, so that this has no effect there; on a cluster it must
	// have none on the jobs either.
	APIServer bool `json:"apiServer"`
}

// Stage is a caption in the log and in the picture.
type Stage struct {
	At   Duration `json:"at"`
	Name string   `json:"name"`
	Text string   `json:"text"`
}

// Failures are losses of nodes at random.
type Failures struct {
	// MeanTimeBetween two failures of one node.
	MeanTimeBetween Duration `json:"meanTimeBetween"`
	// Repair is how long the node stays away.
	Repair Duration `json:"repair"`
}
