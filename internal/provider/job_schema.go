package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider/quantity"
)

// The values of wait_for and on_finished.
const (
	waitForCreated   = "created"
	waitForRunning   = "running"
	waitForSucceeded = "succeeded"

	onFinishedKeep     = "keep"
	onFinishedRecreate = "recreate"
)

// jobAttributes are the attributes that training jobs and tasks share. The word is "job" or "task"; goals are the
// values of wait_for besides waitForCreated.
func jobAttributes(ctx context.Context, word string, goals ...string) map[string]schema.Attribute {
	last := len(goals) - 1
	return map[string]schema.Attribute{
		// Changing any of these replaces the job.
		"namespace": schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("Namespace of the %[1]s's objects. `default` by default. Changing it replaces the %[1]s.", word),
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(corev1.NamespaceDefault),
			Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"image_pull_policy": schema.StringAttribute{
			MarkdownDescription: "`Always`, `IfNotPresent` or `Never`; by default, as in Kubernetes, `Always` for an image with the tag `latest` or none, and `IfNotPresent` for others. " +
				"Changing it replaces the " + word + ".",
			Optional:   true,
			Computed:   true,
			Validators: []validator.String{stringvalidator.OneOf(string(corev1.PullAlways), string(corev1.PullIfNotPresent), string(corev1.PullNever))},
		},
		"image_pull_secrets": schema.ListAttribute{
			MarkdownDescription: "Names of Secrets, in the same namespace, with credentials for the image's registry. Changing them replaces the " + word + ".",
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.List{listvalidator.ValueStringsAre(subdomain{})},
		},

		// In place.
		"labels":      labelsAttribute(),
		"annotations": annotationsAttribute(),
		"wait_for": schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("What an apply waits for: `created` (default), `%s` or `%s`. If the wait times out or is interrupted by Ctrl-C, apply reports a warning and the %s continues. With `created`, apply checks for up to two seconds whether the pods can start, and warns if they cannot. Later plans warn too.",
				strings.Join(goals[:last], "`, `"), goals[last], word),
			Optional:   true,
			Computed:   true,
			Default:    stringdefault.StaticString(waitForCreated),
			Validators: []validator.String{stringvalidator.OneOf(append([]string{waitForCreated}, goals...)...)},
		},
		"fail_on_error": schema.BoolAttribute{
			MarkdownDescription: "Whether apply reports an error, instead of a warning, if the run fails while apply waits for it. " +
				"An error during creation taints the resource: the next apply replaces the " + word + ". False by default.",
			Optional: true,
			Computed: true,
			Default:  booldefault.StaticBool(false),
		},
		"on_finished": schema.StringAttribute{
			MarkdownDescription: "What to plan for a " + word + " that has succeeded or failed: `keep` it (default), also when a TTL has removed its objects, or `recreate` it.",
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(onFinishedKeep),
			Validators:          []validator.String{stringvalidator.OneOf(onFinishedKeep, onFinishedRecreate)},
		},
		"timeouts": timeoutsAttribute(ctx, jobTimeout, "They include the wait for `wait_for` and, on deletion, for the pods to end"),

		// Computed.
		"uid":             uidAttribute(),
		"missing_objects": missingObjectsAttribute(word),
		"changed_fields":  changedFieldsAttribute(word),
	}
}

// observedInteger and observedText are attributes that the cluster reports for a job. An update that does not wait
// leaves them as they were at the last refresh, so that a plan shows only the user's changes.
func observedInteger(description string) schema.Attribute {
	return schema.Int64Attribute{
		MarkdownDescription: description + " As of the last refresh.", Computed: true,
		PlanModifiers: []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
	}
}

func observedText(description string) schema.Attribute {
	return schema.StringAttribute{
		MarkdownDescription: description + " As of the last refresh.", Computed: true,
		PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}

// jsonAttribute is JSON in which another spelling of the same value is no change.
func jsonAttribute(description string) schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Validators:          []validator.String{jsonSyntax{}},
	}
}

func podOverridesAttribute() schema.StringAttribute {
	return jsonAttribute("Strategic-merge patch of the pod template, applied last, for fields without an attribute here: `jsonencode({ spec = { dnsConfig = { options = [{ name = \"ndots\", value = \"2\" }] } } })`.")
}

// nonEmptyText is text that must not be "".
func nonEmptyText(description string) schema.StringAttribute {
	return schema.StringAttribute{MarkdownDescription: description, Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)}}
}

// nameAttribute is the name of another object.
func nameAttribute(description string) schema.StringAttribute {
	return schema.StringAttribute{MarkdownDescription: description, Optional: true, Validators: []validator.String{subdomain{}}}
}

func nodeSelectorAttribute(description string) schema.Attribute {
	return schema.MapAttribute{MarkdownDescription: description, ElementType: types.StringType, Optional: true, Validators: []validator.Map{labels{}}}
}

func tolerationsAttribute(description string) schema.Attribute {
	return schema.ListNestedAttribute{
		MarkdownDescription: description,
		Optional:            true,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"key":                schema.StringAttribute{MarkdownDescription: "The taint's key; if not set, all keys match.", Optional: true},
			"operator":           schema.StringAttribute{MarkdownDescription: "`Exists` or `Equal`.", Optional: true, Validators: []validator.String{stringvalidator.OneOf("Exists", "Equal")}},
			"value":              schema.StringAttribute{MarkdownDescription: "The taint's value, with `Equal`.", Optional: true},
			"effect":             schema.StringAttribute{MarkdownDescription: "`NoSchedule`, `PreferNoSchedule` or `NoExecute`; if not set, all effects match.", Optional: true, Validators: []validator.String{stringvalidator.OneOf("NoSchedule", "PreferNoSchedule", "NoExecute")}},
			"toleration_seconds": schema.Int64Attribute{MarkdownDescription: "Seconds for which a `NoExecute` taint is tolerated.", Optional: true},
		}},
	}
}

// volumeAttributes are the attributes of a volume of any kind of job.
func volumeAttributes(readOnly string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name":       schema.StringAttribute{MarkdownDescription: "Name of the volume in the pod.", Required: true},
		"mount_path": schema.StringAttribute{MarkdownDescription: "Path in the container at which the volume is mounted.", Required: true},
		"claim_name": schema.StringAttribute{MarkdownDescription: "Name of a PersistentVolumeClaim. Exactly one of `claim_name`, `host_path`, `empty_dir` and `config_map` is set.", Optional: true},
		"host_path":  schema.StringAttribute{MarkdownDescription: "Path on the node.", Optional: true},
		"config_map": schema.StringAttribute{MarkdownDescription: "Name of a ConfigMap.", Optional: true},
		"empty_dir": schema.SingleNestedAttribute{
			MarkdownDescription: "An empty directory that lives as long as its pod; `{}` for a directory on the node's disk.",
			Optional:            true,
			Attributes: map[string]schema.Attribute{
				"medium":     schema.StringAttribute{MarkdownDescription: "`Memory` for a RAM-backed volume; if not set, the node's disk.", Optional: true, Validators: []validator.String{stringvalidator.OneOf(string(corev1.StorageMediumMemory))}},
				"size_limit": schema.StringAttribute{MarkdownDescription: "Maximum size of the volume.", CustomType: quantity.Type{}, Optional: true},
			},
		},
		"read_only": schema.BoolAttribute{MarkdownDescription: readOnly, Optional: true},
	}
}

// jsonSyntax refuses text that is no JSON.
type jsonSyntax struct{}

func (jsonSyntax) Description(context.Context) string               { return "JSON" }
func (j jsonSyntax) MarkdownDescription(ctx context.Context) string { return j.Description(ctx) }

func (jsonSyntax) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	var anything any
	if err := json.Unmarshal([]byte(req.ConfigValue.ValueString()), &anything); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid JSON", fmt.Sprintf("%s is not JSON: %s. Write it with jsonencode({ … }).", req.Path, err))
	}
}
