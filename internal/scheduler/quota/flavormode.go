package quota

import kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

// assignmentMode is how a pod set, or a whole assignment, could be had.
type assignmentMode int

const (
	noFit assignmentMode = iota
	needsPreemption
	fits
)

// preemptionMode is assignmentMode with finer distinctions, from worst to best, as in Kueue's flavor assigner.
type preemptionMode int

const (
	modeNoFit preemptionMode = iota
	modeNoCandidates
	modePreempt
	modeReclaim
	modeFit
)

func (g preemptionMode) assignmentMode() assignmentMode {
	switch g {
	case modeNoFit:
		return noFit
	case modeFit:
		return fits
	}
	return needsPreemption
}

func (g preemptionMode) result() FlavorResult {
	return [...]FlavorResult{QuotaTooSmall, NobodyToPreempt, FitsByPreemption, FitsByReclaim, Fits}[g]
}

// flavorMode is how good a flavor is (Kueue's granularMode): the preemption that it needs, and how far away the quota
// is (see heightFor).
type flavorMode struct {
	preemption     preemptionMode
	borrowingLevel int
}

// betterThan compares two modes as the queue prefers.
func (a flavorMode) betterThan(b flavorMode, preference *kueue.FlavorFungibilityPreference) bool {
	switch {
	case a.preemption == modeNoFit:
		return false
	case b.preemption == modeNoFit:
		return true
	case (a.preemption == modeNoCandidates) != (b.preemption == modeNoCandidates):
		return b.preemption == modeNoCandidates
	}
	if preference != nil && *preference == kueue.PreemptionOverBorrowing && a.borrowingLevel != b.borrowingLevel {
		return a.borrowingLevel < b.borrowingLevel
	}
	if a.preemption != b.preemption {
		return a.preemption > b.preemption
	}
	return a.borrowingLevel < b.borrowingLevel
}

// shouldTryNextFlavor reports whether the queue looks at the next flavor after one of this mode.
func (q *queue) shouldTryNextFlavor(o flavorMode) bool {
	fungibility := q.spec.FlavorFungibility
	borrow, preempt := kueue.MayStopSearch, kueue.TryNextFlavor
	if fungibility != nil {
		if fungibility.WhenCanBorrow != "" {
			borrow = fungibility.WhenCanBorrow
		}
		if fungibility.WhenCanPreempt != "" {
			preempt = fungibility.WhenCanPreempt
		}
	}
	switch {
	case o.preemption == modeNoFit, o.preemption == modeNoCandidates:
		return true
	case (o.preemption == modePreempt || o.preemption == modeReclaim) && preempt == kueue.TryNextFlavor:
		return true
	}
	return o.borrowingLevel > 0 && borrow == kueue.TryNextFlavor
}

func (q *queue) preference() *kueue.FlavorFungibilityPreference {
	if q.spec.FlavorFungibility == nil {
		return nil
	}
	return q.spec.FlavorFungibility.Preference
}
