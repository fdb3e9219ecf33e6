package quota

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Result is what a cycle decided, in the order of decision.
type Result struct {
	Decisions []Decision
	// Settled is true when another cycle would decide the same as long as nothing is reported to the engine and
	// RequeueAt has not come. (A StrictFIFO queue keeps its head: Kueue tries it over and over, and so would a loop
	// that does not look here.)
	Settled bool
}

// Kind defines what a decision is.
type Kind string

const (
	// Admit means that the workload holds quota from now on (and is admitted unless Decision.Checks are to be awaited).
	Admit Kind = "Admit"
	// Preempt means that Decision.Targets are to be evicted; the workload is tried again and gets their quota once it
	// was released.
	Preempt Kind = "Preempt"
	// Move means that the workload keeps its quota, and its pods on failed nodes go to others: Decision.Admission has
	// the places.
	Move Kind = "Move"
	// Wait means that the workload was tried and stays pending; Reason and Message are those of its condition
	// QuotaReserved=False.
	Wait Kind = "Wait"
	// Evict means that the workload must give its quota back for a reason other than preemption (its queue was stopped,
	// it was deactivated).
	Evict Kind = "Evict"
)

// Decision is about one workload.
type Decision struct {
	Kind         Kind
	Workload     types.NamespacedName
	ClusterQueue string

	// Admission (Admit, Preempt, Move) is what it gets, or will get once the targets are gone: status.admission. Nil
	// otherwise.
	Admission *kueue.Admission
	// Borrows (Admit, Preempt) is 0 within the queue's nominal quota, else the height of the cohort subtree whose quota
	// suffices.
	Borrows int
	// Checks (Admit) names the admission checks that must be ready before it is admitted; empty: it is admitted at
	// once.
	Checks []string

	// Replaced (Admit) is the workload whose quota this one has taken over: it has ended. Nil: there was none.
	Replaced *types.NamespacedName

	// Targets (Preempt) in the order in which they are evicted.
	Targets []Target

	// Reason and Message, as Kueue writes them: of QuotaReserved=False (Wait, Preempt) or of Evicted=True (Evict).
	Reason, Message string
	// Cause (Wait, Preempt) is why, more finely than Reason.
	Cause Cause

	Why Explanation
}

// Target is a workload that is evicted to make room for another.
type Target struct {
	Workload     types.NamespacedName
	ClusterQueue string
	Priority     int32
	// Reason is that of the condition Preempted: kueue.InClusterQueueReason and its like.
	Reason string
	// Message is that of the conditions Evicted and Preempted.
	Message string
	// Ongoing: its eviction had been decided before, and its quota is not released yet.
	Ongoing bool
}

// Cause is why a workload waits.
type Cause string

const (
	// NoFit means that no flavor has, or can get by preemption that policy allows, what it asks for.
	NoFit Cause = "NoFit"
	// NoCandidates means that preemption would be allowed, but there is nobody, or not enough, to preempt.
	NoCandidates Cause = "NoCandidates"
	// AwaitsPreempted means that its victims are being evicted.
	AwaitsPreempted Cause = "AwaitsPreempted"
	// TakenInCycle means that it was to be admitted, but another queue's workload took the quota in the same cycle; it
	// is tried again at once.
	TakenInCycle Cause = "TakenInCycle"
	// VictimsInCycle means that another queue's workload claimed some of its victims in the same cycle; it is tried
	// again at once.
	VictimsInCycle Cause = "VictimsInCycle"
	// Alike means that a workload of the same shape and priority was found not to fit, so it was not tried.
	Alike Cause = "Alike"
	// Behind means that others of its queue come first.
	Behind Cause = "Behind"
	// QueueInactive means that its ClusterQueue is stopped, missing, or lacks a flavor or an admission check, or its
	// cohorts form a cycle.
	QueueInactive Cause = "QueueInactive"
	// QueueStopped means that its LocalQueue is stopped or missing.
	QueueStopped Cause = "QueueStopped"
	// NamespaceMismatch means that its namespace is not selected by the ClusterQueue.
	NamespaceMismatch Cause = "NamespaceMismatch"
	// Inactive means that it was deactivated.
	Inactive Cause = "Inactive"
	// Held means that it was evicted for a reason that still stands (Requeued=False).
	Held Cause = "Held"
	// Gated means that it carries an admission gate.
	Gated Cause = "Gated"
)

// Explanation describes how a decision came about.
type Explanation struct {
	// Flavors that were looked at, in order.
	Flavors []FlavorTrial
	// Victims that were looked at for the flavors that were chosen, in the order of trial.
	Victims []VictimTrial
	// Nobody is why there are no victims; empty when there are, or when none were needed.
	Nobody NobodyReason
}

// FlavorTrial is one flavor tried for the resources of one resource group.
type FlavorTrial struct {
	PodSets []string
	Flavor  string
	Result  FlavorResult
	// Borrows is the height of the cohort subtree whose quota it would use; 0: the queue's own.
	Borrows int
	// Chosen is true for the flavor that was taken (or would be).
	Chosen bool
	// Reasons are Kueue's own sentences, one per obstacle.
	Reasons []string
}

// FlavorResult is what came of trying a flavor.
type FlavorResult string

// The results, from best to worst; the last five rule the flavor out.
const (
	Fits                FlavorResult = "Fits"
	FitsByReclaim       FlavorResult = "FitsByReclaim"    // by evicting workloads of other queues only
	FitsByPreemption    FlavorResult = "FitsByPreemption" // by evicting workloads of its own queue, too
	NobodyToPreempt     FlavorResult = "NobodyToPreempt"
	QuotaTooSmall       FlavorResult = "QuotaTooSmall" // not even with everything free, or preemption is not allowed
	FlavorMissing       FlavorResult = "FlavorMissing"
	TaintNotTolerated   FlavorResult = "TaintNotTolerated"
	AffinityMismatch    FlavorResult = "AffinityMismatch"
	TopologyMismatch    FlavorResult = "TopologyMismatch" // the pods request a topology and the flavor has none, or the other way round
	ResourceNotProvided FlavorResult = "ResourceNotProvided"
)

// VictimTrial is one candidate in the search for victims.
type VictimTrial struct {
	Workload     types.NamespacedName
	ClusterQueue string
	Priority     int32
	// Reason is that of the condition Preempted.
	Reason string
	// Evicted is false for one that was put back, because the rest suffices without it.
	Evicted bool
}

// NobodyReason is why nobody is preempted.
type NobodyReason string

const (
	// PolicyForbids means that the queue's policies (withinClusterQueue, reclaimWithinCohort, borrowWithinCohort) allow
	// no preemption here.
	PolicyForbids NobodyReason = "PolicyForbids"
	// NoneQualifies means that no workload that uses the flavor has a low enough priority, or belongs to a queue that
	// borrows.
	NoneQualifies NobodyReason = "NoneQualifies"
	// NotEnough means that evicting all that qualify would not make room.
	NotEnough NobodyReason = "NotEnough"
)

// FlavorUsage is what a ClusterQueue has and uses of a resource in a flavor.
type FlavorUsage struct {
	Flavor   string
	Resource corev1.ResourceName
	Nominal  resource.Quantity
	// Reserved is held by its workloads, Borrowed the part of it beyond Nominal (0 outside a cohort).
	Reserved, Borrowed resource.Quantity
}
