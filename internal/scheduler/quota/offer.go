package quota

import "github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"

// mode says how a pod set, or a whole assignment, could be had.
type mode int

const (
	noFit mode = iota
	needsPreemption
	fits
)

// grade is mode with finer distinctions, from worst to best.
type grade int

const (
	gradeNoFit grade = iota
	gradeNoCandidates
	gradePreempt
	gradeReclaim
	gradeFit
)

func (g grade) mode() mode {
	switch g {
	case gradeNoFit:
		return noFit
	case gradeFit:
		return fits
	}
	return needsPreemption
}

func (g grade) verdict() FlavorVerdict {
	return [...]FlavorVerdict{QuotaTooSmall, NobodyToPreempt, FitsByPreemption, FitsByReclaim, Fits}[g]
}

// offer is how good a flavor is: its grade, and how far away the quota is (see heightFor).
type offer struct {
	grade   grade
	borrows int
}

// betterThan compares two offers as the queue prefers.
func (a offer) betterThan(b offer, preference *kueue.FlavorFungibilityPreference) bool {
	switch {
	case a.grade == gradeNoFit:
		return false
	case b.grade == gradeNoFit:
		return true
	case (a.grade == gradeNoCandidates) != (b.grade == gradeNoCandidates):
		return b.grade == gradeNoCandidates
	}
	if preference != nil && *preference == kueue.PreemptionOverBorrowing && a.borrows != b.borrows {
		return a.borrows < b.borrows
	}
	if a.grade != b.grade {
		return a.grade > b.grade
	}
	return a.borrows < b.borrows
}

// keepsSearching reports whether the queue looks at the next flavor after an offer.
func (q *queue) keepsSearching(o offer) bool {
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
	case o.grade == gradeNoFit, o.grade == gradeNoCandidates:
		return true
	case (o.grade == gradePreempt || o.grade == gradeReclaim) && preempt == kueue.TryNextFlavor:
		return true
	}
	return o.borrows > 0 && borrow == kueue.TryNextFlavor
}

func (q *queue) preference() *kueue.FlavorFungibilityPreference {
	if q.spec.FlavorFungibility == nil {
		return nil
	}
	return q.spec.FlavorFungibility.Preference
}
