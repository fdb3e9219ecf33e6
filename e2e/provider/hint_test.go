package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// An apply without wait_for reports what it can see within two seconds; a plan reports it as long as it holds.
func TestAJobThatCannotStartIsAWarning(t *testing.T) {
	for name, c := range map[string]struct {
		lines    string
		wantText []string
	}{
		"no-image": {`image = "registry.invalid/no-such/image:1"`, []string{"container master: ErrImagePull", "check the image's name, and image_pull_secrets"}},
		"no-node":  {strings.TrimSpace(nowhere), []string{"cannot be scheduled", "didn't match Pod's node affinity/selector"}},
		"no-claim": {`volumes = [{ name = "out", mount_path = "/out", claim_name = "no-such-claim", mount_on = "master" }]`, []string{`persistentvolumeclaim "no-such-claim" not found`}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTerminal(t)
			config := asAdmin("forecast = \"off\"") + trainingJob(name, c.lines)
			r.destroyAtTheEnd(t, name, config)
			printed, code := r.run(t, config, "apply", "-auto-approve")
			if code != 0 {
				t.Fatalf("apply exited with %d:\n%s", code, printed)
			}
			expectText(t, printed, append([]string{"Warning: Training job default/" + name + " cannot start"}, c.wantText...)...)
			printed, code = r.run(t, config, "plan", "-detailed-exitcode")
			if code != 0 {
				t.Errorf("plan exited with %d:\n%s", code, printed)
			}
			expectText(t, printed, append([]string{"No changes.", "Training job default/" + name + " cannot start"}, strings.NewReplacer("ErrImagePull", "").Replace(c.wantText[0]))...)
		})
	}
}

func TestAMissingNamespaceIsAWarning(t *testing.T) {
	resources := func(namespace string) string {
		return fmt.Sprintf(`
			resource "elastic_local_queue" "test" {
			  name          = "missing"
			  namespace     = %[1]s
			  cluster_queue = "nobody"
			}
			resource "elastic_task" "test" {
			  name      = "missing"
			  namespace = %[1]s
			  run       = "true"
			}
			`, namespace) + trainingJob("missing", "namespace = "+namespace)
	}
	const warning = "Namespace no-such-namespace does not exist"
	r := newTerminal(t)
	printed, code := r.run(t, asAdmin("forecast = \"off\"")+resources(`"no-such-namespace"`), "plan")
	if code != 0 || strings.Count(printed, warning) != 1 {
		t.Errorf("plan exited with %d, and warns %d times:\n%s", code, strings.Count(printed, warning), printed)
	}
	expectText(t, printed, warning, "a provider cannot see depends_on or the target of a reference", "kubernetes_namespace_v1.NAME.id")
	for what, config := range map[string]string{
		"one that exists":              asAdmin("forecast = \"off\"") + resources(`"kube-public"`),
		"one that is not known yet":    asAdmin("forecast = \"off\"") + "resource \"terraform_data\" \"later\" {}\n" + resources("terraform_data.later.id"),
		"one that may not be read":     providertest.Account(t, adminConfig(t), "reads-no-namespaces", "forecast = \"off\"") + resources(`"no-such-namespace"`),
		"one where nothing is planned": asAdmin("forecast = \"off\""),
	} {
		printed, code := newTerminal(t).run(t, config, "plan")
		if code != 0 || strings.Contains(printed, "Warning: Namespace") {
			t.Errorf("%s: plan exited with %d:\n%s", what, code, printed)
		}
	}
}
