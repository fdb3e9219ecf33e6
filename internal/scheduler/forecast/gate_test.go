package forecast_test

import (
	"slices"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

func TestAGateRefusesWhatEvictsOrMayEvictOthersNeverRunsOrIsNotCertain(t *testing.T) {
	victim := forecast.Eviction{Namespace: "default", Name: "victim", Owner: "training job low", Certain: true}
	either := forecast.Eviction{Namespace: "default", Name: "either"}
	queued := forecast.Eviction{Namespace: "default", Name: "queued", Workload: true, Certain: true}
	own := forecast.Eviction{Namespace: "default", Name: "own", Own: true, Certain: true}
	many := slices.Repeat([]forecast.Eviction{victim}, 7)
	code := forecast.NewReason(forecast.NotModelled, "", "")
	for name, c := range map[string]struct {
		answer   forecast.Answer
		accepted []forecast.ReasonCode
		want     []string
	}{
		"nothing":                            {answer: forecast.Answer{Outcome: forecast.Fits}},
		"waiting":                            {answer: forecast.Answer{Outcome: forecast.Pends}},
		"a pod of its own":                   {answer: forecast.Answer{Evicts: []forecast.Eviction{own}}},
		"a certain eviction":                 {answer: forecast.Answer{Evicts: []forecast.Eviction{own, victim}}, want: []string{"evicts default/victim of training job low"}},
		"a workload":                         {answer: forecast.Answer{Evicts: []forecast.Eviction{queued}}, want: []string{"evicts workload default/queued"}},
		"one of several":                     {answer: forecast.Answer{Evicts: []forecast.Eviction{either}}, want: []string{"may evict default/either"}},
		"one of several, or perhaps none":    {answer: forecast.Answer{Evicts: []forecast.Eviction{either}, MaySpareAll: true}, want: []string{"may evict default/either"}},
		"more than a message can name":       {answer: forecast.Answer{Evicts: many}, want: append(slices.Repeat([]string{"evicts default/victim of training job low"}, 5), "evicts 2 more")},
		"a job that never runs":              {answer: forecast.Answer{Outcome: forecast.Never}, want: []string{"it can never run"}},
		"an approximate forecast":            {answer: forecast.Answer{Approximate: []forecast.Reason{code, code}}, want: []string{"the forecast is approximate (not-modelled)"}},
		"an approximate forecast, as agreed": {answer: forecast.Answer{Approximate: []forecast.Reason{code}}, accepted: []forecast.ReasonCode{code.Code}},
	} {
		if got := c.answer.Refusals(c.accepted...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}
