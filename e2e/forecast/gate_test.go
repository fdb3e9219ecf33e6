package forecast_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

const (
	// aTinyTask fits anywhere.
	aTinyTask = "resource \"elastic_task\" \"tiny\" {\n name = \"tiny\"\n run = \"true\"\n cpus = \"10m\"\n %s\n}\n"
	// aHugeTask fits nowhere.
	aHugeTask = "resource \"elastic_task\" \"huge\" {\n name = \"huge\"\n run = \"true\"\n cpus = \"1000\"\n}\n"
)

func TestTheForecastersRoleIsEnoughAndNoMore(t *testing.T) {
	terminal := providertest.NewTerminal(t)
	role := providertest.ExampleRoles(t)["elastic-forecaster"]
	admin, err := cluster.Config()
	if err != nil {
		t.Fatal(err)
	}
	forecaster := providertest.Account(t, admin, "forecaster", "", providertest.Everywhere(role.Rules))
	printed, code := terminal.Run(t, forecaster+fmt.Sprintf(aTinyTask, `queue = { name = "nobodys" }`), "plan")
	if code != 0 || strings.Contains(printed, "There is no forecast for") {
		t.Errorf("plan exited with %d:\n%s", code, printed)
	}
	providertest.ExpectText(t, printed, "Warning: tiny will wait", "waits in LocalQueue nobodys")
	for i := range role.Rules {
		if rule := &role.Rules[i]; rule.Resources[0] == "nodes" {
			rule.Resources = []string{"namespaces"}
		}
	}
	without := providertest.Account(t, admin, "without", "", providertest.Everywhere(role.Rules))
	printed, code = terminal.Run(t, without+fmt.Sprintf(aTinyTask, "")+aHugeTask, "plan")
	if code != 0 || strings.Count(printed, "There is no forecast for") != 1 {
		t.Errorf("plan exited with %d:\n%s", code, printed)
	}
	providertest.ExpectText(t, printed, "not allowed: list nodes, list pods (in the whole cluster)", "elastic-forecaster")
	gate := strings.Replace(without, "host =", "forecast = \"error\"\n host =", 1)
	printed, code = terminal.Run(t, gate+fmt.Sprintf(aTinyTask, ""), "plan")
	if code == 0 {
		t.Errorf("the gate fails open:\n%s", printed)
	}
	providertest.ExpectText(t, printed, "Error: No forecast for tiny", "list nodes, list pods")
}

func TestAGateRefusesWhatCanNeverRunAndLetsTheRestPass(t *testing.T) {
	terminal := providertest.NewTerminal(t)
	gate := fmt.Sprintf("provider \"elastic\" {\n config_path = %q\n forecast = \"error\"\n}\n", cluster.Kubeconfig)
	printed, code := terminal.Run(t, gate+fmt.Sprintf(aTinyTask, "")+aHugeTask, "plan")
	if code == 0 {
		t.Errorf("the gate is open:\n%s", printed)
	}
	providertest.ExpectText(t, printed, "Error: huge can never run", "fits on no node, even an empty one", "too little cpu (it requests 1k", `Rejected because of forecast = "error": it can never run.`)
	if printed, code := terminal.Run(t, gate+fmt.Sprintf(aTinyTask, ""), "plan"); code != 0 {
		t.Errorf("plan exited with %d:\n%s", code, printed)
	} else {
		providertest.ExpectText(t, printed, "Warning: tiny will start without evicting any pods")
	}
}

func TestTheForecastAsData(t *testing.T) {
	terminal := providertest.NewTerminal(t)
	data := `
data "elastic_forecast" "f" {
  name = "asked"
  pods = [
    { name = "master", requests = { cpu = "1" } },
    { name = "worker", count = 2, min = 1, starts_after_previous = true, requests = { cpu = "1000" } },
  ]
}
output "f" {
  value = [data.elastic_forecast.f.available, data.elastic_forecast.f.outcome, data.elastic_forecast.f.fits, data.elastic_forecast.f.queue_position == null,
    [for s in data.elastic_forecast.f.starts : "${s.pod} ${s.state}"], length(data.elastic_forecast.f.victims), data.elastic_forecast.f.reason == null]
}
check "gate" {
  assert {
    condition     = data.elastic_forecast.f.available && length(coalesce(data.elastic_forecast.f.victims, [])) == 0
    error_message = "the check says it"
  }
}
`
	printed, code := terminal.Run(t, asAdmin(data), "apply", "-auto-approve")
	if code != 0 || strings.Contains(printed, "the check says it") {
		t.Errorf("apply exited with %d:\n%s", code, printed)
	}
	one := strings.Join(strings.Fields(printed), " ")
	if want := `true, "never", false, true, [ "master starts", "worker 0 never", "worker 1 never", ], 0, true,`; !strings.Contains(one, want) {
		t.Errorf("%s is missing:\n%s", want, printed)
	}
	nowhere := "provider \"elastic\" {\n host = \"https://127.0.0.1:1\"\n}\n"
	printed, code = terminal.Run(t, nowhere+strings.Replace(data, "length(data.elastic_forecast.f.victims)", "data.elastic_forecast.f.victims == null", 1)+
		"output \"reason\" {\n value = data.elastic_forecast.f.reason\n}\n", "plan")
	if code == 0 { // starts is null, which no for expression takes
		t.Errorf("null reads as a list:\n%s", printed)
	}
	terminal = providertest.NewTerminal(t) // without a state to compare with
	printed, code = terminal.Run(t, nowhere+"data \"elastic_forecast\" \"f\" {\n name = \"asked\"\n pods = [{ name = \"p\", requests = {} }]\n}\n"+
		"output \"f\" {\n value = [data.elastic_forecast.f.available, data.elastic_forecast.f.victims == null, data.elastic_forecast.f.fits == null, data.elastic_forecast.f.reason]\n}\n", "plan")
	if code != 0 {
		t.Errorf("plan exited with %d:\n%s", code, printed)
	}
	providertest.ExpectText(t, strings.Join(strings.Fields(printed), " "), "+ false, + true, + true,", "cannot be reached")
}
