package truth_test

import (
	"errors"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/truth"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

func TestATallyCountsTheResultsOfSituations(t *testing.T) {
	reasons := []forecast.Reason{{Code: forecast.OtherScheduler}, {Code: forecast.NotModelled}}
	tally := &truth.Tally{}
	tally.Count(truth.Outcome{Verdict: truth.Right}, nil)
	tally.Count(truth.Outcome{Verdict: truth.Approximate, Answers: []forecast.Answer{{Approximate: reasons[:1]}, {Approximate: reasons}}}, nil)
	tally.Count(truth.Outcome{Verdict: truth.Wrong, Situation: &truth.Situation{Name: "seed-17"}}, nil)
	tally.Count(truth.Outcome{Verdict: truth.Refused}, nil)
	tally.Count(truth.Outcome{}, errors.New("refused"))
	const want = "5 situations: 1 right, 1 approximate (not-modelled 1, other-scheduler 1), 1 wrong (seed-17), 1 without a forecast, 1 that the cluster refused"
	if got := tally.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
