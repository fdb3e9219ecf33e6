package kueue

// ConditionActive is the condition of ClusterQueues, LocalQueues and AdmissionChecks that are in working order.
const ConditionActive = "Active"

// Reasons of a ClusterQueue's condition Active. Several may be wrong at once; the reason is the first, the message has
// all.
const (
	ClusterQueueActiveReasonReady                                    = "Ready"
	ClusterQueueActiveReasonTerminating                              = "Terminating"
	ClusterQueueActiveReasonStopped                                  = "Stopped"
	ClusterQueueActiveReasonFlavorNotFound                           = "FlavorNotFound"
	ClusterQueueActiveReasonAdmissionCheckNotFound                   = "AdmissionCheckNotFound"
	ClusterQueueActiveReasonAdmissionCheckInactive                   = "AdmissionCheckInactive"
	ClusterQueueActiveReasonMultipleMultiKueueAdmissionChecks        = "MultipleMultiKueueAdmissionChecks"
	ClusterQueueActiveReasonMultiKueueAdmissionCheckAppliedPerFlavor = "MultiKueueAdmissionCheckAppliedPerFlavor"
	ClusterQueueActiveReasonMultiKueueWithProvisioningRequest        = "MultiKueueWithProvisioningRequest"
	ClusterQueueActiveReasonTopologyNotFound                         = "TopologyNotFound"
	ClusterQueueActiveReasonUnknown                                  = "Unknown"
)

// Reasons of a LocalQueue's condition Active.
const (
	LocalQueueActiveReasonReady                    = "Ready"
	LocalQueueActiveReasonStopped                  = "Stopped"
	LocalQueueActiveReasonClusterQueueDoesNotExist = "ClusterQueueDoesNotExist"
	LocalQueueActiveReasonClusterQueueIsInactive   = "ClusterQueueIsInactive"
)

// Conditions of a Workload.
const (
	// WorkloadQuotaReserved: it holds quota.
	WorkloadQuotaReserved = "QuotaReserved"
	// WorkloadAdmitted: it holds quota and its checks have passed.
	WorkloadAdmitted = "Admitted"
	// WorkloadPodsReady: all its pods are ready or have succeeded.
	WorkloadPodsReady = "PodsReady"
	// WorkloadEvicted: it was, or is being, stopped.
	WorkloadEvicted = "Evicted"
	// WorkloadPreempted: it was evicted for another; the message says for which.
	WorkloadPreempted = "Preempted"
	// WorkloadRequeued: whether it waits in the queue again after an eviction.
	WorkloadRequeued = "Requeued"
	// WorkloadFinished: its job has ended.
	WorkloadFinished = "Finished"
	// WorkloadDeactivationTarget: it is to be deactivated, for the reason given.
	WorkloadDeactivationTarget = "DeactivationTarget"
	// WorkloadWaitingForReplacementPods: pods of its group are missing.
	WorkloadWaitingForReplacementPods = "WaitingForReplacementPods"
)

// Reasons of QuotaReserved and Admitted.
const (
	WorkloadQuotaReservedReason = "QuotaReserved"
	WorkloadAdmittedReason      = "Admitted"

	// WorkloadPending: it waits in the queue; the message says for what.
	WorkloadPending = "Pending"
	// WorkloadInadmissible: its queue is missing or inactive, or its namespace is not selected.
	WorkloadInadmissible = "Inadmissible"
	// WorkloadOnHold: it gave its quota back and is not queued.
	WorkloadOnHold = "OnHold"
	// WorkloadWaiting: others' pods have to become ready first.
	WorkloadWaiting = "Waiting"
	// WorkloadAdmissionGated: somebody named in AdmissionGatedByAnnotation holds it back.
	WorkloadAdmissionGated = "AdmissionGated"
	// WorkloadAdmittedReasonNoReservation: not admitted, because it holds no quota.
	WorkloadAdmittedReasonNoReservation = "NoReservation"
	// WorkloadAdmittedReasonUnsatisfiedAdmissionChecks: not admitted, because a check has not passed.
	WorkloadAdmittedReasonUnsatisfiedAdmissionChecks = "UnsatisfiedAdmissionChecks"
)

// Reasons of Evicted. A deactivated workload's reason may continue with DueTo and the cause, such as
// DeactivatedDueToMaximumExecutionTimeExceeded.
const (
	WorkloadEvictedByPreemption          = "Preempted"
	WorkloadEvictedByPodsReadyTimeout    = "PodsReadyTimeout"
	WorkloadEvictedByAdmissionCheck      = "AdmissionCheck"
	WorkloadEvictedByClusterQueueStopped = "ClusterQueueStopped"
	WorkloadEvictedByLocalQueueStopped   = "LocalQueueStopped"
	WorkloadEvictedDueToNodeFailures     = "NodeFailures"
	WorkloadDeactivated                  = "Deactivated"
	WorkloadRequeuingLimitExceeded       = "RequeuingLimitExceeded"
	WorkloadMaximumExecutionTimeExceeded = "MaximumExecutionTimeExceeded"
)

// Reasons of Preempted.
const (
	InClusterQueueReason                = "InClusterQueue"
	InCohortReclamationReason           = "InCohortReclamation"
	InCohortReclaimWhileBorrowingReason = "InCohortReclaimWhileBorrowing"
	InCohortFairSharingReason           = "InCohortFairSharing"
)

// Reasons of Requeued, besides those of the eviction that it follows.
const (
	WorkloadReactivated           = "Reactivated"
	WorkloadBackoffFinished       = "BackoffFinished"
	WorkloadClusterQueueRestarted = "ClusterQueueRestarted"
	WorkloadLocalQueueRestarted   = "LocalQueueRestarted"
)

// Reasons of PodsReady.
const (
	WorkloadWaitForStart    = "WaitForStart"
	WorkloadWaitForRecovery = "WaitForRecovery"
	WorkloadStarted         = "Started"
	WorkloadRecovered       = "Recovered"
)

// Reasons of Finished.
const (
	WorkloadFinishedReasonSucceeded     = "Succeeded"
	WorkloadFinishedReasonFailed        = "Failed"
	WorkloadFinishedReasonOutOfSync     = "OutOfSync"
	WorkloadFinishedReasonOwnerNotFound = "OwnerNotFound"
	WorkloadSliceReplaced               = "WorkloadSliceReplaced"
)
