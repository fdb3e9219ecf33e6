package master

import (
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

func TestWorkersThatAreMissingAlikeAreNamedTogether(t *testing.T) {
	many := coordinator.Status{Min: 150}
	for id := range 200 {
		w := coordinator.WorkerStatus{Worker: id, State: coordinator.WorkerStarting}
		switch {
		case id == 3:
			w.State = coordinator.WorkerReady
		case id == 7 || id > 190:
			w.State, w.Reason = coordinator.WorkerPending, "Insufficient cpu"
		}
		many.Workers = append(many.Workers, w)
	}
	unlike := coordinator.Status{Min: 1}
	for id, reason := range []string{"a", "b", "c", "d", "e", "f", "f"} {
		unlike.Workers = append(unlike.Workers, coordinator.WorkerStatus{Worker: id, State: coordinator.WorkerPending, Reason: reason})
	}
	for want, status := range map[string]coordinator.Status{
		"1 of at least 150 workers are ready: workers 0–2, 4–6, 8–190 are starting; workers 7, 191–199 are pending (Insufficient cpu)":                                    many,
		"0 of at least 1 workers are ready: worker 0 is pending (a); worker 1 is pending (b); worker 2 is pending (c); worker 3 is pending (d); and 3 others are missing": unlike,
		"0 of at least 2 workers are ready": {Min: 2},
	} {
		if got := WaitingFor(status); got != want {
			t.Errorf("%s\nand not\n%s", got, want)
		}
	}
}
