package differential

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// claimed counts claims by their kind and whether they are certain, and the reasons of the others.
type claimed struct {
	mutex sync.Mutex
	count map[string]int
}

func (c *claimed) add(what string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.count == nil {
		c.count = map[string]int{}
	}
	c.count[what]++
}

func (c *claimed) claims(of string, a forecast.Answer) {
	claims := a.Claims()
	for name, claim := range map[string]forecast.Certainty{
		"outcome": claims.Outcome, "evictions": claims.Evictions.Certainty, "placement": claims.Placement,
	} {
		what := fmt.Sprintf("%s: %s", of, name)
		if claim.Certain {
			c.add(what + " certain")
			continue
		}
		c.add(what + " uncertain")
		for _, reason := range claim.Reasons {
			c.add(what + " " + string(reason))
		}
	}
}

func (c *claimed) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(c.count)) {
		fmt.Fprintf(&b, "%8d %s\n", c.count[what], what)
	}
	return b.String()
}

// A forecast with all its time says exactly what may happen. One that had no time follows one of many runs: what it calls
// certain nevertheless rests on proofs.
func TestEveryCertainClaimIsTrueOfAllThatMayHappenInASmallWorld(t *testing.T) {
	first, count := seeds(200, 10_000)
	begin := time.Now()
	ctx := t.Context()
	var counts claimed
	drawn := count
	if *oneSeed == 0 {
		count += uint64(len(onceWrong))
	}
	Each(0, count, atATime(), func(i uint64) {
		seed := first + i
		if i >= drawn {
			seed = onceWrong[i-drawn]
		}
		world, family := SmallWorld(seed)
		judged, err := judgeWorld(ctx, world)
		switch {
		case errors.Is(err, errTooMany):
			counts.add("worlds in which too much may happen")
			return
		case err != nil:
			t.Errorf("seed %d, family %q: %v", seed, family, err)
			return
		}
		counts.add("worlds")
		counts.add(fmt.Sprintf("worlds of %q", family))
		if len(judged.runs) > 1 {
			counts.add("worlds in which several things may happen")
		}
		for of, answer := range judged.answers {
			counts.claims(of, answer)
		}
		if len(judged.wrong) == 0 {
			return
		}
		counts.add("worlds with a wrong claim")
		if counts.count["worlds with a wrong claim"] > mostShown {
			t.Errorf("seed %d, family %q: %s", seed, family, judged.wrong[0])
			return
		}
		t.Errorf("seed %d, family %q; replay with: go -C e2e test ./differential -run %s -seed %d\n%s",
			seed, family, t.Name(), seed, judged.smallest(ctx))
	})
	t.Logf("seeds %d to %d in %s\n%s", first, first+drawn-1, time.Since(begin).Round(time.Second), &counts)
}

// onceWrong are seeds of worlds in which a victim that ends before the others of its node decides, and a claim was wrong.
var onceWrong = []uint64{280, 20173, 60407, 60485}

// runCount is how often a large world is played.
var runCount = flag.Int("runs", 0, "how often each large world is played; 0: 4 times, or 200 where $ELASTIC_SOAK is set")

// perScheduler is how often one scheduler, with its nodes in one order, plays a world.
const perScheduler = 25

func TestNothingHappensInALargeWorldBeyondWhatIsCertain(t *testing.T) {
	first, count := seeds(10, 100)
	runs, sizes := *runCount, []int{100, 150, 250, 500, 1000, 2000}
	switch {
	case runs != 0:
	case os.Getenv("ELASTIC_SOAK") != "":
		runs = 200
	default:
		runs, sizes = 4, []int{101, 130}
	}
	begin := time.Now()
	var counts claimed
	Each(first, count, runtime.NumCPU(), func(seed uint64) {
		world := LargeWorld(seed, sizes[seed%uint64(len(sizes))])
		s, job := forForecast(world)
		answer := forecast.Run(t.Context(), s, nil, job)
		counts.claims("in large worlds", answer)
		counts.add("large worlds")
		counts.add("large worlds where the job " + string(answer.Outcome))
		played, err := playedAll(t.Context(), world, seed, runs)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if wrong := judge(answer, played, false); len(wrong) > 0 {
			t.Errorf("seed %d, %d nodes, %d faults in %d runs; replay with: go -C e2e test ./differential -run %s -seed %d\n%s\n%s\n%s",
				seed, len(world.Nodes), len(wrong), len(played), t.Name(), seed,
				strings.Join(wrong[:min(3, len(wrong))], "\n"), answer.Summary(), answer.Text())
		}
	})
	t.Logf("seeds %d to %d, %d runs each, in %s\n%s", first, first+count-1, runs, time.Since(begin).Round(time.Second), &counts)
}

// playedAll is what has happened each time.
func playedAll(ctx context.Context, world *Snapshot, seed uint64, runs int) (played []Run, err error) {
	for len(played) < runs {
		player, stop, err := NewPlayer(ctx, world, rand.New(rand.NewPCG(seed, uint64(len(played))))) //nolint:gosec // repeatable
		if err != nil {
			return played, err
		}
		for range min(perScheduler, runs-len(played)) {
			run, err := player.Play(ctx)
			if err != nil {
				stop()
				return played, err
			}
			played = append(played, run)
		}
		stop()
	}
	return played, nil
}
