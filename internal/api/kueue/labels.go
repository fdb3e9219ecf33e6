package kueue

// Labels and annotations that users put on jobs and pods.
const (
	// QueueLabel names the LocalQueue of a job or pod.
	QueueLabel = "kueue.x-k8s.io/queue-name"
	// WorkloadPriorityClassLabel names the WorkloadPriorityClass of a job or pod.
	WorkloadPriorityClassLabel = "kueue.x-k8s.io/priority-class"
	// MaxExecTimeSecondsLabel is how long a job may be admitted before it is deactivated.
	MaxExecTimeSecondsLabel = "kueue.x-k8s.io/max-exec-time-seconds"
	// PodGroupNameLabel joins pods that are admitted together, or not at all.
	PodGroupNameLabel = "kueue.x-k8s.io/pod-group-name"
	// PodGroupTotalCountAnnotation is the number of pods of a group.
	PodGroupTotalCountAnnotation = "kueue.x-k8s.io/pod-group-total-count"
	// PodGroupFastAdmissionAnnotation, "true", admits a group when its first pod is there.
	PodGroupFastAdmissionAnnotation = "kueue.x-k8s.io/pod-group-fast-admission"
	// RetriableInGroupAnnotation, "false", ends a group when this pod fails.
	RetriableInGroupAnnotation = "kueue.x-k8s.io/retriable-in-group"
	// JobMinParallelismAnnotation is how few pods a batch/v1 Job may be admitted with (partial admission).
	JobMinParallelismAnnotation = "kueue.x-k8s.io/job-min-parallelism"
	// JobCompletionsEqualParallelismAnnotation, "true", keeps an Indexed Job's completions equal to its parallelism.
	JobCompletionsEqualParallelismAnnotation = "kueue.x-k8s.io/job-completions-equal-parallelism"
	// PodSetRequiredTopologyAnnotation on a pod template is the topology level whose one domain must hold all pods.
	PodSetRequiredTopologyAnnotation = "kueue.x-k8s.io/podset-required-topology"
	// PodSetPreferredTopologyAnnotation is the level whose one domain should hold them, if that can be.
	PodSetPreferredTopologyAnnotation = "kueue.x-k8s.io/podset-preferred-topology"
	// PodSetUnconstrainedTopologyAnnotation, "true", takes part in topology-aware scheduling with any place.
	PodSetUnconstrainedTopologyAnnotation = "kueue.x-k8s.io/podset-unconstrained-topology"
	// PodSetSliceRequiredTopologyAnnotation is the level whose one domain must hold each slice of the pods.
	PodSetSliceRequiredTopologyAnnotation = "kueue.x-k8s.io/podset-slice-required-topology"
	// PodSetSliceSizeAnnotation is the number of pods in a slice.
	PodSetSliceSizeAnnotation = "kueue.x-k8s.io/podset-slice-size"
	// PodGroupPodIndexLabelAnnotation on a pod is the label with its index, by which Kueue places it in order.
	PodGroupPodIndexLabelAnnotation = "kueue.x-k8s.io/pod-group-pod-index-label"
	// PodGroupPodIndexLabel is a pod's index in its group.
	PodGroupPodIndexLabel = "kueue.x-k8s.io/pod-group-pod-index"
	// ElasticJobAnnotation, "true", lets a job grow and shrink by workload slices.
	ElasticJobAnnotation = "kueue.x-k8s.io/elastic-job"
)

// Labels and annotations that Kueue puts on jobs, pods and workloads.
const (
	// ManagedLabel is "true" on pods that Kueue manages one by one or in groups.
	ManagedLabel = "kueue.x-k8s.io/managed"
	// PodSetLabel is the name of the pod set that a pod is of.
	PodSetLabel = "kueue.x-k8s.io/podset"
	// ClusterQueueLabel is the ClusterQueue that admitted a pod.
	ClusterQueueLabel = "kueue.x-k8s.io/cluster-queue-name"
	// LocalQueueLabel is the LocalQueue that a pod came through.
	LocalQueueLabel = "kueue.x-k8s.io/local-queue-name"
	// JobUIDLabel is the UID of the job that a workload stands for.
	JobUIDLabel = "kueue.x-k8s.io/job-uid"
	// StoppingAnnotation is on a Job whose suspension has begun and whose counts are not restored yet.
	StoppingAnnotation = "kueue.x-k8s.io/stopping"
	// WorkloadAnnotation is the name of the workload that a pod belongs to.
	WorkloadAnnotation = "kueue.x-k8s.io/workload"
	// RoleHashAnnotation distinguishes pods of one group that differ; it names their pod set.
	RoleHashAnnotation = "kueue.x-k8s.io/role-hash"
	// IsGroupWorkloadAnnotation is "true" on the workload of a group of pods.
	IsGroupWorkloadAnnotation = "kueue.x-k8s.io/is-group-workload"
	// AdmissionGatedByAnnotation lists who holds a workload back.
	AdmissionGatedByAnnotation = "kueue.x-k8s.io/admission-gated-by"
	// PriorityBoostAnnotation on a workload is a number that is added to its priority, with the feature gate PriorityBoost.
	PriorityBoostAnnotation = "kueue.x-k8s.io/priority-boost"
	// SliceReplacementAnnotation names the workload whose quota a workload takes over: an elastic job has grown.
	SliceReplacementAnnotation = "kueue.x-k8s.io/workload-slice-replacement-for"
	// JobOwnerNameAnnotation is the name of the job that a workload stands for.
	JobOwnerNameAnnotation = "kueue.x-k8s.io/job-owner-name"
	// JobOwnerGVKAnnotation is the group, version and kind of that job.
	JobOwnerGVKAnnotation = "kueue.x-k8s.io/job-owner-gvk"
)

// Gates that hold pods back, and finalizers.
const (
	// AdmissionGate is on a pod until its workload is admitted.
	AdmissionGate = "kueue.x-k8s.io/admission"
	// TopologyGate is on a pod until its place is decided.
	TopologyGate = "kueue.x-k8s.io/topology"
	// ElasticJobGate is on a pod that waits for a larger workload slice.
	ElasticJobGate = "kueue.x-k8s.io/elastic-job"
	// PodFinalizer keeps a pod until Kueue has counted it.
	PodFinalizer = ManagedLabel
	// ResourceInUseFinalizer keeps a flavor, queue, check, topology or workload while something refers to it.
	ResourceInUseFinalizer = "kueue.x-k8s.io/resource-in-use"
)
