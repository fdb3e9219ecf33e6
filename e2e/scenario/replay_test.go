package scenario

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

func TestReplayableNamesTheUnsupportedFields(t *testing.T) {
	files := map[string][]string{
		"elastic-scheduling.yaml":    nil,
		"queue-priorities.yaml":      nil,
		"elastic-under-a-queue.yaml": nil,
		"gangs-in-a-cohort.yaml":     nil,
		"a-node-fails.yaml":          nil,
		"fair-sharing.yaml":          nil,
		"unreliable-nodes.yaml":      nil,
		"random-failures.yaml":       nil,
		"racks-and-blocks.yaml":      nil,
		"victims-by-admission.yaml":  {"jobs[0].repeat", "jobs[1].repeat"},
		"victims-by-checkpoint-age.yaml": {
			"checkpointAge", "jobs[0].repeat", "jobs[1].repeat",
		},
		"research-in-gangs.yaml":        {"jobs[0].repeat", "jobs[1].repeat"},
		"research-in-elastic-jobs.yaml": {"jobs[0].repeat", "jobs[0].elastic.speed.stepsPerSecond", "jobs[1].repeat"},
	}
	examples, err := filepath.Glob("../../examples/scenarios/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range examples {
		if _, listed := files[filepath.Base(example)]; !listed {
			t.Errorf("whether %s can be replayed is not listed here", example)
		}
	}
	for name, refused := range files {
		t.Run(name, func(t *testing.T) {
			file, err := scenariofile.ReadFile(filepath.Join("..", "..", "examples", "scenarios", name))
			if err != nil {
				t.Fatal(err)
			}
			var features []string
			if refusal := (*scenariofile.NotReplayableError)(nil); errors.As(file.Replayable(), &refusal) {
				for _, f := range refusal.Features {
					features = append(features, f.Field)
					if f.Why == "" || !strings.Contains(refusal.Error(), f.Field+": "+f.Why) {
						t.Errorf("the error does not say why %s is refused:\n%v", f.Field, refusal)
					}
				}
			}
			if !slices.Equal(features, refused) {
				t.Errorf("refused for %q, not for %q", features, refused)
			}
		})
	}
}

func TestReplayMergesShortGradientsWithoutChangingTheDuration(t *testing.T) {
	for name, c := range map[string]struct {
		speedUp  int
		steps    int64
		gradient time.Duration
		want     int64
		each     time.Duration
	}{
		"long enough as they are":       {1, 200, 50 * time.Millisecond, 200, 50 * time.Millisecond},
		"twenty in one":                 {1, 24000, time.Millisecond, 1200, 20 * time.Millisecond},
		"made short by a faster clock":  {5, 200, 50 * time.Millisecond, 100, 20 * time.Millisecond},
		"a rest makes one more of them": {1, 21, time.Millisecond, 2, 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			p := &replayRun{Replay: Replay{SpeedUp: c.speedUp}}
			speed := scenariofile.Speed{GradsToWait: 1, Gradient: scenariofile.Duration(c.gradient.Milliseconds())}
			if steps, each := p.work(&scenariofile.Elastic{Steps: c.steps, Speed: speed}); steps != c.want || each != c.each {
				t.Errorf("%d steps of %v, not %d of %v", steps, each, c.want, c.each)
			}
		})
	}
}
