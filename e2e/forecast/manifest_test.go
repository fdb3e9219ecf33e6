package forecast_test

import (
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

func TestAManifestIsForecastAsData(t *testing.T) {
	terminal := providertest.NewTerminal(t)
	data := asAdmin(`
data "elastic_forecast" "f" {
  manifest = <<-EOT
    apiVersion: scheduling.k8s.io/v1
    kind: PriorityClass
    metadata: {name: of-the-manifest}
    value: 700
    ---
    apiVersion: jobset.x-k8s.io/v1alpha2
    kind: JobSet
    metadata: {name: js}
    spec:
      replicatedJobs:
      - name: driver
        template: {spec: {template: {spec: {priorityClassName: of-the-manifest, containers: [{name: c, image: i, resources: {requests: {cpu: 10m}}}]}}}}
      - name: workers
        replicas: 2
        template: {spec: {template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1000}}}]}}}}
  EOT
}
output "f" {
  value = [data.elastic_forecast.f.outcome, [for s in data.elastic_forecast.f.starts : "${s.pod} ${s.state}"]]
}
`)
	printed, code := terminal.Run(t, data, "plan")
	one := strings.Join(strings.Fields(printed), " ")
	if want := `"never", + [ + "driver starts", + "workers 0 never", + "workers 1 never", ],`; code != 0 || !strings.Contains(one, want) {
		t.Errorf("exit code %d, and %s is missing:\n%s", code, want, printed)
	}
	printed, code = terminal.Run(t, strings.Replace(data, "replicas: 2", "replicas: -2", 1), "plan")
	if code == 0 || !strings.Contains(printed, "replicas is -2") {
		t.Errorf("exit code %d:\n%s", code, printed)
	}
	printed, code = terminal.Run(t, strings.Replace(data, "manifest = <<-EOT", "name = \"x\"\n  manifest = <<-EOT", 1), "plan")
	if code == 0 || !strings.Contains(printed, "Invalid Attribute Combination") {
		t.Errorf("exit code %d:\n%s", code, printed)
	}
}
