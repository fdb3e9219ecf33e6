package forecast

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// Snapshot is a cluster as it was. Nothing in it is changed by a forecast.
type Snapshot struct {
	AsOf time.Time
	// Open says that others may make objects before the jobs, as a plan does by other providers: a class or a namespace
	// that is not there makes an answer approximate. Else it is an error, as it is for the API server.
	Open            bool
	Nodes           []*corev1.Node
	Pods            []*corev1.Pod // those that have not ended
	PriorityClasses []*schedulingv1.PriorityClass
	Budgets         []*policyv1.PodDisruptionBudget
	Namespaces      []*corev1.Namespace
	// What a pod is given, or rejected for, when it is created.
	LimitRanges    []*corev1.LimitRange
	Quotas         []*corev1.ResourceQuota
	RuntimeClasses []*nodev1.RuntimeClass
	// RulesPlanned says that some of what admits pods is planned with the jobs, so that no dry run has met it.
	RulesPlanned bool
	// What spreads pods that have no spread constraints of their own.
	Services               []*corev1.Service
	ReplicationControllers []*corev1.ReplicationController
	ReplicaSets            []*appsv1.ReplicaSet
	StatefulSets           []*appsv1.StatefulSet
	// Devices that drivers offer.
	Devices placement.Devices
	// Storage is what volumes are bound to.
	Storage placement.Storage
	// Webhooks that may be called for pods.
	Webhooks Webhooks
	// BatchJobs say whether a pod that is evicted is made again.
	BatchJobs []*batchv1.Job
	// Queues are Kueue's objects; nil where they were not read, which is enough for jobs without a queue.
	Queues *Queues
	// Jobs is what is known of running training jobs besides their pods. A forecast goes without; see Answer.Asks.
	Jobs map[types.NamespacedName]TrainingJob
	// Deletions are what a plan deletes: the pods and Workloads of these owners are gone when the planned jobs start.
	Deletions []Deletion
	// Unread are kinds of objects that could not be read and without which a forecast is approximate.
	Unread []Unread
}

// Queues are Kueue's objects. Workloads that have ended may be left out.
type Queues struct {
	ClusterQueues   []*kueue.ClusterQueue
	LocalQueues     []*kueue.LocalQueue
	Flavors         []*kueue.ResourceFlavor
	Cohorts         []*kueue.Cohort
	AdmissionChecks []*kueue.AdmissionCheck
	PriorityClasses []*kueue.WorkloadPriorityClass
	Workloads       []*kueue.Workload
}

// TrainingJob is what a training job's own ConfigMaps say.
type TrainingJob struct {
	Workers trainingjob.Workers
	Status  trainingjob.Status
}

// Unread is a kind of object that could not be read.
type Unread struct {
	Kind Kind
	Verb string // what is missing to read it: "list poddisruptionbudgets"
}

// Kind is a kind of object that a forecast can go without, at a price.
type Kind string

// The kinds that a forecast can go without.
const (
	Budgets            Kind = "PodDisruptionBudget" // whom preemption spares
	Namespaces         Kind = "Namespace"           // what affinities and queues select by a namespace's labels, and Pod Security
	LimitRanges        Kind = "LimitRange"          // what containers are given that say no requests
	ResourceQuotas     Kind = "ResourceQuota"       // how many pods may be created
	RuntimeClasses     Kind = "RuntimeClass"        // overhead, and the nodes that have it
	Services           Kind = "Service"             // how pods are spread, as the next three
	Replications       Kind = "ReplicationController"
	ReplicaSets        Kind = "ReplicaSet"
	StatefulSets       Kind = "StatefulSet"
	BatchJobs          Kind = "Job"         // whether an evicted pod is made again
	DeviceClasses      Kind = "DeviceClass" // devices as extended resources, as the next two
	ResourceSlices     Kind = "ResourceSlice"
	ResourceClaims     Kind = "ResourceClaim"
	ClaimTemplates     Kind = "ResourceClaimTemplate"
	VolumeClaims       Kind = "PersistentVolumeClaim" // where pods can have their volumes, as those that follow
	Volumes            Kind = "PersistentVolume"
	StorageClasses     Kind = "StorageClass"
	CSINodes           Kind = "CSINode"
	CSIDrivers         Kind = "CSIDriver"
	VolumeAttachments  Kind = "VolumeAttachment"
	MutatingWebhooks   Kind = "MutatingWebhookConfiguration" // what else changes or rejects pods, as the next
	ValidatingWebhooks Kind = "ValidatingWebhookConfiguration"
)

// ofDevices and ofVolumes say what a kind decides about.
func (k Kind) ofDevices() bool {
	return k == DeviceClasses || k == ResourceSlices || k == ResourceClaims || k == ClaimTemplates
}

func (k Kind) ofVolumes() bool {
	return k == VolumeClaims || k == Volumes || k == StorageClasses || k == CSINodes || k == CSIDrivers || k == VolumeAttachments
}

// devices are those that are known; nil where some of their kinds could not be read.
func (s *Snapshot) devices() *placement.Devices {
	if slices.ContainsFunc(s.Unread, func(u Unread) bool { return u.Kind.ofDevices() }) {
		return nil
	}
	return &s.Devices
}

// storage is what decides about volumes; nil where some of it could not be read.
func (s *Snapshot) storage() *placement.Storage {
	if slices.ContainsFunc(s.Unread, func(u Unread) bool { return u.Kind.ofVolumes() }) {
		return nil
	}
	return &s.Storage
}

// clusterQueueOf is where a LocalQueue leads; nil where it, or its ClusterQueue, is not there.
func (q *Queues) clusterQueueOf(namespace, name string) *kueue.ClusterQueue {
	for _, local := range q.LocalQueues {
		if local.Namespace != namespace || local.Name != name {
			continue
		}
		for _, queue := range q.ClusterQueues {
			if queue.Name == string(local.Spec.ClusterQueue) {
				return queue
			}
		}
	}
	return nil
}

// FlavorLabels are the node labels of the flavors that a LocalQueue chooses from, in its order; nil where one of them
// is not known.
func (q *Queues) FlavorLabels(namespace, queue string) []map[string]string {
	if q == nil {
		return nil
	}
	in := q.clusterQueueOf(namespace, queue)
	if in == nil {
		return nil
	}
	labels := []map[string]string{}
	for _, group := range in.Spec.ResourceGroups {
		for _, quotas := range group.Flavors {
			at := slices.IndexFunc(q.Flavors, func(f *kueue.ResourceFlavor) bool { return f.Name == string(quotas.Name) })
			if at < 0 {
				return nil
			}
			labels = append(labels, q.Flavors[at].Spec.NodeLabels)
		}
	}
	return labels
}
