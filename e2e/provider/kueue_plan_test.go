package provider_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kindOf is the description of a resource.
func kindOf(t *testing.T, resource string) kueueKind {
	t.Helper()
	i := slices.IndexFunc(kueueKinds(), func(k kueueKind) bool { return k.resource == resource })
	if i < 0 {
		t.Fatalf("no kind %s", resource)
	}
	return kueueKinds()[i]
}

// quotaOf is a resource group with CPU of one flavor, whose name is an expression.
func quotaOf(flavor, more string) string {
	return fmt.Sprintf(`resource_groups = [{
		covered_resources = ["cpu"]
		flavors           = [{ name = %s, resources = [{ name = "cpu", nominal_quota = "4"%s }] }]
	}]`, flavor, more)
}

// referring are a flavor, a queue and a local queue that refer to one another.
func referring(name string) string {
	return fmt.Sprintf(`
		resource "elastic_local_queue" "l" {
		  name          = %[1]q
		  cluster_queue = elastic_cluster_queue.c.name
		}
		resource "elastic_cluster_queue" "c" {
		  name       = %[1]q
		  preemption = { within_cluster_queue = "LowerPriority" }
		  %[2]s
		}
		resource "elastic_resource_flavor" "f" {
		  name = %[1]q
		}`, name, quotaOf("elastic_resource_flavor.f.name", ""))
}

func (r *terminal) plans(t *testing.T, config string, sentences ...string) string {
	t.Helper()
	printed, code := r.run(t, config, "plan")
	if code != 0 {
		t.Errorf("plan exited with %d:\n%s", code, printed)
	}
	if len(sentences) > 0 {
		expectText(t, printed, sentences...)
	} else if strings.Contains(printed, "Warning") {
		t.Errorf("a warning:\n%s", printed)
	}
	return printed
}

func TestMistakesAreReportedAtTheirAttribute(t *testing.T) {
	r := newTerminal(t)
	for mistake, c := range map[string]struct {
		resource, lines string
		wantText        []string
	}{
		"a limit without a cohort": {"elastic_cluster_queue", quotaOf(`"f"`, `, borrowing_limit = "1"`), []string{
			"Kueue would reject this ClusterQueue", "with elastic_cluster_queue.test,", "resource_groups[0].flavors[0].resources[0].borrowing_limit:", "cohort_name",
		}},
		"no level":                 {"elastic_topology", `levels = []`, []string{"Kueue would reject this Topology", "levels:", "must have at least one entry"}},
		"a quantity that is none":  {"elastic_cluster_queue", strings.ReplaceAll(quotaOf(`"f"`, ""), `"4"`, `"4GB"`), []string{`"4GB" is not a Kubernetes quantity; did you mean 4G or 4Gi?`}},
		"a value beyond an int32":  {"elastic_workload_priority_class", `value = 3000000000`, []string{"must be between -2147483648 and 2147483647"}},
		"a namespace's name":       {"elastic_local_queue", "cluster_queue = \"q\"\n namespace = \"Team A\"", []string{"Invalid name for a namespace"}},
		"an attribute of another":  {"elastic_cohort", `cohort_name = "c"`, []string{"Unsupported argument"}},
		"a cohort without a name":  {"elastic_cluster_queue", `cohort_name = ""`, []string{"cohort_name string length must be at least 1"}},
		"a timeout":                {"elastic_resource_flavor", `timeouts = { delete = "long" }`, []string{"Invalid duration", `timeouts.delete is "long"`}},
		"a word of wait_for":       {"elastic_local_queue", "cluster_queue = \"q\"\n wait_for = \"ready\"", []string{`"created" "active"`}},
		"a label's value":          {"elastic_cohort", `labels = { team = "a b" }`, []string{"Invalid label value"}},
		"no controller":            {"elastic_admission_check", ``, []string{`The argument "controller_name" is required`}},
		"parameters without group": {"elastic_admission_check", "controller_name = \"c\"\n parameters = { kind = \"K\", name = \"n\" }", []string{`attribute "api_group" is required`}},
	} {
		t.Run(mistake, func(t *testing.T) {
			printed, code := r.run(t, asAdmin("")+kindOf(t, c.resource).block("test", "mistaken", c.lines), "validate")
			if code == 0 {
				t.Errorf("validate accepts it:\n%s", printed)
			}
			expectText(t, printed, c.wantText...)
		})
	}
}

func TestARuleAboutUnknownValuesIsCheckedWhenTheyAreKnown(t *testing.T) {
	r := newTerminal(t)
	printed := r.refuses(t, "with a quota that is known after apply", asAdmin("")+`
		resource "terraform_data" "later" {
		  input = "-4"
		}
		`+kindOf(t, "elastic_cluster_queue").block("test", "later", strings.ReplaceAll(quotaOf(`"f"`, ""), `"4"`, "terraform_data.later.output")))
	expectText(t, printed, "Plan: 2 to add", "Kueue would reject this ClusterQueue", "nominal_quota:", "must not be negative")
}

func TestPlanningAQueueNeedsNoCluster(t *testing.T) {
	r := newTerminal(t)
	t.Run("where no server listens", func(t *testing.T) {
		r.plans(t, "provider \"elastic\" {\n  host = \"http://127.0.0.1:1\"\n}\n"+referring("nowhere")+`
			resource "elastic_local_queue" "by_name" {
			  name          = "by-name"
			  cluster_queue = "nobody-knows"
			}`)
	})
	t.Run("whose host is not known yet", func(t *testing.T) {
		printed := r.plans(t, `
			resource "terraform_data" "cluster" {
			  input = "http://127.0.0.1:1"
			}
			provider "elastic" {
			  host = terraform_data.cluster.output
			}`+referring("nowhere"))
		expectText(t, printed, "Plan: 4 to add")
	})
}

func TestWhatIsReferredToIsNotLookedFor(t *testing.T) {
	const name = "referring"
	p, r := newProxy(t), newTerminal(t)
	config := p.config("") + referring(name)
	t.Cleanup(func() { r.run(t, config, "destroy", "-auto-approve") })
	r.plans(t, config)
	if requests := p.take(); len(requests) != 0 {
		t.Errorf("planning what is made and refers to one another sends %q", requests)
	}
	printed, code := r.run(t, config, "apply", "-auto-approve")
	if code != 0 || strings.Contains(printed, "Warning") {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	api := "/apis/kueue.x-k8s.io/v1beta2"
	if diff := cmp.Diff([]string{"POST " + api + "/resourceflavors", "POST " + api + "/clusterqueues", "POST " + api + "/namespaces/default/localqueues"}, p.take()); diff != "" {
		t.Errorf("requests of apply (-want +got):\n%s", diff)
	}
	r.plans(t, config)
	got := p.take()
	slices.Sort(got)
	if diff := cmp.Diff([]string{"GET " + api + "/clusterqueues/" + name, "GET " + api + "/namespaces/default/localqueues/" + name, "GET " + api + "/resourceflavors/" + name}, got); diff != "" {
		t.Errorf("requests of a plan without changes (-want +got):\n%s", diff)
	}
}

func TestNamesOfWhatIsNotThereAreWarnedAbout(t *testing.T) {
	const name = "warned"
	p, r := newProxy(t), newTerminal(t)
	kindOf(t, "elastic_resource_flavor").create(t, name+"-there", "somebody", `{}`)
	var missing strings.Builder
	for i := range 3 {
		fmt.Fprintf(&missing, "resource \"elastic_local_queue\" \"l%d\" {\n  name = \"l-%d\"\n  cluster_queue = \"missing-queue\"\n}\n", i, i)
	}
	printed := r.plans(t, p.config("")+missing.String()+`
		resource "elastic_cluster_queue" "c" {
		  name       = "warned"
		  preemption = { within_cluster_queue = "LowerPriority" }
		  resource_groups = [{
		    covered_resources = ["cpu"]
		    flavors = [
		      { name = "warned-there", resources = [{ name = "cpu", nominal_quota = "1" }] },
		      { name = "missing-flavor", resources = [{ name = "cpu", nominal_quota = "1" }] },
		    ]
		  }]
		  admission_checks_strategy = { admission_checks = [{ name = "missing-check" }] }
		}
		resource "elastic_resource_flavor" "f" {
		  name          = "warned"
		  node_labels   = { a = "b" }
		  topology_name = "missing-topology"
		}
		resource "elastic_cohort" "c" {
		  name        = "warned"
		  parent_name = "missing-cohort"
		}`, "Warning")
	for _, sentences := range [][]string{
		{"Warning: ClusterQueue missing-queue not found", `cluster_queue refers to ClusterQueue "missing-queue", which does not exist and is not planned before this resource`, "(elastic_cluster_queue.NAME.name)", "inactive until the ClusterQueue exists"},
		{"Warning: ResourceFlavor missing-flavor not found", "resource_groups[0].flavors[1].name refers to ResourceFlavor"},
		{"Warning: AdmissionCheck missing-check not found", "admission_checks_strategy.admission_checks[0].name refers to"},
		{"Warning: Topology missing-topology not found", "topology_name refers to"},
		{"Warning: Cohort missing-cohort not found", "parent_name refers to"},
	} {
		expectText(t, printed, sentences...)
	}
	if strings.Contains(printed, "warned-there not found") {
		t.Errorf("an existing object is reported as missing:\n%s", printed)
	}
	requests := p.take()
	slices.Sort(requests)
	if len(requests) != 5 || len(slices.Compact(requests)) != 5 {
		t.Errorf("a kind is listed more than once: %q", requests)
	}
}

func TestAPlanDoesNotWaitForAServerThatDoesNotAnswer(t *testing.T) {
	p, r := newProxy(t), newTerminal(t)
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	p.setFault(func(http.ResponseWriter, *http.Request, http.Handler) bool {
		<-ended
		return true
	})
	config := p.config("")
	for i := range 20 {
		config += kindOf(t, "elastic_local_queue").block(fmt.Sprintf("l%d", i), fmt.Sprintf("l-%d", i), `cluster_queue = "missing"`)
		config += kindOf(t, "elastic_cohort").block(fmt.Sprintf("c%d", i), fmt.Sprintf("c-%d", i), `parent_name = "missing"`)
	}
	r.plans(t, config)
	if requests := p.take(); len(requests) > 2 {
		t.Errorf("the requests are repeated: %q", requests)
	}
}

func TestAQueueThatNeverPreemptsIsWarnedAbout(t *testing.T) {
	r := newTerminal(t)
	class := func(label string, value int) string {
		return fmt.Sprintf("resource \"elastic_workload_priority_class\" %q {\n  name  = \"never-%s\"\n  value = %d\n}\n", label, label, value)
	}
	queue := func(lines string) string {
		return "resource \"elastic_cluster_queue\" \"q\" {\n  name = \"never\"\n" + lines + "\n}\n"
	}
	const wantText = "Warning: ClusterQueue never never preempts"
	printed := r.plans(t, asAdmin("")+class("low", 1)+class("high", 2)+queue(""), wantText, `priorities only determine the order in the queue`, `within_cluster_queue = "LowerPriority"`)
	if n := len(regexp.MustCompile(wantText).FindAllString(printed, -1)); n != 1 {
		t.Errorf("it is reported %d times:\n%s", n, printed)
	}
	for silence, config := range map[string]string{
		"a queue that preempts":     class("low", 1) + class("high", 2) + queue(`preemption = { within_cluster_queue = "LowerPriority" }`),
		"one class":                 class("low", 1) + queue(""),
		"classes of the same value": class("low", 1) + class("high", 1) + queue(""),
	} {
		t.Run("there is no warning about "+silence, func(t *testing.T) {
			requireNoClasses(t)
			r.plans(t, asAdmin("")+config)
		})
	}
}

// requireNoClasses makes sure that no other test's classes are in the cluster, which would be compared too.
func requireNoClasses(t *testing.T) {
	t.Helper()
	classes, err := kindOf(t, "elastic_workload_priority_class").in(t).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(classes.Items) > 0 {
		t.Skipf("the cluster has classes already: %v", classes.Items[0].GetName())
	}
}

func TestSpellingsOfOneQuantityAreEqual(t *testing.T) {
	r := newTerminal(t)
	queue := func(first, second string) string {
		return asAdmin("") + kindOf(t, "elastic_cluster_queue").block("test", "spelled", fmt.Sprintf(`
			preemption      = {}
			fair_sharing    = { weight = "2000m" }
			resource_groups = [{
			  covered_resources = ["cpu", "memory"]
			  flavors           = [{ name = "f", resources = [{ name = "cpu", nominal_quota = %q }, { name = "memory", nominal_quota = %q }] }]
			}]`, first, second))
	}
	t.Cleanup(func() { r.run(t, queue("1", "1"), "destroy", "-auto-approve") })
	r.apply(t, "created", queue("3000m", "1024Mi"))
	r.expectNoChanges(t, strings.ReplaceAll(queue("3", "1Gi"), `"2000m"`, `"2"`))
	printed := r.apply(t, "with one changed and one spelled differently", queue("4", "1Gi"))
	expectText(t, printed, `~ nominal_quota = "3000m" -> "4"`)
	if strings.Contains(printed, "1Gi") {
		t.Errorf("the other is planned, too:\n%s", printed)
	}
}

func TestEmptyIsNoChange(t *testing.T) {
	r := newTerminal(t)
	config := asAdmin("") +
		kindOf(t, "elastic_resource_flavor").block("test", "empty", "labels = {}\n annotations = {}\n node_labels = {}\n node_taints = []\n tolerations = []") +
		kindOf(t, "elastic_cluster_queue").block("test", "empty", "resource_groups = []\n namespace_selector = { match_labels = {}, match_expressions = [] }\n fair_sharing = {}\n flavor_fungibility = {}\n preemption = { borrow_within_cohort = {} }") +
		kindOf(t, "elastic_workload_priority_class").block("test", "empty", "value = 0\n description = \"\"")
	t.Cleanup(func() { r.run(t, config, "destroy", "-auto-approve") })
	r.apply(t, "created", config)
	labelled := strings.Replace(config, "labels = {}", `labels = { a = "b" }`, 1)
	r.apply(t, "with a label", labelled)
	r.apply(t, "and without", config)
}

func TestASelectorOfAllIsNotOneOfNone(t *testing.T) {
	k, r := kindOf(t, "elastic_cluster_queue"), newTerminal(t)
	config := func(lines string) string { return asAdmin("") + k.block("test", "selects", lines) }
	t.Cleanup(func() { r.run(t, config(""), "destroy", "-auto-approve") })
	for i, c := range []struct{ lines, selector string }{
		{``, `{}`},
		{`namespace_selector = {}`, `{"namespaceSelector":{}}`},
		{`namespace_selector = { match_labels = { a = "b" } }`, `{"namespaceSelector":{"matchLabels":{"a":"b"}}}`},
		{`namespace_selector = {}`, `{"namespaceSelector":{}}`},
		{``, `{}`},
	} {
		when := fmt.Sprintf("step %d, %q", i, c.lines)
		r.apply(t, when, config(c.lines))
		want := strings.TrimSuffix(c.selector, "}")
		if want != "{" {
			want += ","
		}
		k.expectFields(t, when, "selects", want+queueDefaults+","+preemptionDefaults+"}")
	}
}
