package forecast_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

func TestAForecastThatIsCutShortSaysWhichClaimsAreUncertain(t *testing.T) {
	s := large(12, "6", 0)
	for _, pod := range s.Pods {
		pod.Status.StartTime = s.Pods[0].Status.StartTime
	}
	for i := range s.Pods { // no two nodes are equivalent
		s.Nodes[i].Labels["rack"] = s.Nodes[i].Name
	}
	s.Pods = append(s.Pods, forecasttest.Pod("pending", "", "6", 0, 0)) // which may start where a victim was
	job, err := forecast.OfTrainingJob(forecasttest.TrainingJob("new", "high", "high", 4, 8))
	if err != nil {
		t.Fatal(err)
	}
	over, end := context.WithCancel(t.Context())
	end()
	answer := forecast.Run(over, s, nil, job)
	claims := answer.Claims()
	reasons := reasonsWith(answer, forecast.TooManyChoices)
	limited := func(r forecast.Reason) bool { return strings.Contains(r.Text, "the time limit came before") }
	if claims.Evictions.Certain || claims.Placement.Certain || !slices.ContainsFunc(reasons, limited) {
		t.Errorf("claims %+v of a forecast without time:\n%s", claims, answer.Text())
	}
	if answer.Outcome != forecast.Preempts || answer.Choices > 2 {
		t.Errorf("outcome %s, %d runs followed", answer.Outcome, answer.Choices)
	}
}
