package provider_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const class = "elastic_priority_class.test"

// priorityClass is a resource block with the given lines besides the name.
func priorityClass(name, lines string) string {
	return fmt.Sprintf("resource \"elastic_priority_class\" \"test\" {\n  name = %q\n%s\n}\n", name, lines)
}

// planned checks the action, and that nothing is left to do after it.
func planned(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{
		PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(class, action)},
		PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
	}
}

func state(attribute string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(class, tfjsonpath.New(attribute), value)
}

func text(s string) knownvalue.Check { return knownvalue.StringExact(s) }

func liveClass(t *testing.T, name string) *schedulingv1.PriorityClass {
	t.Helper()
	live, err := adminClient(t).SchedulingV1().PriorityClasses().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// patchClass changes a class as another client does.
func patchClass(t *testing.T, name, manager, patch string) {
	t.Helper()
	_, err := adminClient(t).SchedulingV1().PriorityClasses().Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPriorityClassLife(t *testing.T) {
	name := "life"
	var uid string
	steps(t,
		resource.TestStep{ // create, with the API's defaults shown in the plan
			Config:           asAdmin("") + priorityClass(name, `value = 100`),
			ConfigPlanChecks: planned(plancheck.ResourceActionCreate),
			ConfigStateChecks: []statecheck.StateCheck{
				state("value", knownvalue.Int64Exact(100)),
				state("global_default", knownvalue.Bool(false)),
				state("preemption_policy", text("PreemptLowerPriority")),
				state("description", text("")),
				state("labels", knownvalue.MapSizeExact(0)),
				state("uid", knownvalue.StringRegexp(regexp.MustCompile(`^[0-9a-f-]{36}$`))),
			},
		},
		resource.TestStep{ // update right after create, in place
			PreConfig: func() { uid = string(liveClass(t, name).UID) },
			Config: asAdmin("") + priorityClass(name, `
				value       = 100
				description = "for tests"
				labels      = { team = "ml", tier = "gold" }
				annotations = { "example.com/note" = "A note." }`),
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: func(*terraformState) error {
				live := liveClass(t, name)
				if string(live.UID) != uid {
					t.Errorf("the class was replaced: UID %s, was %s", live.UID, uid)
				}
				if diff := cmp.Diff(map[string]string{"team": "ml", "tier": "gold"}, live.Labels); diff != "" {
					t.Error(diff)
				}
				if live.Description != "for tests" || live.Annotations["example.com/note"] != "A note." {
					t.Errorf("description %q, annotations %v", live.Description, live.Annotations)
				}
				return nil
			},
		},
		resource.TestStep{ // what is removed from the configuration is removed from the object
			Config:           asAdmin("") + priorityClass(name, "value = 100\n labels = { team = \"ml\" }"),
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: func(*terraformState) error {
				live := liveClass(t, name)
				if diff := cmp.Diff(map[string]string{"team": "ml"}, live.Labels); diff != "" {
					t.Error(diff)
				}
				if live.Description != "" || len(live.Annotations) != 0 {
					t.Errorf("description %q and annotations %v remain", live.Description, live.Annotations)
				}
				return nil
			},
		},
		resource.TestStep{
			ResourceName:                         class,
			ImportState:                          true,
			ImportStateId:                        name,
			ImportStateVerify:                    true,
			ImportStateVerifyIdentifierAttribute: "name",
		},
		resource.TestStep{ // value is immutable: replace
			Config:           asAdmin("") + priorityClass(name, "value = 200\n labels = { team = \"ml\" }"),
			ConfigPlanChecks: planned(plancheck.ResourceActionDestroyBeforeCreate),
			Check: func(*terraformState) error {
				if live := liveClass(t, name); live.Value != 200 || string(live.UID) == uid {
					t.Errorf("value %d, UID %s (was %s)", live.Value, live.UID, uid)
				}
				return nil
			},
		},
		resource.TestStep{ // so is preemption_policy
			Config:           asAdmin("") + priorityClass(name, "value = 200\n preemption_policy = \"Never\""),
			ConfigPlanChecks: planned(plancheck.ResourceActionDestroyBeforeCreate),
		},
		resource.TestStep{ // and the name
			Config:           asAdmin("") + priorityClass(name+"-2", "value = 200\n preemption_policy = \"Never\""),
			ConfigPlanChecks: planned(plancheck.ResourceActionDestroyBeforeCreate),
		},
	)
	for _, left := range []string{name, name + "-2"} {
		if _, err := adminClient(t).SchedulingV1().PriorityClasses().Get(t.Context(), left, metav1.GetOptions{}); err == nil {
			t.Errorf("PriorityClass %s is left", left)
		}
	}
}

func TestPriorityClassThatDisappearsIsPlannedAgain(t *testing.T) {
	name := "disappears"
	config := asAdmin("") + priorityClass(name, "value = 1")
	steps(t,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				if err := adminClient(t).SchedulingV1().PriorityClasses().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			},
			Config:           config,
			ConfigPlanChecks: planned(plancheck.ResourceActionCreate),
		},
	)
}

func TestPriorityClassDriftIsWhatHappensToOurFields(t *testing.T) {
	name := "drift"
	config := priorityClass(name, "value = 1\n labels = { team = \"ml\" }")
	steps(t,
		resource.TestStep{Config: asAdmin("") + config},
		resource.TestStep{ // labels and annotations of others are no difference
			PreConfig: func() {
				patchClass(t, name, "somebody", `{"metadata":{"labels":{"theirs":"x"},"annotations":{"theirs":"y"}}}`)
			},
			Config:           asAdmin("") + config,
			ConfigPlanChecks: planned(plancheck.ResourceActionNoop),
		},
		resource.TestStep{ // our label was changed: it is set again, and theirs stays theirs
			PreConfig:        func() { patchClass(t, name, "kubectl-label", `{"metadata":{"labels":{"team":"ops"}}}`) },
			Config:           asAdmin("") + config,
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: func(*terraformState) error {
				if diff := cmp.Diff(map[string]string{"team": "ml", "theirs": "x"}, liveClass(t, name).Labels); diff != "" {
					t.Error(diff)
				}
				return nil
			},
		},
		resource.TestStep{ // every other attribute is read as it is, also if others wrote it
			PreConfig:        func() { patchClass(t, name, "kubectl-edit", `{"description":"edited"}`) },
			Config:           asAdmin("") + config,
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: func(*terraformState) error {
				if live := liveClass(t, name); live.Description != "" {
					t.Errorf("description %q", live.Description)
				}
				return nil
			},
		},
	)
}

func TestPriorityClassRequests(t *testing.T) {
	p := newProxy(t)
	name := "requests"
	object := "/apis/scheduling.k8s.io/v1/priorityclasses/" + name
	expect := func(want ...string) func(*terraformState) error {
		return func(*terraformState) error {
			if diff := cmp.Diff(want, distinct(p.take())); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			return nil
		}
	}
	steps(t,
		resource.TestStep{
			Config: p.config("") + priorityClass(name, "value = 1"),
			Check:  expect("POST /apis/scheduling.k8s.io/v1/priorityclasses"),
		},
		resource.TestStep{ // the first update turns what the POST owns into an apply's
			PreConfig: func() { p.take() },
			Config:    p.config("") + priorityClass(name, "value = 1\n description = \"a\""),
			Check:     expect("GET "+object, "PATCH "+object+" (json patch)", "PATCH "+object+" (apply) (force)"),
		},
		resource.TestStep{ // later ones have nothing to turn
			PreConfig: func() { p.take() },
			Config:    p.config("") + priorityClass(name, "value = 1\n description = \"b\""),
			Check:     expect("GET "+object, "PATCH "+object+" (apply) (force)"),
		},
		resource.TestStep{ // a plan without changes only reads, also where the client limits itself
			PreConfig: func() { p.take() },
			Config:    p.config("qps = 200") + priorityClass(name, "value = 1\n description = \"b\""),
			Check:     expect("GET " + object),
		},
	)
	if diff := cmp.Diff([]string{"GET " + object, "DELETE " + object}, distinct(p.take())); diff != "" {
		t.Errorf("requests of destroy (-want +got):\n%s", diff)
	}
}

// distinct leaves out repetitions: how often terraform itself refreshes is plugin-testing's affair.
func distinct(requests []string) []string {
	var once []string
	for _, r := range requests {
		if !slices.Contains(once, r) {
			once = append(once, r)
		}
	}
	return once
}

func TestPriorityClassValuesMayBeUnknown(t *testing.T) {
	steps(t, resource.TestStep{
		Config: asAdmin("") + `
			resource "terraform_data" "later" {
			  input = { name = "unknown-values", value = 7, text = "made later", labels = { team = "ml" } }
			}
			resource "elastic_priority_class" "test" {
			  name           = terraform_data.later.output.name
			  value          = terraform_data.later.output.value
			  description    = terraform_data.later.output.text
			  global_default = terraform_data.later.output.value > 100
			  labels         = terraform_data.later.output.labels
			}`,
		ConfigPlanChecks: resource.ConfigPlanChecks{
			PreApply: []plancheck.PlanCheck{
				plancheck.ExpectUnknownValue(class, tfjsonpath.New("name")),
				plancheck.ExpectUnknownValue(class, tfjsonpath.New("labels")),
			},
			PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
		},
		ConfigStateChecks: []statecheck.StateCheck{
			state("name", text("unknown-values")),
			state("value", knownvalue.Int64Exact(7)),
			state("labels", knownvalue.MapExact(map[string]knownvalue.Check{"team": text("ml")})),
		},
	})
}

func TestPriorityClassRefusesWhatTheAPIRefuses(t *testing.T) {
	for behaviour, c := range map[string]struct{ lines, wantText string }{
		"a value above the limit":               {`value = 1000000001`, "must be between -2147483648 and 1000000000"},
		"a value below an int32":                {`value = -2147483649`, "must be between -2147483648 and 1000000000"},
		"a name with capitals":                  {"value = 1\n name = \"High\"", "RFC 1123 subdomain"},
		"a name of the system's":                {"value = 1\n name = \"system-mine\"", `begins with "system-"`},
		"a policy that does not exist":          {"value = 1\n preemption_policy = \"Always\"", `"PreemptLowerPriority" "Never"`},
		"a label's value that is none":          {"value = 1\n labels = { team = \"a b\" }", `"a b": a valid label must`},
		"a label's key that is none":            {"value = 1\n labels = { \"a b\" = \"x\" }", `Invalid key for a label`},
		"a label without a value":               {"value = 1\n labels = { a = null }", `labels["a"] is null`},
		"an annotation's key with two slashes":  {"value = 1\n annotations = { \"a/b/c\" = \"x\" }", `Invalid key for an annotation`},
		"a class without a value":               {``, `The argument "value" is required`},
		"a value that is no number":             {`value = "high"`, `a number is required`},
		"a value that is not a whole number":    {`value = 1.5`, `whole number`},
		"an attribute that does not exist here": {"value = 1\n priority = 3", `Unsupported argument`},
	} {
		t.Run(behaviour+" is refused when planning", func(t *testing.T) {
			config := priorityClass("refused", c.lines)
			if strings.Contains(c.lines, "name =") {
				config = fmt.Sprintf("resource \"elastic_priority_class\" \"test\" {\n%s\n}\n", c.lines)
			}
			steps(t, resource.TestStep{Config: asAdmin("") + config, PlanOnly: true, ExpectError: wantText(c.wantText)})
		})
	}
}

func TestPriorityClassOnlyOneGlobalDefault(t *testing.T) {
	steps(t,
		resource.TestStep{
			Config: asAdmin("") + priorityClass("default-one", "value = 1\n global_default = true") + `
				resource "elastic_priority_class" "second" {
				  name           = "default-two"
				  value          = 2
				  global_default = true
				  depends_on     = [elastic_priority_class.test]
				}`,
			ExpectError: wantText("Cannot create PriorityClass default-two", "PriorityClass default-one is already marked as default"),
		},
	)
}

// A PriorityClass waits for nothing but the finalizers that other clients have set.
func TestPriorityClassTimeoutsBoundADeletionThatAFinalizerHolds(t *testing.T) {
	const name = "held-by-a-finalizer"
	r := newTerminal(t)
	config := asAdmin("") + priorityClass(name, "value = 1\n timeouts = { delete = \"1s\" }")
	r.apply(t, "created", config)
	patchClass(t, name, "somebody", `{"metadata":{"finalizers":["example.com/holds"]}}`)
	begin := time.Now()
	printed, code := r.run(t, config, "destroy", "-auto-approve")
	if took := time.Since(begin); code == 0 || took >= 2*time.Minute { // the default
		t.Errorf("destroy exited with %d after %s:\n%s", code, took, printed)
	}
	expectText(t, printed, "held by finalizers: example.com/holds")
	patchClass(t, name, "somebody", `{"metadata":{"finalizers":null}}`)
	if printed, code := r.run(t, config, "destroy", "-auto-approve"); code != 0 {
		t.Errorf("destroy exited with %d:\n%s", code, printed)
	}
}
