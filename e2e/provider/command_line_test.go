package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// What only some command lines have, with those that have it: list resources, import by identity, actions in lifecycle,
// and resources moved from another provider's.

// named is a resource of a kind, as a test makes it.
type named struct {
	resource   string
	attributes string // besides the name
	namespaced bool
}

// called is the object's name: those of a training job and of a task are both names of Jobs.
func (n named) called(name string) string {
	return name + "-" + strings.ReplaceAll(strings.TrimPrefix(n.resource, "elastic_"), "_", "-")
}

// block is the resource, with a label by which a search finds it.
func (n named) block(name string) string {
	return fmt.Sprintf("resource %q \"test\" {\n  name = %q\n  labels = { made-as = %q }\n%s\n}\n", n.resource, n.called(name), name, n.attributes)
}

// everyResource is one resource of each kind.
func everyResource() []named {
	all := []named{
		{"elastic_training_job", attributesOf(trainingJob("", `wait_for = "created"`)), true},
		{"elastic_task", "run = \"true\"\n image = \"registry.invalid/nobody:0\"\n wait_for = \"created\"", true},
	}
	for i, job := range all {
		all[i].attributes = strings.Replace(job.attributes, "name = \"\"\n", "", 1)
	}
	for _, k := range driftKinds() {
		all = append(all, named{k.resource, k.updated, k.namespaced})
	}
	return all
}

// made applies a resource of each kind, and has them destroyed after the test.
func made(t *testing.T, name string) []named {
	t.Helper()
	all, config := everyResource(), asAdmin("")
	for _, k := range all {
		config += k.block(name)
	}
	r := newTerminal(t)
	t.Cleanup(func() {
		if printed, code := r.run(t, config, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
	})
	r.apply(t, "made", config)
	return all
}

// required makes the command line call the provider by its own address, as users' configurations do.
const required = "terraform {\n  required_providers {\n    elastic = { source = \"elastic-training/elastic\" }\n  }\n}\n"

func TestConfigurationGeneratedByAQueryPlansAsEmpty(t *testing.T) {
	providertest.Need(t, providertest.Query)
	const name = "queried"
	for _, k := range made(t, name) {
		t.Run(k.resource, func(t *testing.T) {
			r, config := newTerminal(t), required+asAdmin("")
			query := fmt.Sprintf("list %q \"found\" {\n  provider = elastic\n\n  config {\n    label_selector = \"made-as=%s\"\n  }\n}\n", k.resource, name)
			if err := os.WriteFile(filepath.Join(r.Directory, "found.tfquery.hcl"), []byte(query), 0o600); err != nil {
				t.Fatal(err)
			}
			printed, code := r.run(t, config, "query", "-generate-config-out=generated.tf")
			t.Logf("$ terraform query -generate-config-out=generated.tf\n%s", printed)
			if code != 0 || !strings.Contains(printed, k.called(name)) {
				t.Fatalf("query exited with %d, and does not name %s:\n%s", code, k.called(name), printed)
			}
			planned, code := r.run(t, config, "plan")
			if code != 0 {
				t.Fatalf("plan exited with %d:\n%s\nof\n%s", code, planned, generated(t, r))
			}
			if !strings.Contains(planned, "Plan: 1 to import, 0 to add, 0 to change, 0 to destroy.") {
				t.Fatalf("the plan is not empty:\n%s\nof\n%s", planned, generated(t, r))
			}
			r.apply(t, "imported", config)
			r.expectNoChanges(t, config)
		})
	}
}

func generated(t *testing.T, r *terminal) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.Directory, "generated.tf"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEveryResourceIsImportedByItsIdentity(t *testing.T) {
	providertest.Need(t, providertest.ImportByIdentity)
	const name = "identified"
	config, all := asAdmin(""), made(t, name)
	for _, k := range all {
		identity := fmt.Sprintf("name = %q", k.called(name))
		if k.namespaced {
			identity += ", namespace = \"default\""
		}
		config += fmt.Sprintf("import {\n  to = %s.test\n  identity = { %s }\n}\n", k.resource, identity)
		config += k.block(name)
	}
	r := newTerminal(t)
	printed := r.apply(t, "imported", config)
	expectText(t, printed, fmt.Sprintf("Apply complete! Resources: %d imported, 0 added, 0 changed, 0 destroyed", len(all)))
	r.expectNoChanges(t, config)
}

func TestActionsAreTriggeredByTheLifeOfAResource(t *testing.T) {
	providertest.Need(t, providertest.Actions)
	const name = "triggered"
	for _, k := range kueueKinds() {
		if k.title() != "ClusterQueue" && k.title() != "LocalQueue" {
			continue
		}
		t.Run(k.resource, func(t *testing.T) {
			k.create(t, name, "somebody", k.createdFields)
			where := ""
			if k.namespaced {
				where = "namespace = \"default\""
			}
			config := func(version string) string {
				return asAdmin("") + fmt.Sprintf(`
action "elastic_queue_drain" "before" {
  config {
    name = %[1]q
    %[2]s
  }
}
action "elastic_queue_hold" "created" {
  config {
    name = %[1]q
    %[2]s
  }
}
action "elastic_queue_release" "after" {
  config {
    name = %[1]q
    %[2]s
  }
}
resource "terraform_data" "nodes" {
  input = %[3]q
  lifecycle {
    action_trigger {
      events  = [after_create]
      actions = [action.elastic_queue_hold.created]
    }
    action_trigger {
      events  = [before_update]
      actions = [action.elastic_queue_drain.before]
    }
    action_trigger {
      events  = [after_update]
      actions = [action.elastic_queue_release.after]
    }
  }
}
`, name, where, version)
			}
			policy := func() any { return k.fieldsOf(k.live(t, name))["stopPolicy"] }
			r := newTerminal(t)
			printed := r.apply(t, "created", config("1.36"))
			expectText(t, printed, "action.elastic_queue_hold.created", "admits no further workloads; running workloads continue")
			if got := policy(); got != "Hold" {
				t.Errorf("after the creation the stop policy is %v", got)
			}
			printed = r.apply(t, "updated", config("1.37"))
			expectText(t, printed, "running workloads are evicted and queued again", "admits workloads again")
			if got := policy(); got != "None" {
				t.Errorf("after the update the stop policy is %v", got)
			}
		})
	}
}

// TestResourcesAreMovedFromThoseOfHashicorpKubernetes moves a state as hashicorp/kubernetes writes it. Of that provider
// the command line asks only that it is there; who answers is the provider under test.
func TestResourcesAreMovedFromThoseOfHashicorpKubernetes(t *testing.T) {
	const name = "moved"
	classes := adminClient(t).SchedulingV1().PriorityClasses()
	class, err := classes.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 7, Description: "kept"}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = classes.Delete(cleanupContext(t), name, metav1.DeleteOptions{}) })
	resources := []string{stateOfAResource("kubernetes_priority_class", "test", fmt.Sprintf(`{
		"id": %[1]q, "value": 7, "description": "kept", "global_default": false, "preemption_policy": "PreemptLowerPriority",
		"metadata": [{"name": %[1]q, "generate_name": "", "uid": %[2]q, "labels": {}, "annotations": {}}]}`, name, class.UID))}
	config := asAdmin("") + "provider \"kubernetes\" {}\n" + fmt.Sprintf(`
resource "elastic_priority_class" "test" {
  name        = %q
  value       = 7
  description = "kept"
}
moved {
  from = kubernetes_priority_class.test
  to   = elastic_priority_class.test
}
`, name)
	for _, k := range kueueKinds() {
		object := k.create(t, name, "terraform-provider-kubernetes", k.createdFields)
		manifest := object.DeepCopy()
		manifest.Object["metadata"] = map[string]any{"name": name}
		if k.namespaced {
			manifest.Object["metadata"] = map[string]any{"name": name, "namespace": metav1.NamespaceDefault}
		}
		text, err := manifest.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		resources = append(resources, stateOfAResource("kubernetes_manifest", k.resource, fmt.Sprintf(
			`{"manifest": {"type": "dynamic", "value": %s}, "object": {"type": "dynamic", "value": {"metadata": {"name": %q, "uid": %q}}}}`,
			text, name, object.GetUID())))
		config += k.block("test", name, k.created) + fmt.Sprintf("moved {\n  from = kubernetes_manifest.%[1]s\n  to   = %[1]s.test\n}\n", k.resource)
	}
	r := newTerminal(t)
	state := fmt.Sprintf(`{"version": 4, "serial": 1, "lineage": "moved", "outputs": {}, "resources": [%s]}`, strings.ReplaceAll(
		strings.Join(resources, ","), "REGISTRY", providertest.Registry(t)))
	if err := os.WriteFile(filepath.Join(r.Directory, "terraform.tfstate"), []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
	planned, code := r.run(t, config, "plan")
	if code != 0 {
		t.Fatalf("plan exited with %d:\n%s", code, planned)
	}
	if !strings.Contains(planned, "0 to add") || !strings.Contains(planned, "0 to destroy") {
		t.Errorf("the plan makes or destroys something:\n%s", planned)
	}
	r.apply(t, "moved", config)
	r.expectNoChanges(t, config)
	if live, err := classes.Get(t.Context(), name, metav1.GetOptions{}); err != nil || live.UID != class.UID {
		t.Errorf("the class is another one: %v %v", live, err)
	}
	for _, k := range kueueKinds() {
		k.live(t, name)
	}
}

// stateOfAResource is a resource of hashicorp/kubernetes in a state file.
func stateOfAResource(kind, name, attributes string) string {
	return fmt.Sprintf(`{"mode": "managed", "type": %q, "name": %q, "provider": "provider[\"REGISTRY/hashicorp/kubernetes\"]",
		"instances": [{"schema_version": 0, "attributes": %s}]}`, kind, name, attributes)
}
