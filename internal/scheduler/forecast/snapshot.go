package forecast

import (
	"cmp"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/configuration"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// Snapshot is the state of a cluster at one time. A forecast changes nothing in it.
type Snapshot struct {
	AsOf time.Time
	// Version is that of the API server, "v1.36.1"; "" if it is not known.
	Version string
	// Open is true if others may create objects before the jobs, as other providers of a plan may: a class or a
	// namespace that does not exist then makes an answer approximate. Otherwise it is an error, as for the API server.
	Open            bool
	Nodes           []*corev1.Node
	Pods            []*corev1.Pod // those that have not ended
	PriorityClasses []*schedulingv1.PriorityClass
	Budgets         []*policyv1.PodDisruptionBudget
	PlannedBudgets  []string // the names of those that are planned with the jobs
	Namespaces      []*corev1.Namespace
	// Objects by which the API server changes or rejects pods when they are created.
	LimitRanges    []*corev1.LimitRange
	Quotas         []*corev1.ResourceQuota
	RuntimeClasses []*nodev1.RuntimeClass
	// RulesPlanned is true if objects that affect admission are planned with the jobs, so that no dry run has applied
	// them.
	RulesPlanned bool
	// Barred are the controllers, by their UIDs, whose new pods the API server rejects, as dry runs say.
	Barred map[types.UID]bool
	// PlannedAccounts are the ServiceAccounts that are planned with the jobs.
	PlannedAccounts []types.NamespacedName
	// Objects that spread pods without spread constraints of their own.
	Services               []*corev1.Service
	ReplicationControllers []*corev1.ReplicationController
	ReplicaSets            []*appsv1.ReplicaSet
	StatefulSets           []*appsv1.StatefulSet
	// Devices that drivers offer.
	Devices placement.Devices
	// Storage holds the objects that volumes are bound to.
	Storage placement.Storage
	// Webhooks that may be called for pods.
	Webhooks Webhooks
	// BatchJobs determine whether an evicted pod is created again.
	BatchJobs []*batchv1.Job
	// Queues are Kueue's objects; nil if they were not read, which suffices for jobs without a queue.
	Queues *Queues
	// Jobs is further information about running training jobs. It is optional; see Answer.NeedsConfigMaps.
	Jobs map[types.NamespacedName]TrainingJob
	// Deletions are objects that a plan deletes: their pods and Workloads are gone when the planned jobs start.
	Deletions []Deletion
	// Unread are kinds of objects that could not be read, which makes a forecast approximate.
	Unread []Unread
}

// Queues are Kueue's objects. Workloads that have ended may be missing.
type Queues struct {
	ClusterQueues   []*kueue.ClusterQueue
	LocalQueues     []*kueue.LocalQueue
	Flavors         []*kueue.ResourceFlavor
	Cohorts         []*kueue.Cohort
	AdmissionChecks []*kueue.AdmissionCheck
	PriorityClasses []*kueue.WorkloadPriorityClass
	Topologies      []*kueue.Topology
	// TopologiesUnread is the missing permission if Topologies could not be read; "" if they were.
	TopologiesUnread string
	Workloads        []*kueue.Workload
	// Configuration is Kueue's; nil where it is not known.
	Configuration *configuration.Configuration
	// ConfigurationUnread is why Kueue's configuration is not known, or not all of it; "" if it is. Where it is empty, no
	// Configuration means Kueue's defaults.
	ConfigurationUnread string
}

// TrainingJob is the content of a training job's ConfigMaps.
type TrainingJob struct {
	Workers trainingjob.Workers
	Status  trainingjob.Status
}

// Unread is a kind of object that could not be read.
type Unread struct {
	Kind Kind
	Verb string // the missing permission, "list poddisruptionbudgets", or another cause: "not in the snapshot"
}

// Kind is a kind of object without which a forecast is possible, but approximate.
type Kind string

// The kinds without which a forecast is possible. An API server has to show the pods, the classes and, of Kueue, all but
// the topologies, which a file may lack.
const (
	Pods               Kind = "Pod"
	PriorityClasses    Kind = "PriorityClass"
	ClusterQueues      Kind = "ClusterQueue"
	LocalQueues        Kind = "LocalQueue"
	Flavors            Kind = "ResourceFlavor"
	Cohorts            Kind = "Cohort"
	AdmissionChecks    Kind = "AdmissionCheck"
	QueueClasses       Kind = "WorkloadPriorityClass"
	Workloads          Kind = "Workload"
	Budgets            Kind = "PodDisruptionBudget" // limits preemption
	Namespaces         Kind = "Namespace"           // labels for affinities, queues and Pod Security
	LimitRanges        Kind = "LimitRange"          // default requests of containers
	ResourceQuotas     Kind = "ResourceQuota"       // how many pods may be created
	RuntimeClasses     Kind = "RuntimeClass"        // overhead, and node selectors
	Services           Kind = "Service"             // how pods are spread, as the next three
	Replications       Kind = "ReplicationController"
	ReplicaSets        Kind = "ReplicaSet"
	StatefulSets       Kind = "StatefulSet"
	BatchJobs          Kind = "Job"         // whether an evicted pod is made again
	DeviceClasses      Kind = "DeviceClass" // devices as extended resources, as the next two
	ResourceSlices     Kind = "ResourceSlice"
	ResourceClaims     Kind = "ResourceClaim"
	ClaimTemplates     Kind = "ResourceClaimTemplate"
	VolumeClaims       Kind = "PersistentVolumeClaim" // where pods can have their volumes, as the following kinds
	Volumes            Kind = "PersistentVolume"
	StorageClasses     Kind = "StorageClass"
	CSINodes           Kind = "CSINode"
	CSIDrivers         Kind = "CSIDriver"
	VolumeAttachments  Kind = "VolumeAttachment"
	MutatingWebhooks   Kind = "MutatingWebhookConfiguration" // other changes and rejections of pods, as the next
	ValidatingWebhooks Kind = "ValidatingWebhookConfiguration"
	Topologies         Kind = "Topology" // where the pods of a queue may go
)

// ofDevices and ofVolumes describe what a kind affects.
func (k Kind) ofDevices() bool {
	return k == DeviceClasses || k == ResourceSlices || k == ResourceClaims || k == ClaimTemplates
}

func (k Kind) ofVolumes() bool {
	return k == VolumeClaims || k == Volumes || k == StorageClasses || k == CSINodes || k == CSIDrivers || k == VolumeAttachments
}

// ofQueues describes the kinds that decide about admission by a queue.
func (k Kind) ofQueues() bool {
	return slices.Contains([]Kind{ClusterQueues, LocalQueues, Flavors, Cohorts, AdmissionChecks, QueueClasses, Workloads}, k)
}

// devices are the known devices; nil if some of their kinds could not be read.
func (s *Snapshot) devices() *placement.Devices {
	if slices.ContainsFunc(s.Unread, func(u Unread) bool { return u.Kind.ofDevices() }) {
		return nil
	}
	return &s.Devices
}

// storage is what volumes depend on; nil if some of it could not be read.
func (s *Snapshot) storage() *placement.Storage {
	if slices.ContainsFunc(s.Unread, func(u Unread) bool { return u.Kind.ofVolumes() }) {
		return nil
	}
	return &s.Storage
}

// clusterQueueOf is the ClusterQueue of a LocalQueue; nil if either does not exist.
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

// FlavorLabels are the node labels of the flavors of a LocalQueue, in its order; nil if one of them is not known.
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

// TrainingJobs are the training jobs that have pods, sorted.
func (s *Snapshot) TrainingJobs() []types.NamespacedName {
	return s.trainingJobsWith(func(*corev1.Pod) bool { return true })
}

// trainingJobsWith are the training jobs that have such pods, sorted.
func (s *Snapshot) trainingJobsWith(such func(*corev1.Pod) bool) []types.NamespacedName {
	found := map[types.NamespacedName]bool{}
	for _, pod := range s.Pods {
		if o := ownerOf(pod); o.kind == aTrainingJob && such(pod) {
			found[o.key()] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
}

// mayHave reports whether there may be objects of a kind that the snapshot does not have: others of the plan, or those
// that could not be read.
func (s *Snapshot) mayHave(kind Kind) bool {
	return s.Open || slices.ContainsFunc(s.Unread, func(u Unread) bool { return u.Kind == kind })
}
