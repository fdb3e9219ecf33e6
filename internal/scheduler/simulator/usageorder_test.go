package simulator_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

func TestUnderAdmissionFairSharingALocalQueueThatHasUsedLessComesFirst(t *testing.T) {
	const jobs = `
nodes: [{name: n, allocatable: {cpu: "1"}}]
resourceFlavors: [{name: f}]
clusterQueues: [{
  name: q, admissionScope: {admissionMode: UsageBasedAdmissionFairSharing},
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: "1"}]}]}]
}]
localQueues: [{name: x, clusterQueue: q}, {name: y, clusterQueue: q}]
jobs:
  - {name: x1, gang: {requests: {cpu: "1"}, queue: x, runs: 1m}}
  - {name: x2, submit: 1s, gang: {requests: {cpu: "1"}, queue: x, runs: 1m}}
  - {name: x3, submit: 2s, gang: {requests: {cpu: "1"}, queue: x, runs: 1m}}
  - {name: y1, submit: 3s, gang: {requests: {cpu: "1"}, queue: y, runs: 1m}}
`
	for settings, want := range map[string]string{
		"": "job-x1 job-x2 job-x3 job-y1",
		"admissionFairSharing: {usageHalfLifeTime: 1h, usageSamplingInterval: 7s}": "job-x1 job-y1 job-x2 job-x3",
		// Without a half-life nothing counts, and without a weight nothing of CPUs.
		"admissionFairSharing: {usageHalfLifeTime: 0s, usageSamplingInterval: 7s}":                            "job-x1 job-x2 job-x3 job-y1",
		"admissionFairSharing: {usageHalfLifeTime: 1h, usageSamplingInterval: 7s, resourceWeights: {cpu: 0}}": "job-x1 job-x2 job-x3 job-y1",
	} {
		s, err := scenariofile.Parse("s.yaml", []byte(settings+jobs))
		if err != nil {
			t.Fatal(err)
		}
		var admitted []string
		_, err = simulator.Run(t.Context(), s, simulator.Options{Log: func(e eventlog.Event) error {
			if w := e.Workload; w != nil && w.Admitted {
				admitted = append(admitted, w.Name)
			}
			return nil
		}})
		if got := strings.Join(slices.Compact(admitted), " "); err != nil || got != want {
			t.Errorf("with %q the order is %s, not %s (%v)", settings, got, want, err)
		}
	}
}
