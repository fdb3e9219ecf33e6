package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

// subdomain is the API's rule for names of most objects (RFC 1123).
var subdomain = nameRule("a Kubernetes object",
	"a DNS subdomain: small letters, digits, '-' and '.', at most 253 characters", validation.IsDNS1123Subdomain)

// namespaceName is the API's rule for names of namespaces.
var namespaceName = nameRule("a namespace",
	"a DNS label: small letters, digits and '-', at most 63 characters", validation.IsDNS1123Label)

// nameRule refuses a name in which the API's rule finds problems.
func nameRule(of, words string, rule func(string) []string) textRule {
	return textRule{words, func(at path.Path, name string) (title, detail string) {
		problems := rule(name)
		if len(problems) == 0 {
			return "", ""
		}
		return "Invalid name for " + of, fmt.Sprintf("%s is %q: %s.", at, name, strings.Join(problems, "; "))
	}}
}

// labels is the API's rule for labels.
type labels struct{}

func (labels) Description(context.Context) string               { return "keys and values as Kubernetes takes them" }
func (l labels) MarkdownDescription(ctx context.Context) string { return l.Description(ctx) }

func (labels) ValidateMap(_ context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	checkKeys(req, resp, "label")
	for key, element := range req.ConfigValue.Elements() {
		value, ok := element.(types.String)
		if !ok || value.IsNull() || value.IsUnknown() {
			continue
		}
		if problems := validation.IsValidLabelValue(value.ValueString()); len(problems) > 0 {
			resp.Diagnostics.AddAttributeError(req.Path.AtMapKey(key), "Invalid label value",
				fmt.Sprintf("%s is %q: %s. Annotations may contain any text.", req.Path.AtMapKey(key), value.ValueString(), strings.Join(problems, "; ")))
		}
	}
}

// annotations is the API's rule for annotations.
type annotations struct{}

func (annotations) Description(context.Context) string               { return "keys as Kubernetes takes them" }
func (a annotations) MarkdownDescription(ctx context.Context) string { return a.Description(ctx) }

func (annotations) ValidateMap(_ context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	checkKeys(req, resp, "annotation")
}

// checkKeys refuses keys that the API refuses, and entries without a value, which are indistinguishable from absent
// ones.
func checkKeys(req validator.MapRequest, resp *validator.MapResponse, what string) {
	for key, value := range req.ConfigValue.Elements() {
		lower := key
		if what == "annotation" {
			lower = strings.ToLower(key) // the API validates annotations' keys in lower case
		}
		if problems := content.IsLabelKey(lower); len(problems) > 0 {
			resp.Diagnostics.AddAttributeError(req.Path.AtMapKey(key), "Invalid key for "+article(what),
				fmt.Sprintf("%s has the key %q: %s.", req.Path, key, strings.Join(problems, "; ")))
		}
		if value.IsNull() {
			resp.Diagnostics.AddAttributeError(req.Path.AtMapKey(key), "Missing value for "+article(what),
				fmt.Sprintf("%s is null. Omit the key instead, for example with { for k, v in … : k => v if v != null }.", req.Path.AtMapKey(key)))
		}
	}
}

func article(noun string) string {
	if noun != "" && strings.ContainsRune("aeiouAEIOU", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
