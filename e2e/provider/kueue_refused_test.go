package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation/validationtest"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/apifield"
)

// TestWhatTheClusterRefusesIsReportedAtTheAttribute has the API server and Kueue's webhooks refuse objects by each of their
// rules. The provider has the same rules and sends no such object: a proxy does in its place, as if Kueue had been changed.
func TestWhatTheClusterRefusesIsReportedAtTheAttribute(t *testing.T) {
	p := newProxy(t)
	server := providertest.NewServer(t, map[string]string{"host": p.server.URL, "force_conflicts": "true"})
	for _, c := range validationtest.Cases() {
		if c.Existing != nil && isRefused(c.Existing, nil) {
			continue // only a cluster without Kueue could have it
		}
		if !isRefused(c.Object, c.Existing) {
			continue
		}
		t.Run(c.Behaviour, func(t *testing.T) {
			k := kindOfObject(t, c.Object)
			attributes := fmt.Sprintf("name = %q\n%s", c.Object.GetName(), k.reduced)
			m := server.Manage(t, k.resource, attributes)
			if c.Existing != nil {
				p.sendInstead(t, c.Existing)
				providertest.NoErrors(t, nil, m.Apply(t, m.Plan(t)))
				t.Cleanup(func() { k.remove(t, c.Existing.GetName()) })
				m.Configure(t, attributes+"\n labels = { changed = \"yes\" }")
			}
			p.sendInstead(t, c.Object)
			expectAtAttribute(t, m.Apply(t, m.Plan(t)), c.Wrong)
		})
	}
}

func TestWhatIsRefusedBecauseOfALateValueIsReportedAtTheAttribute(t *testing.T) {
	for mistake, c := range map[string]struct{ resource, later, attributes, wantText string }{
		"a label":       {"elastic_cohort", `"a b"`, `labels = { team = LATER }`, `labels["team"] is "a b"`},
		"an annotation": {"elastic_topology", `"a b"`, "levels = [{ node_label = \"a\" }]\n annotations = { (LATER) = \"x\" }", `annotations has the key "a b"`},
		"a namespace":   {"elastic_local_queue", `"late-namespace"`, "cluster_queue = \"q\"\n namespace = LATER", `namespace: The API server refused the request: namespaces "late-namespace" not found`},
		"an integer":    {"elastic_workload_priority_class", `3000000000`, `value = LATER`, "Attribute value value must be between"},
		"a quantity":    {"elastic_cluster_queue", `"4GB"`, strings.ReplaceAll(quotaOf(`"f"`, ""), `"4"`, "LATER"), "resources[0].nominal_quota: "},
		"a word":        {"elastic_local_queue", `"Drain"`, "cluster_queue = \"q\"\n stop_policy = LATER", "stop_policy: Unsupported value"},
		"a toleration":  {"elastic_resource_flavor", `-1`, `tolerations = [{ key = "k", effect = "NoExecute", toleration_seconds = LATER * 1e30 }]`, "tolerations[0].toleration_seconds"},
	} {
		t.Run(mistake, func(t *testing.T) {
			k, r := kindOf(t, c.resource), newTerminal(t)
			later := fmt.Sprintf("resource \"terraform_data\" \"later\" {\n  input = %s\n}\n", c.later)
			block := k.block("test", "late", strings.ReplaceAll(c.attributes, "LATER", "terraform_data.later.output"))
			printed := r.refuses(t, "with "+mistake+" that is known after apply", asAdmin("")+later+block)
			expectText(t, printed, "with "+c.resource+".test,", c.wantText)
		})
	}
}

func isRefused(object, existing validationtest.Object) bool {
	errs := validationtest.Validate(object, existing)
	return validationtest.Refused(errs, validation.CRD) || validationtest.Refused(errs, validation.Webhook)
}

// kindOfObject is the resource of an object.
func kindOfObject(t *testing.T, object validationtest.Object) kueueKind {
	t.Helper()
	title := strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1beta2.")
	i := slices.IndexFunc(kueueKinds(), func(k kueueKind) bool { return k.title() == title })
	if i < 0 {
		t.Fatalf("no resource is a %s", title)
	}
	return kueueKinds()[i]
}

// sendInstead makes the proxy send an object in place of what is created or applied.
func (p *proxy) sendInstead(t *testing.T, object validationtest.Object) {
	t.Helper()
	object.GetObjectKind().SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind(kindOfObject(t, object).title()))
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	p.setFault(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method == http.MethodPost || strings.HasSuffix(describe(r), "(apply)") || strings.HasSuffix(describe(r), "(force)") {
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		return false
	})
}

// expectAtAttribute expects one error, at an attribute, that names the attribute of one of the wrong fields or what is
// around it, and no field in the API's way.
func expectAtAttribute(t *testing.T, diagnostics []*tfprotov6.Diagnostic, wrong []string) {
	t.Helper()
	if len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityError {
		t.Fatalf("it is not refused once:\n%s", texts(diagnostics))
	}
	at, detail := attributeText(diagnostics[0].Attribute), diagnostics[0].Detail
	found := slices.ContainsFunc(wrong, func(field string) bool {
		attribute := asAttribute(field)
		last := attribute[strings.LastIndex(attribute, ".")+1:]
		within := attribute == at || strings.HasPrefix(attribute, at+".") || strings.HasPrefix(attribute, at+"[")
		return within && (strings.Contains(detail, at) || strings.Contains(detail, last))
	})
	if !found || at == "" || strings.Contains(detail, "spec.") {
		t.Errorf("of %v, an error at %q:\n%s", wrong, at, detail)
	}
}

// asAttribute is the attribute of a field that is wrong: resource_groups[0].flavors for "spec.resourceGroups[0].flavors
// webhook".
func asAttribute(wrong string) string {
	field, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(wrong, "spec."), "metadata."), " ")
	return regexp.MustCompile(`(^|\.)\w+`).ReplaceAllStringFunc(field, apifield.Snake)
}

// attributeText is an attribute as expressions name it; "" for none.
func attributeText(at *tftypes.AttributePath) string {
	var b strings.Builder
	for _, step := range at.Steps() {
		switch step := step.(type) {
		case tftypes.AttributeName:
			b.WriteString("." + string(step))
		default:
			fmt.Fprintf(&b, "[%v]", step)
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}
