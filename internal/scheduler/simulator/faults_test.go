package simulator_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator"
)

func TestAFaultDeletesThePodThatItMeans(t *testing.T) {
	var events []eventlog.Event
	_, err := simulator.Run(t.Context(), read(t, filepath.Join(examples, "unreliable-nodes.yaml")), simulator.Options{Log: func(e eventlog.Event) error {
		events = append(events, e)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	h := eventlog.Replay(events)
	var faults []eventlog.Fault
	for _, f := range h.Faults {
		faults = append(faults, f.Fault)
	}
	want := []eventlog.Fault{
		{Kind: eventlog.PodDeleted, Target: "survivor-worker-0"}, // the lowest number
		{Kind: eventlog.PodKilled, Target: "survivor-worker-1"},
		{Kind: eventlog.PodDeleted, Target: "survivor-master-0"},
	}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Error(diff)
	}
	ended := map[string]int32{}
	for _, pod := range h.Pods {
		if pod.ExitCode != nil {
			ended[pod.Name] = *pod.ExitCode
		}
	}
	if ended["survivor-worker-0"] != 143 || ended["survivor-master-0"] != 143 {
		t.Errorf("deleted pods do not exit as asked to: %v", ended)
	}
	if _, exited := ended["survivor-worker-1"]; exited {
		t.Error("a killed pod has an exit code")
	}
	if workers := h.PodsOf("survivor", "worker"); len(workers) != 6 || slices.ContainsFunc(workers, func(p *eventlog.PodHistory) bool { return p.Running.IsZero() }) {
		t.Errorf("there were %d workers, not the first three, and one for each of two deleted ones and of a node", len(workers))
	}
}
