package forecast_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

// large is a cluster of nodes of 8 CPUs, each with a pod of the given number of CPUs.
func large(nodes int, cpu string, priority int32) *forecast.Snapshot {
	s := &forecast.Snapshot{AsOf: forecasttest.AsOf, PriorityClasses: []*schedulingv1.PriorityClass{forecasttest.Class("high", 1000)}}
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		s.Nodes = append(s.Nodes, forecasttest.Node(name, "8"))
		s.Pods = append(s.Pods, forecasttest.OfJob(forecasttest.Pod("pod-"+name, name, cpu, priority, i), "job-"+name))
	}
	return s
}

func TestALargeClustersFreeChoicesLeaveOnlyTheNodesOpen(t *testing.T) {
	for behaviour, c := range map[string]struct {
		cpu      string
		priority int32
		outcome  forecast.Outcome
	}{
		"where there is room, a job starts and evicts nobody":            {"2", 0, forecast.Fits},
		"where there is none that it could make, it waits and so do all": {"7", 1000, forecast.Pends},
	} {
		t.Run(behaviour, func(t *testing.T) {
			job, err := forecast.OfTrainingJob(forecasttest.TrainingJob("new", "high", "high", 2, 8))
			if err != nil {
				t.Fatal(err)
			}
			answer := forecast.Run(t.Context(), large(500, c.cpu, c.priority), nil, job)
			claims := answer.Claims()
			if answer.Outcome != c.outcome || !claims.Outcome.Certain || !claims.Evictions.Certain || !claims.Start.Certain {
				t.Errorf("outcome %s, claims %+v:\n%s", answer.Outcome, claims, answer.Text())
			}
			if (claims.Evictions.Pods != forecast.Range{}) {
				t.Errorf("evicts %+v pods", claims.Evictions.Pods)
			}
			if refusals := answer.Refusals(); len(refusals) > 0 {
				t.Errorf("a gate objects: %q", refusals)
			}
			if strings.Contains(answer.Text(), "approximate:") {
				t.Errorf("its text says that it may be wrong:\n%s", answer.Text())
			}
		})
	}
}

func TestAReasonConcernsTheClaimsThatItUndermines(t *testing.T) {
	answer := forecast.Answer{Approximate: []forecast.Reason{
		forecast.NewReason(forecast.MayGrow, "karpenter", "karpenter may add a node"),
		{Code: forecast.TooManyChoices, Claims: forecast.ClaimPlacement, Text: "many nodes are equal"},
	}}
	claims := answer.Claims()
	want := forecast.Claims{
		Outcome: forecast.Certainty{Certain: true}, Evictions: forecast.Evicted{Certainty: forecast.Certainty{Certain: true}},
		Placement: forecast.Certainty{Reasons: []forecast.ReasonCode{forecast.MayGrow, forecast.TooManyChoices}},
		Start:     forecast.Certainty{Reasons: []forecast.ReasonCode{forecast.MayGrow}},
	}
	if got, want := fmt.Sprintf("%+v", claims), fmt.Sprintf("%+v", want); got != want {
		t.Errorf("claims %s, not %s", got, want)
	}
	answer.Approximate = append(answer.Approximate, forecast.NewReason(forecast.NotModelled, "", "a thing"))
	if codes := answer.Unaccepted(); !slices.Equal(codes, []string{string(forecast.NotModelled)}) {
		t.Errorf("a gate objects to %q", codes)
	}
	if codes := answer.Codes(); !slices.Equal(codes, []forecast.ReasonCode{forecast.MayGrow, forecast.TooManyChoices, forecast.NotModelled}) {
		t.Errorf("of the three reasons the codes are %q", codes)
	}
}

func TestEvictionsThatAreDrawnAreCounted(t *testing.T) {
	s := large(3, "6", 0)
	for _, pod := range s.Pods {
		pod.Status.StartTime = s.Pods[0].Status.StartTime // the scheduler draws among equals
	}
	job, err := forecast.OfTrainingJob(forecasttest.TrainingJob("new", "high", "high", 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	answer := forecast.Run(t.Context(), s, nil, job)
	evictions := answer.Claims().Evictions
	if !evictions.Certain || evictions.HighestPriority == nil || *evictions.HighestPriority != 0 || evictions.Choice == nil {
		t.Fatalf("%+v:\n%s", evictions, answer.Text())
	}
	// The second worker evicts another pod, or takes the rest of the room that the first one made.
	if want := (forecast.Range{Min: 1, Max: 2}); evictions.Pods != want || evictions.Choice.Choose != want || len(evictions.Choice.Of) != 3 {
		t.Errorf("evicts %+v, chosen %+v:\n%s", evictions.Pods, evictions.Choice, answer.Text())
	}
}

func TestClaimsAreWrittenAndReadByName(t *testing.T) {
	reason := forecast.Reason{Code: forecast.MayGrow, Claims: forecast.ClaimStart | forecast.ClaimPlacement}
	text, err := json.Marshal(reason)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"claims":["placement","start"]`) {
		t.Error(string(text))
	}
	var read forecast.Reason
	if err := json.Unmarshal(text, &read); err != nil || read != reason {
		t.Errorf("%+v, %v", read, err)
	}
}
