package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// withDrawnFailures is a file with a list of faults in place of its random failures: those of its simulation, which the
// file's seed determines. Faults of its list that are about nodes are among them.
func withDrawnFailures(ctx context.Context, file *scenariofile.Scenario) (*scenariofile.Scenario, error) {
	if file.Failures == nil {
		return file, nil
	}
	events, err := simulate(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("simulate %s, for its random failures: %w", file.Name, err)
	}
	drawn := *file
	drawn.Failures = nil
	drawn.Faults = slices.DeleteFunc(slices.Clone(file.Faults), func(f scenariofile.Fault) bool { return f.Node != "" })
	drawn.Faults = append(drawn.Faults, nodeLosses(events)...)
	return &drawn, nil
}

// nodeLosses are the losses of nodes in the log of a simulation.
func nodeLosses(events []eventlog.Event) []scenariofile.Fault {
	var losses []scenariofile.Fault
	lost := map[string]int{} // nodes that are away, with the loss of each
	for _, event := range events {
		node := event.Node
		if node == nil {
			continue
		}
		at := scenariofile.Duration(event.Time.Sub(events[0].Time) / time.Millisecond)
		switch loss, away := lost[node.Name]; {
		case node.Lost:
			lost[node.Name] = len(losses)
			losses = append(losses, scenariofile.Fault{At: at, Node: node.Name})
		case away:
			losses[loss].Returns = at - losses[loss].At
			delete(lost, node.Name)
		}
	}
	return losses
}

// needsFaults reports whether a file has faults that the Kubernetes API does not offer.
func needsFaults(file *scenariofile.Scenario) bool {
	return slices.ContainsFunc(file.Faults, func(f scenariofile.Fault) bool { return f.Node != "" || f.APIServer })
}

// simulate returns the log of a file that is simulated in virtual time.
func simulate(ctx context.Context, file *scenariofile.Scenario) ([]eventlog.Event, error) {
	var events []eventlog.Event
	log := func(e eventlog.Event) error {
		events = append(events, e)
		return nil
	}
	_, err := simulator.Run(ctx, file, simulator.Options{Log: log})
	return events, err
}
