package truth_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/truth"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

const (
	// few is how many situations are drawn if $ELASTIC_TRUTH is not set.
	few = 20
	// progress is the number of situations between lines with interim results.
	progress = 10
	// mostWrong is the number of wrong situations after which no more are played: most have the same cause then.
	mostWrong = 10
	// mostMisses is the number of situations in a row without a kind after which none is taken to have it.
	mostMisses = 10_000
	// shrunk is how many wrong situations are reduced if $ELASTIC_TRUTH_SHRINK is not set.
	shrunk = 3
	// results is the folder for wrong situations.
	results = "../out/truth"
)

// TestDrawnSituationsTurnOutAsForecast draws $ELASTIC_TRUTH situations from the seeds that begin with
// $ELASTIC_TRUTH_SEED, of those only that have an object of a kind in $ELASTIC_TRUTH_KINDS, or those of
// $ELASTIC_TRUTH_SEEDS. Lists are separated by blanks. Situations that are forecast wrongly are stored, and the first of
// them are made small.
func TestDrawnSituationsTurnOutAsForecast(t *testing.T) {
	r := &round{t: t, seeds: chosen(t), shrinks: number(t, "ELASTIC_TRUTH_SHRINK", shrunk), tally: &truth.Tally{}}
	var stages sync.WaitGroup
	for range max(1, runtime.NumCPU()/2) { // a situation mostly waits, but for several processes
		stage := newStage(t)
		stages.Go(func() {
			for r.plays(stage) { // it could not be cleaned, and others are still to be played
				stage = newStage(t)
			}
			for r.shrink(stage) {
			}
		})
	}
	stages.Wait()
	t.Log(r.tally)
}

// chosen are the seeds to play.
func chosen(t *testing.T) (seeds []uint64) {
	t.Helper()
	for _, text := range strings.Fields(os.Getenv("ELASTIC_TRUTH_SEEDS")) {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("$ELASTIC_TRUTH_SEEDS: %v", err)
		}
		seeds = append(seeds, seed)
	}
	if len(seeds) > 0 {
		return seeds
	}
	kinds := strings.Fields(os.Getenv("ELASTIC_TRUTH_KINDS"))
	wanted := int(number(t, "ELASTIC_TRUTH", few))
	misses := 0
	for seed := number(t, "ELASTIC_TRUTH_SEED", 1); len(seeds) < wanted; seed++ {
		if len(kinds) == 0 || truth.Generate(seed).Has(kinds) {
			seeds, misses = append(seeds, seed), 0
		} else if misses++; misses == mostMisses {
			t.Fatalf("no situation has an object of %v", kinds)
		}
	}
	return seeds
}

// number is the value of a variable, or a default if it is not set.
func number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("$%s: %v", variable, err)
	}
	return n
}

// A round is situations that are played one after the other, on several stages.
type round struct {
	t       *testing.T
	mu      sync.Mutex
	seeds   []uint64 // those to come, guarded by mu, as what follows
	shrinks uint64   // how many may still be made small
	tally   *truth.Tally
	wrong   []truth.Outcome // and not known
}

// take is the next seed to play; false when there is none.
func (r *round) take() (seed uint64, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seeds) == 0 || r.t.Context().Err() != nil {
		return 0, false
	}
	seed, r.seeds = r.seeds[0], r.seeds[1:]
	return seed, true
}

// plays plays situations until there are no more, or the stage can play none: then broken is true.
func (r *round) plays(stage *truth.Stage) (broken bool) {
	for !broken {
		seed, more := r.take()
		if !more {
			return false
		}
		broken = r.play(stage, seed)
	}
	return true
}

// play plays a situation, and reports whether the stage can play none after it.
func (r *round) play(stage *truth.Stage, seed uint64) (broken bool) {
	outcome, err := stage.Play(r.t.Context(), truth.Generate(seed))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tally.Count(outcome, err)%progress == 0 {
		r.t.Log(r.tally)
	}
	switch {
	case err != nil && truth.Unfit(err):
		r.t.Log(err)
	case err != nil:
		r.t.Error(err)
	case outcome.Verdict == truth.Refused:
		r.t.Logf("seed %d: %s", seed, outcome.Refusal)
	case outcome.Verdict == truth.Approximate:
		r.t.Logf("seed %d is approximate: %s", seed, strings.Join(outcome.Reservations(), "; "))
	case outcome.Verdict == truth.Wrong && !knownSeeds[seed]:
		r.t.Errorf("%s", outcome)
		r.store(outcome)
		if r.wrong = append(r.wrong, outcome); len(r.wrong) >= mostWrong {
			r.seeds = nil
		}
	}
	return truth.Broken(err)
}

// store keeps a wrong situation, and what happened.
func (r *round) store(outcome truth.Outcome) {
	dir := filepath.Join(results, outcome.Situation.Name)
	if err := outcome.Situation.Save(dir); err != nil {
		r.t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "outcome.txt"), []byte(outcome.String()), 0o644); err != nil {
		r.t.Error(err)
	}
	r.t.Logf("stored in e2e/out/truth/%s; to keep it, copy it to e2e/truth/testdata/situations under a name that says what it is about", outcome.Situation.Name)
}

// shrink makes one of the wrong situations small, and reports whether there may be another one to do.
func (r *round) shrink(stage *truth.Stage) (more bool) {
	r.mu.Lock()
	if r.shrinks == 0 || len(r.wrong) == 0 {
		r.mu.Unlock()
		return false
	}
	outcome := r.wrong[0]
	r.wrong, r.shrinks = r.wrong[1:], r.shrinks-1
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience.Medium)
	defer cancel()
	small := truth.Minimal(ctx, stage, outcome)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Logf("made small:\n%s", small)
	r.store(small)
	return true
}
