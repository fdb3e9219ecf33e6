package provider_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// prefixed is a kind of objects whose names are generated.
type prefixed struct {
	resource   string
	attributes string // without a name
	namespaced bool
	group      schema.GroupVersionResource
}

func prefixedKinds() []prefixed {
	jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	nameless := strings.Replace(attributesOf(trainingJob("x", "")), "name = \"x\"\n", "", 1)
	all := []prefixed{
		{"elastic_training_job", nameless, true, jobs},
		{"elastic_task", "run = \"true\"\n image = \"registry.invalid/nobody:0\"\n num_nodes = 2", true, jobs},
	}
	for _, k := range driftKinds() {
		all = append(all, prefixed{k.resource, k.updated, k.namespaced, k.group})
	}
	return all
}

// prefixOf is the generateName of a live object.
func (k prefixed) prefixOf(t *testing.T, name string) string {
	t.Helper()
	client, err := dynamic.NewForConfig(adminConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	objects := dynamic.ResourceInterface(client.Resource(k.group))
	if k.namespaced {
		objects = client.Resource(k.group).Namespace(metav1.NamespaceDefault)
	}
	live, err := objects.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live.GetGenerateName()
}

func textIn(t *testing.T, value tftypes.Value, attribute string) string {
	t.Helper()
	var text *string
	if err := entriesOf(value)[attribute].As(&text); err != nil {
		t.Fatal(err)
	}
	if text == nil {
		return ""
	}
	return *text
}

func TestANameIsMadeOfAPrefixAndStays(t *testing.T) {
	server := providertest.NewServer(t, map[string]string{"config_path": adminKubeconfig()})
	for _, k := range prefixedKinds() {
		t.Run(k.resource, func(t *testing.T) {
			m := server.Manage(t, k.resource, "generate_name = \"made-up-\"\n"+k.attributes)
			if planned := m.Plan(t); entriesOf(planned.Value)["name"].IsKnown() {
				t.Errorf("the name is planned before it exists")
			}
			m.Make(t)
			t.Cleanup(func() { m.Destroy(t) })
			name := textIn(t, m.State, "name")
			if !regexp.MustCompile(`^made-up-[a-z0-9]{5}$`).MatchString(name) || k.prefixOf(t, name) != "made-up-" {
				t.Fatalf("name %q, made of the prefix %q", name, k.prefixOf(t, name))
			}
			expectEmptyPlan(t, "just made", m)

			id := name
			if k.namespaced {
				id = "default/" + name
			}
			pristine := m.State
			m.Import(t, id)
			expectEmptyPlan(t, "imported", m)
			if !entriesOf(m.State)["generate_name"].Equal(entriesOf(pristine)["generate_name"]) {
				t.Errorf("an import reads the prefix %s", entriesOf(m.State)["generate_name"])
			}

			m.Configure(t, "generate_name = \"made-\"\n"+k.attributes)
			planned := m.Plan(t)
			if len(planned.Replaces) > 0 {
				t.Errorf("a shorter prefix replaces by %v", planned.Replaces)
			}
			if wrong := m.Apply(t, planned); len(wrong) > 0 {
				t.Errorf("apply reports\n%s", texts(wrong))
			}
			expectEmptyPlan(t, "with another prefix", m)
			if textIn(t, m.State, "name") != name || k.prefixOf(t, name) != "made-" {
				t.Errorf("%s has become %s, made of %q", name, textIn(t, m.State, "name"), k.prefixOf(t, name))
			}

			m.Configure(t, fmt.Sprintf("name = %q\n%s", name, k.attributes))
			expectEmptyPlan(t, "with its own name", m)

			m.Configure(t, "generate_name = \"other-\"\n"+k.attributes)
			if planned := m.Plan(t); len(planned.Replaces) != 1 || !planned.Replaces[0].Equal(tftypes.NewAttributePath().WithAttributeName("generate_name")) {
				t.Errorf("a prefix that the name does not have replaces by %v", planned.Replaces)
			}
			m.Configure(t, "name = \"other\"\n"+k.attributes)
			if planned := m.Plan(t); len(planned.Replaces) != 1 || !planned.Replaces[0].Equal(tftypes.NewAttributePath().WithAttributeName("name")) {
				t.Errorf("another name replaces by %v", planned.Replaces)
			}
		})
	}
}

func TestGeneratedNamesInTerraform(t *testing.T) {
	var before []string
	namesOf := func(s *terraform.State) []string {
		var names []string
		for _, i := range []string{"0", "1"} {
			names = append(names, s.RootModule().Resources["elastic_priority_class.test."+i].Primary.Attributes["name"])
		}
		return names
	}
	classes := func(attributes string) string {
		return asAdmin("") + "resource \"elastic_priority_class\" \"test\" {\n count = 2\n " + attributes + "\n lifecycle { create_before_destroy = true }\n}\n"
	}
	const first = "elastic_priority_class.test[0]"
	steps(t,
		resource.TestStep{
			Config: classes("generate_name = \"tf-\"\n value = 7"),
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(first, plancheck.ResourceActionCreate)},
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
			Check: func(s *terraform.State) error {
				if before = namesOf(s); before[0] == before[1] || !strings.HasPrefix(before[0], "tf-") || !strings.HasPrefix(before[1], "tf-") {
					return fmt.Errorf("names %q", before)
				}
				return nil
			},
		},
		resource.TestStep{ResourceName: first, ImportState: true, ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name", ImportStateIdFunc: func(s *terraform.State) (string, error) { return namesOf(s)[0], nil }},
		resource.TestStep{ // a change that the API does not allow: the new class exists before the old one is deleted
			Config: classes("generate_name = \"tf-\"\n value = 8"),
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(first, plancheck.ResourceActionCreateBeforeDestroy)},
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
			Check: func(s *terraform.State) error {
				if after := namesOf(s); after[0] == before[0] || after[1] == before[1] {
					return fmt.Errorf("names %q, before %q", after, before)
				}
				return nil
			},
		},
		resource.TestStep{
			Config: classes("generate_name = \"terraform-\"\n value = 8"),
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(first, plancheck.ResourceActionCreateBeforeDestroy)},
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
			Check: func(s *terraform.State) error {
				if after := namesOf(s); !strings.HasPrefix(after[0], "terraform-") {
					return fmt.Errorf("names %q", after)
				}
				return nil
			},
		},
	)
}

func TestAGeneratedNameThatIsTakenIsTriedAgain(t *testing.T) {
	p := newProxy(t)
	var tried []string
	p.setFault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/priorityclasses") || len(tried) == 2 {
			return false
		}
		name := fmt.Sprintf("taken-%d", len(tried))
		tried = append(tried, name)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409,"message":"priorityclasses %q already exists"}`, name)
		return true
	})
	m := providertest.NewServer(t, map[string]string{"host": p.server.URL}).Manage(t, "elastic_priority_class", "generate_name = \"again-\"\n value = 3")
	m.Make(t)
	defer m.Destroy(t)
	if len(tried) != 2 {
		t.Errorf("%d names were taken", len(tried))
	}
	expectEmptyPlan(t, "made with the third name", m)
}
