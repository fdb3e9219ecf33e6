package elasticsim

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// everyNumber is a scenario that says every number a scenario can have.
const everyNumber = `
name: every number
seed: 3
until: 2h
nodes:
  - {name: node, count: 2, allocatable: {cpu: "4", memory: 8Gi}}
  - {name: more, count: 1, allocatable: {cpu: "4", memory: 8Gi}, autoscale: {min: 1, max: 2, provision: 30s, idle: 1m}}
priorityClasses: [{name: low, value: 10}]
workloadPriorityClasses: [{name: batch, value: 5}]
resourceFlavors: [{name: any}]
cohorts: [{name: all, fairSharing: {weight: "1"}}]
clusterQueues:
  - name: team
    cohortName: all
    fairSharing: {weight: "2"}
    resourceGroups:
      - coveredResources: [cpu, memory]
        flavors:
          - name: any
            resources:
              - {name: cpu, nominalQuota: "12", borrowingLimit: "2", lendingLimit: "2"}
              - {name: memory, nominalQuota: 24Gi}
localQueues: [{name: line, clusterQueue: team}]
fairSharing: true
jobs:
  - name: elastic
    submit: 1s
    elastic:
      master: {priorityClass: low, requests: {cpu: "1", memory: 1Gi}, starts: 100ms, terminationGracePeriod: 30s, stops: 1s}
      workers: {min: 1, max: 2, requests: {cpu: "1", memory: 1Gi}, starts: 1s, joins: 1s, stops: 1s}
      resize: [{at: 30s, min: 1, max: 1}]
      steps: 100
      checkpointEvery: 10s
      speed: {gradsToWait: 2, gradient: 100ms, overhead: 10ms}
  - name: measured
    elastic:
      master: {requests: {cpu: "1"}}
      workers: {max: 1, requests: {cpu: "1"}}
      steps: 100
      speed: {stepsPerSecond: {1: 10}}
  - name: gang
    repeat: {count: 3, every: 1m}
    gang: {pods: 2, requests: {cpu: "1", memory: 1Gi}, runs: 1m, checkpointEvery: 10s, restart: 1s, queue: line, workloadPriorityClass: batch}
faults: [{at: 20s, node: node-0, returns: 1m}]
failures: {meanTimeBetween: 1h, repair: 5m}
stages: [{at: 10s, name: later, text: later}]
`

// hostileScalars stand in the place of every number, amount and duration.
var hostileScalars = []string{
	"0", "-1", "2147483648", "4611686018427387904", "9223372036854775808", "1e308", ".nan", ".inf", "NaN", "1e999", "-1s", "0s", "1ns", "2562047h", "9999999h", "1E", "-5Gi", "1m",
}

// disagrees is what is named instead, because it does not go with the number.
var disagrees = map[string]string{"count": "there is no node of that name", "terminationGracePeriod": "is longer than the termination grace period"}

// TestAnyNumberOfAScenarioIsTakenOrRefusedByItsPlace plays the scenario with numbers that overflow, divide by zero or
// take all time and memory where nobody looks at them: each is refused with the place of the field, or played to an
// end. patience.Medium is enough for any of them.
func TestAnyNumberOfAScenarioIsTakenOrRefusedByItsPlace(t *testing.T) {
	var tree yaml.Node
	if err := yaml.Unmarshal([]byte(everyNumber), &tree); err != nil {
		t.Fatal(err)
	}
	path, tried := filepath.Join(t.TempDir(), "scenario.yaml"), 0
	play := func(t *testing.T, what, key string) {
		t.Helper()
		text, err := yaml.Marshal(&tree)
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience.Medium)
		defer cancel()
		root, out := NewRoot("test"), bytes.Buffer{}
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs([]string{"run", path})
		err = root.ExecuteContext(ctx)
		tried++
		switch {
		case ctx.Err() != nil:
			t.Errorf("%s: it had not ended after %v", what, patience.Medium)
		case err != nil && !strings.Contains(err.Error(), key) && (disagrees[key] == "" || !strings.Contains(err.Error(), disagrees[key])):
			t.Errorf("%s: the error does not name it: %v", what, err)
		case err == nil && (strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "2562047h") || strings.Contains(out.String(), "Inf")):
			t.Errorf("%s: the summary has numbers that mean nothing:\n%s", what, out.String())
		}
	}
	var walk func(at, key string, node *yaml.Node)
	walk = func(at, key string, node *yaml.Node) {
		switch node.Kind {
		case yaml.MappingNode:
			for i := 0; i < len(node.Content); i += 2 {
				walk(at+"."+node.Content[i].Value, node.Content[i].Value, node.Content[i+1])
			}
		case yaml.ScalarNode:
			if node.Value == "" || node.Value[0] < '0' || node.Value[0] > '9' {
				return
			}
			was := *node
			for _, value := range hostileScalars {
				node.Value, node.Tag, node.Style = value, "", 0
				play(t, fmt.Sprintf("%s: %s", at, value), key)
			}
			*node = was
		default:
			for i, item := range node.Content {
				walk(fmt.Sprintf("%s[%d]", at, i), key, item)
			}
		}
	}
	play(t, "as it is", "")
	walk("", "", &tree)
	if tried < 500 {
		t.Errorf("%d scenarios were tried", tried)
	}
}

// TestAnyNumberOfAFlagIsTakenOrRefusedByName does the same with the numeric flags of every command.
func TestAnyNumberOfAFlagIsTakenOrRefusedByName(t *testing.T) {
	hostile := map[string][]string{
		"int":      {"-1", "0", "2147483648", "4611686018427387904", "9223372036854775808"},
		"uint64":   {"-1", "0", "18446744073709551615", "18446744073709551616"},
		"float64":  {"-1", "0", "1e308", "1e309", "NaN", "Inf"},
		"duration": {"-1ns", "0s", "1ns", "9223372036854775808ns"},
	}
	bases := map[string][]string{"run": {tutorial}, "compare": {tutorial, queues}, "forecast": {"-f", "nowhere.yaml", "--kubeconfig", "nowhere"}, "audit": {"--kubeconfig", "nowhere"}, "snapshot": {"-o", "-", "--kubeconfig", "nowhere"}}
	var sweep func(c *cobra.Command)
	sweep = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			sweep(sub)
		}
		name := strings.TrimPrefix(c.CommandPath(), "elastic-sim ")
		c.Flags().VisitAll(func(f *pflag.Flag) {
			for _, value := range hostile[f.Value.Type()] {
				base, known := bases[name]
				if !known {
					t.Fatalf("flag --%s of %s is not tried: give the test a command line", f.Name, name)
				}
				out, err := call(t, append(append([]string{name}, base...), fmt.Sprintf("--%s=%s", f.Name, value))...)
				if err != nil && !strings.Contains(err.Error(), "--"+f.Name) && !strings.Contains(err.Error(), "nowhere") {
					t.Errorf("%s --%s=%s: %v\n%s", name, f.Name, value, err, out)
				}
			}
		})
	}
	sweep(NewRoot("test"))
}
