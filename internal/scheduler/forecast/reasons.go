package forecast

import (
	"fmt"
	"slices"
)

// Reason is a reason for an approximate answer: something that it depends on is unknown, or was not fully considered.
type Reason struct {
	// Code is stable: gates select the reasons that they accept by it.
	Code ReasonCode `json:"code"`
	// Claims are those that it undermines.
	Claims Claim `json:"claims"`
	// Object is the subject of the reason, "PodDisruptionBudget", "ClusterQueue team-a"; "" for the forecast itself.
	Object string `json:"object,omitempty"`
	Text   string `json:"text"` // a sentence without its full stop
}

// ReasonCode is a kind of reason.
type ReasonCode string

// The reasons. What each means is in docs/guides/forecast-reference.md.
const (
	NotAllRead       ReasonCode = "not-readable"        // objects that the account may not list
	TooManyChoices   ReasonCode = "too-many-choices"    // equal choices of the scheduler, or pods that wait, beyond what is followed
	MissingClass     ReasonCode = "missing-class"       // a class that is not there
	MissingNamespace ReasonCode = "missing-namespace"   // a namespace that is not there
	NotModelled      ReasonCode = "not-modelled"        // what a pod uses and the engine does not know
	OtherScheduler   ReasonCode = "other-scheduler"     // pods that kube-scheduler does not place
	BoundDirectly    ReasonCode = "bound-directly"      // spec.nodeName: the kubelet decides
	QuotaOrder       ReasonCode = "quota-order"         // several jobs for what is left of a ResourceQuota
	CreationOrder    ReasonCode = "creation-order"      // planned jobs of which it is not known which come first, and that are too many to follow all orders
	QuotaMayFree     ReasonCode = "quota-may-free"      // a ResourceQuota that evictions give room in
	FairSharing      ReasonCode = "fair-sharing"        // Kueue's configuration of fair sharing is assumed
	UsageBasedOrder  ReasonCode = "usage-based-order"   // AdmissionFairSharing
	QueueTopology    ReasonCode = "topology"            // a flavor with a topology
	PriorityBoost    ReasonCode = "priority-boost"      // numbers that Kueue may add to priorities
	OthersAdmitted   ReasonCode = "others-admitted"     // workloads ahead, whose pods are not known
	InvalidQueue     ReasonCode = "invalid-queue"       // a ClusterQueue that cannot be understood
	PodsNotFound     ReasonCode = "pods-not-found"      // a workload that has admitted more pods than were found
	PlannedUnknown   ReasonCode = "planned-unknown"     // planned before it, and not known until apply
	OtherClusters    ReasonCode = "other-clusters"      // MultiKueue: another cluster runs the job
	NodesRequested   ReasonCode = "nodes-requested"     // a ProvisioningRequest: nodes may be made for the job
	MayGrow          ReasonCode = "autoscaler"          // an autoscaler may add nodes
	KueueSettings    ReasonCode = "kueue-configuration" // Kueue's configuration is assumed, or not modelled
	DeviceQuota      ReasonCode = "device-quota"        // devices of claims that Kueue counts as resources
	WorkloadSlices   ReasonCode = "workload-slices"     // a Workload that takes over the quota of another
	ReadyTimeout     ReasonCode = "ready-timeout"       // Kueue evicts workloads whose pods are not ready in time
	WebhookNotCalled ReasonCode = "webhook-not-called"  // webhooks that a dry run would have called
	UntestedVersion  ReasonCode = "untested-version"    // a version of Kubernetes with which the forecast was not compared
)

// ReasonCodes are all codes, in the order of the guide.
func ReasonCodes() []ReasonCode {
	return []ReasonCode{
		NotAllRead, TooManyChoices, MissingClass, MissingNamespace, NotModelled, OtherScheduler, BoundDirectly, CreationOrder, QuotaOrder,
		QuotaMayFree, WebhookNotCalled, PodsNotFound, FairSharing, UsageBasedOrder, QueueTopology, PriorityBoost, OthersAdmitted, InvalidQueue, PlannedUnknown,
		OtherClusters, NodesRequested, MayGrow, KueueSettings, DeviceQuota, WorkloadSlices, ReadyTimeout, UntestedVersion,
	}
}

// ParseReasonCodes parses codes that a gate accepts. An unknown code is an error: it may be misspelt.
func ParseReasonCodes(texts []string) ([]ReasonCode, error) {
	var codes []ReasonCode
	for _, text := range texts {
		if !slices.Contains(ReasonCodes(), ReasonCode(text)) {
			return nil, fmt.Errorf("%q is no code of a reason; they are %s", text, join(codesAsTexts()))
		}
		codes = append(codes, ReasonCode(text))
	}
	return codes, nil
}

func codesAsTexts() []string {
	var texts []string
	for _, code := range ReasonCodes() {
		texts = append(texts, string(code))
	}
	return texts
}

// undermined are the claims that a reason undermines, where that is not all of them.
var undermined = map[ReasonCode]Claim{
	OtherScheduler: beyondQueue, BoundDirectly: beyondQueue, QuotaOrder: beyondQueue, QuotaMayFree: beyondQueue, PodsNotFound: beyondQueue,
	OthersAdmitted: beyondQueue, OtherClusters: beyondQueue, UntestedVersion: beyondQueue,
	// More nodes let start what waits, and evict nobody.
	MayGrow: ClaimPlacement | ClaimStart, NodesRequested: ClaimPlacement | ClaimStart,
}

// NewReason is a reason that undermines what its code undermines in general.
func NewReason(code ReasonCode, object, text string) Reason {
	claims, special := undermined[code]
	if !special {
		claims = everyClaim
	}
	return Reason{Code: code, Claims: claims, Object: object, Text: text}
}

func (r Reason) undermines(of Claim) bool { return r.Claims&of != 0 }

// notes collects, without repetition, the reasons why an answer is approximate.
type notes struct {
	reasons []Reason
}

func (n *notes) add(code ReasonCode, object, format string, args ...any) {
	n.reasons = withReason(n.reasons, NewReason(code, object, fmt.Sprintf(format, args...)))
}

// addAbout adds a reason that undermines the given claims.
func (n *notes) addAbout(claims Claim, code ReasonCode, object, format string, args ...any) {
	n.reasons = withReason(n.reasons, Reason{Code: code, Claims: claims, Object: object, Text: fmt.Sprintf(format, args...)})
}

// withReason adds a reason to others; one that is there undermines the claims of both.
func withReason(reasons []Reason, reason Reason) []Reason {
	at := slices.IndexFunc(reasons, func(r Reason) bool {
		return r.Code == reason.Code && r.Object == reason.Object && r.Text == reason.Text
	})
	if at < 0 {
		return append(slices.Clip(reasons), reason)
	}
	reasons = slices.Clone(reasons)
	reasons[at].Claims |= reason.Claims
	return reasons
}

// Texts are the reasons' sentences.
func Texts(reasons []Reason) []string {
	texts := make([]string, 0, len(reasons))
	for _, reason := range reasons {
		texts = append(texts, reason.Text)
	}
	return texts
}
