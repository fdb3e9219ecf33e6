package kube

import (
	"fmt"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

func TestWhatHappensVeryOftenMakesFewEventsAndWhatMattersMakesOneEach(t *testing.T) {
	for reason, want := range map[string]int{coordinator.ReasonEvaluated: 1, coordinator.ReasonCheckpointed: 1, "WorkerPreempted": 20} {
		t.Run(reason, func(t *testing.T) {
			s := newServer(t)
			r := NewReporter(s.cluster, quiet())
			for i := range 20 {
				r.Notice(coordinator.Notice{Reason: reason, Message: fmt.Sprintf("the %d.", i)})
			}
			r.Close()
			got := 0
			for _, write := range s.writes() {
				if write == "POST events" {
					got++
				}
			}
			if got != want {
				t.Errorf("%d Events of 20 notices, want %d: %v", got, want, s.writes())
			}
		})
	}
}
