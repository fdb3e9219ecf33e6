package preemption_test

import (
	"maps"
	"slices"
	"testing"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/preemption"
)

func TestTheReasonsOfAPreemptionAreKueues(t *testing.T) {
	want := []string{kueue.InClusterQueueReason, kueue.InCohortFairSharingReason, kueue.InCohortReclaimWhileBorrowingReason, kueue.InCohortReclamationReason}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(preemption.Texts())); !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
