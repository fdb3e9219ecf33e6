package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

const (
	// generatedLetters is the number of letters and digits after a prefix, as with Kubernetes' own generateName.
	generatedLetters = 5
	// generatedAttempts bounds how many names are tried, as the API server does for generateName.
	generatedAttempts = 8
	// exampleLetters replace the letters of a name that is not known yet. The generator uses no "0".
	exampleLetters = "x0000"
)

// nameAttributes are name and generate_name, exactly one of which is configured. word is the object that they name, and
// rules are the rules for its name.
func nameAttributes(word, description string, rules ...validator.String) (name, generateName schema.StringAttribute) {
	name = schema.StringAttribute{
		MarkdownDescription: description + " Exactly one of `name` and `generate_name` is set. Changing it replaces the " + word + ".",
		Optional:            true,
		Computed:            true,
		Validators:          append([]validator.String{nameOrPrefix{}}, rules...),
	}
	generateName = schema.StringAttribute{
		MarkdownDescription: "Prefix of the name, instead of `name`: an apply that creates the " + word + " adds five random letters and digits; `name` then contains the whole name. " +
			"A change replaces the " + word + " unless its name begins with the new prefix too.",
		Optional:   true,
		Computed:   true,
		Validators: []validator.String{namePrefix{rules}},
	}
	return name, generateName
}

// nameOrPrefix is the rule of name that either it or generate_name is configured.
type nameOrPrefix struct{}

func (nameOrPrefix) Description(context.Context) string {
	return "exactly one of name and generate_name"
}
func (n nameOrPrefix) MarkdownDescription(ctx context.Context) string { return n.Description(ctx) }

func (nameOrPrefix) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	var prefix types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("generate_name"), &prefix)...)
	switch {
	case req.ConfigValue.IsNull() && prefix.IsNull():
		resp.Diagnostics.AddAttributeError(req.Path, "Missing name", "Neither name nor generate_name is set. Set name, or set generate_name to a prefix.")
	case !req.ConfigValue.IsNull() && !req.ConfigValue.IsUnknown() && !prefix.IsNull() && !prefix.IsUnknown():
		resp.Diagnostics.AddAttributeError(req.Path, "Conflicting configuration", "Both name and generate_name are set. Remove one of them.")
	}
}

// namePrefix refuses what no valid name begins with. rules are those of the whole name.
type namePrefix struct{ rules []validator.String }

func (namePrefix) Description(context.Context) string {
	return fmt.Sprintf("a prefix to which %d letters can be added to make a valid name", generatedLetters)
}
func (p namePrefix) MarkdownDescription(ctx context.Context) string { return p.Description(ctx) }

func (p namePrefix) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	prefix := req.ConfigValue.ValueString()
	if prefix == "" {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid name prefix", fmt.Sprintf("%s is empty. Set it to a prefix such as \"low-\", or use name.", req.Path))
		return
	}
	req.ConfigValue = types.StringValue(prefix + exampleLetters)
	for _, rule := range p.rules {
		var of validator.StringResponse
		rule.ValidateString(ctx, req, &of)
		for _, problem := range of.Diagnostics.Errors() {
			resp.Diagnostics.AddAttributeError(req.Path, "Invalid name prefix", fmt.Sprintf(
				"%s is %q; with the %d letters that are added, the name would be invalid: %s", req.Path, prefix, generatedLetters, problem.Detail()))
			return
		}
	}
}

// taskName is the rule for names of tasks, as the task itself has it.
var taskName = ownName(invalidTask, fmt.Sprintf("a DNS label of at most %d characters", task.MaxNameLength), task.NameProblem)

// ownName is a rule for the name of a job, of which problem finds what is wrong.
func ownName(title, words string, problem func(name string) string) textRule {
	return textRule{words, func(_ path.Path, name string) (string, string) {
		if found := problem(name); found != "" {
			return title, "name " + found + "."
		}
		return "", ""
	}}
}

// settledNames is a plan with its name decided: the configured one; that of the existing object while it begins with
// the configured prefix; or else one that is not known until the object is created. It returns the attributes, if any,
// that replace the object.
func settledNames(config, state, plan tftypes.Value) (tftypes.Value, path.Paths) {
	configured, prior, planned := valuesOf(config), valuesOf(state), valuesOf(plan)
	if len(planned) == 0 {
		return plan, nil
	}
	none := tftypes.NewValue(tftypes.String, nil)
	var replaces path.Paths
	switch prefix := configured["generate_name"]; {
	case !configured["name"].IsNull():
		planned["generate_name"] = none
		switch {
		case state.IsNull():
		case planned["name"].Equal(prior["name"]):
			planned["generate_name"] = prior["generate_name"] // it means nothing any more
		default:
			replaces.Append(path.Root("name"))
		}
	case state.IsNull() || prior.text("name") == "":
		planned["name"] = tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	case prefix.IsKnown() && strings.HasPrefix(prior.text("name"), configured.text("generate_name")):
		planned["name"] = prior["name"]
	case prefix.Equal(prior["generate_name"]): // Terraform ignores a reason to replace that is no difference
		planned["name"] = tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
		replaces.Append(path.Root("name"))
	default:
		planned["name"] = prior["name"] // it is planned once more, as a new object
		replaces.Append(path.Root("generate_name"))
	}
	return tftypes.NewValue(plan.Type(), map[string]tftypes.Value(planned)), replaces
}

// isNamedLater reports whether a plan replaces an object by one whose name is generated. Terraform then plans it once
// more, as a new object.
func isNamedLater(config, state tftypes.Value, replaced bool) bool {
	return replaced && !state.IsNull() && valuesOf(config)["name"].IsNull()
}

// createNamed calls create with the object's name or, if only a prefix is given, with names that begin with it until
// one is free. The provider generates the letters, not the API server: a job's other objects are named after it before
// it is created, and after a lost response the provider finds the object by its name.
func createNamed[T any](name, prefix string, create func(name string) (T, error)) (T, error) {
	if name != "" {
		return create(name)
	}
	for attempt := 1; ; attempt++ {
		created, err := create(prefix + rand.String(generatedLetters))
		var taken *cluster.AlreadyExistsError
		if attempt == generatedAttempts || !errors.As(err, &taken) {
			return created, err
		}
	}
}

// plannedNames are distinct names for objects that have only a prefix until they are created: forecasts identify the
// jobs of a plan by their names.
type plannedNames struct {
	mu    sync.Mutex
	given int
}

func (n *plannedNames) next(prefix string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.given++
	return fmt.Sprintf("%s%0*d", prefix, generatedLetters, n.given)
}
