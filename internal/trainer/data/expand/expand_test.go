package expand_test

import (
	"math"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/expand"
)

func TestLimitGrowsWithWhatIsStoredAndNeverOverflows(t *testing.T) {
	for stored, want := range map[int64]int64{
		0:             expand.MinLimit,
		4 << 20:       64 << 20,
		8 << 20:       128 << 20,
		math.MaxInt64: 1 << 62,
	} {
		if got := expand.Limit(stored); got != want {
			t.Errorf("%d bytes from %d stored ones; want %d", got, stored, want)
		}
	}
}
