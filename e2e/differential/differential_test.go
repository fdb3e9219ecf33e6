package differential

import (
	"flag"
	"os"
	"runtime"
	"testing"
	"time"
)

var (
	oneSeed   = flag.Uint64("seed", 0, "decide on the snapshot of this seed only, and show it")
	firstSeed = flag.Uint64("first", 0, "the first seed; 0: always the same, or one that was never used before where $ELASTIC_SOAK is set")
	oneFamily = flag.String("family", "", "only snapshots of this family")
	seedCount = flag.Uint64("seeds", 0, "how many seeds; 0: hundreds, or thousands where $ELASTIC_SOAK is set")
)

// seeds are the seeds of a run: from the first on, count of them; with -short a fifth of few.
func seeds(few, many uint64) (first, count uint64) {
	first, count = 1, few
	if testing.Short() {
		count /= 5
	}
	if os.Getenv("ELASTIC_SOAK") != "" {
		first, count = uint64(time.Now().Unix())<<16, many
	}
	if *firstSeed != 0 {
		first = *firstSeed
	}
	if *seedCount != 0 {
		count = *seedCount
	}
	if *oneSeed != 0 {
		first, count = *oneSeed, 1
	}
	return first, count
}

// atATime is how many snapshots are decided at a time: a decision waits for goroutines, and for a second where the scheduler
// binds a volume.
func atATime() int { return 16 * runtime.NumCPU() }

func generate(seed uint64) (*Snapshot, string) {
	if *oneFamily != "" {
		return GenerateOf(seed, *oneFamily), *oneFamily
	}
	return Generate(seed)
}

func TestTheEngineDecidesAsKubeSchedulersCodeDoes(t *testing.T) {
	first, count := seeds(600, 10_000)
	begin := time.Now()
	var tally Tally
	Each(first, count, atATime(), func(seed uint64) {
		snapshot, family := generate(seed)
		if *oneSeed != 0 {
			t.Logf("seed %d, family %q:\n%s", seed, family, snapshot)
		}
		steps, _, err := DecideInProcess(t.Context(), snapshot)
		if err != nil {
			t.Errorf("seed %d, family %q: %v", seed, family, err)
			return
		}
		for _, step := range steps {
			if *oneSeed != 0 {
				t.Logf("%s %s", nameOf(step.Pod), step.Decision.withEquals())
			}
			compared, err := Compare(t.Context(), step)
			if err != nil {
				t.Errorf("seed %d, family %q, pod %s: %v\n%s", seed, family, nameOf(step.Pod), err, step.Before)
				return
			}
			tally.Count(family, compared)
			if compared.Result != Different {
				continue
			}
			if tally.Sum().Results[Different] > mostShown {
				t.Errorf("seed %d, family %q", seed, family)
				continue
			}
			t.Errorf("seed %d, family %q; replay with: go -C e2e test ./differential -run %s -seed %d -v\n%s",
				seed, family, t.Name(), seed, compared.Minimal(t.Context()))
		}
	})
	t.Logf("seeds %d to %d in %s\n%s", first, first+count-1, time.Since(begin).Round(time.Second), &tally)
}

// mostShown is the number of differences that are reduced and shown.
const mostShown = 5
