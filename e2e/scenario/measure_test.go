package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

func TestMeasureComputesDurationsFromALog(t *testing.T) {
	for name, test := range map[string]struct {
		events []eventlog.Event
		want   Measurements
	}{
		"the two jobs": {
			events: goodLog(t, "elastic-scheduling"),
			want: Measurements{
				Start: []Measurement{
					{"low-prio-job-x2k9p", 0.4}, {"low-prio-job-worker-0", 0.4}, {"low-prio-job-worker-1", 0.4}, {"high-prio-job-7hq2m", 0.4},
				},
				FirstGradient: []Measurement{{"low-prio-job-worker-0", 1}, {"low-prio-job-worker-1", 2}},
				Preemption:    []Measurement{{"high-prio-job-worker-0", 0.3}},
				Replacement:   []Measurement{{"low-prio-job-worker-1", 0.46}},
			},
		},
		"the two tasks": {
			events: goodLog(t, "queue-priorities"),
			want:   Measurements{QueuePreemption: []Measurement{{"high-0-m2v8c", 0.9}}},
		},
		"nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			near := cmpopts.EquateApprox(0, 1e-6)
			if diff := cmp.Diff(test.want, Measure(test.events), near, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			// A scenario that was interrupted anywhere is measured as far as its log goes.
			for end := range test.events {
				Measure(test.events[:end])
			}
		})
	}
}
