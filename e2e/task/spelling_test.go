package task_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// TestOtherSpellingsChangeNothing applies one spelling of everything and plans another one, and the other way round.
// Which attributes have which spellings is in internal/provider, for all resources.
func TestOtherSpellingsChangeNothing(t *testing.T) {
	ns := namespace(t)
	terminal := providertest.NewTerminal(t)
	spelled := func(spelling int) string {
		config := asAdmin(`
			resource "elastic_task" "test" {
			  name      = "spelled"
			  namespace = "NAMESPACE"
			  run       = "sleep 600"
			  cpus      = <"1" | "1000m" | "1.0">
			  memory    = <"1" | "1Gi" | "1024Mi">
			  recovery  = { recover_on_exit_codes = <[2, 3] | [3, 2] | [2, 3]> }
			  image     = <null | "docker.io/library/debian:stable-slim" | null>
			  env      = <null | {} | null>

			  termination_grace_period_seconds = <null | 30 | null>
			  pod_overrides                    = <null | jsonencode({}) | "{ \"spec\": {} }">
			  timeouts                         = <null | { create = "600s" } | { create = "10m" }>
			}
			resource "elastic_training_job" "test" {
			  name      = "trained"
			  namespace = "NAMESPACE"
			  image     = "elastic-trainer"
			  model     = { name = "mnist" }
			  data      = { training = <"synthetic://digits?records=500000" | "synthetic://digits?seed=1&records=500000" | "synthetic://digits?records=500000&seed=1">, records_per_task = 100 }
			  training  = { minibatch_size = 10, epochs = 100, aggregation = <null | "master" | null> }
			  master    = <null | { termination_grace_period_seconds = 30 } | {}>
			  workers   = { max = 1, resources = { requests = <{ cpu = "1", memory = "1Gi" } | { cpu = "1000m", memory = "1024Mi" } | { cpu = "1.0", memory = "1Gi" }> } }

			  checkpoint = <null | { max_to_keep = 3 } | {}>
			}`)
		var b strings.Builder
		for {
			before, rest, ok := strings.Cut(config, "<")
			if b.WriteString(before); !ok {
				return strings.ReplaceAll(b.String(), "NAMESPACE", ns)
			}
			choice, after, _ := strings.Cut(rest, ">")
			b.WriteString(strings.Split(choice, " | ")[spelling])
			config = after
		}
	}
	t.Cleanup(func() {
		if printed, code := terminal.Run(t, spelled(0), "destroy", "-auto-approve"); code != 0 {
			t.Error(printed)
		}
	})
	if printed, code := terminal.Run(t, spelled(0), "apply", "-auto-approve"); code != 0 {
		t.Fatal(printed)
	}
	for spelling := range 3 {
		terminal.ExpectNoChanges(t, spelled(spelling))
	}
	// An import has the API's spelling, and knows no configuration.
	importing := spelled(1)
	for resource, name := range map[string]string{"elastic_task": "spelled", "elastic_training_job": "trained"} {
		importing += fmt.Sprintf("\nimport {\n  to = %s.test\n  id = %q\n}", resource, ns+"/"+name)
	}
	elsewhere := providertest.NewTerminal(t)
	printed, code := elsewhere.Run(t, importing, "apply", "-auto-approve")
	if code != 0 {
		t.Fatal(printed)
	}
	providertest.ExpectText(t, printed, "2 imported, 0 added, 0 changed, 0 destroyed")
	for spelling := range 3 {
		elsewhere.ExpectNoChanges(t, spelled(spelling))
	}
}
