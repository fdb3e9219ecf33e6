package promises_test

import (
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// TestAPlanForecastsEachOutcome plans a task for nodes and a queue on which others leave hardly any room.
func TestAPlanForecastsEachOutcome(t *testing.T) {
	r, _ := terminal(t)
	occupied := config(t, "occupied.tf")
	destroyAtTheEnd(t, r, occupied)
	succeeds(t, r, occupied, "apply", "-auto-approve")
	const high, low, queued = `priority_class_name = elastic_priority_class.high.name`, `priority_class_name = elastic_priority_class.low.name`,
		`queue = { name = elastic_local_queue.small.name }`
	for outcome, c := range map[string]struct {
		cpus, where string
		says        []string
	}{
		"it starts":                        {"0.1", low, []string{"asked will start without evicting any pods", "immediately"}},
		"it preempts":                      {"2", high, []string{"asked will preempt", "evicts ", "/occupant-", "(priority 100)"}},
		"it waits":                         {"2", low, []string{"asked will wait"}},
		"it can never run":                 {"32", high, []string{"asked can never run"}},
		"a queue admits it":                {"0.1", queued, []string{"asked will start without evicting any pods", "admitted by ClusterQueue small"}},
		"a queue has no quota at present":  {"0.4", queued, []string{"asked will wait", "ClusterQueue small"}},
		"a queue can never have its quota": {"2", queued, []string{"asked can never run", "ClusterQueue small"}},
	} {
		t.Run(outcome, func(t *testing.T) {
			asked := "resource \"elastic_task\" \"asked\" {\n  name = \"asked\"\n  namespace = var.namespace\n  image = \"debian\"\n" +
				"  run = \"true\"\n  cpus = \"" + c.cpus + "\"\n  memory = \"0.1\"\n  " + c.where + "\n}\n"
			printed := succeeds(t, r, occupied+asked, "plan")
			providertest.ExpectText(t, strings.Join(strings.Fields(printed), " "), c.says...)
		})
	}
	t.Run("a change that replaces a task", func(t *testing.T) {
		printed := succeeds(t, r, strings.Replace(occupied, `"3.1"`, `"32"`, 1), "plan")
		providertest.ExpectText(t, strings.Join(strings.Fields(printed), " "), "must be replaced", "occupant-0 can never run")
	})
}
