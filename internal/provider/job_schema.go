package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
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
		"namespace": textOr(fmt.Sprintf("Namespace of the %[1]s's objects. `default` by default. Changing it replaces the %[1]s.", word),
			corev1.NamespaceDefault, stringvalidator.LengthAtLeast(1)),
		"image_pull_policy": schema.StringAttribute{
			MarkdownDescription: "`Always`, `IfNotPresent` or `Never`; by default, as in Kubernetes, `Always` for an image with the tag `latest` or none, and `IfNotPresent` for others. " +
				"Changing it replaces the " + word + ".",
			Optional:   true,
			Computed:   true,
			Validators: []validator.String{stringvalidator.OneOf(string(corev1.PullAlways), string(corev1.PullIfNotPresent), string(corev1.PullNever))},
		},
		"image_pull_secrets": optionalTexts("Names of Secrets, in the same namespace, with credentials for the image's registry. Changing them replaces the "+word+".",
			listvalidator.ValueStringsAre(subdomain)),

		// In place.
		"labels":      labelsAttribute(),
		"annotations": annotationsAttribute(),
		"wait_for": textOr(fmt.Sprintf("What an apply waits for: `created` (default), `%s` or `%s`. If the wait times out or is interrupted by Ctrl-C, apply reports a warning and the %s continues. With `created`, apply checks for up to two seconds whether the pods can start, and warns if they cannot. Later plans warn too.",
			strings.Join(goals[:last], "`, `"), goals[last], word),
			waitForCreated, stringvalidator.OneOf(append([]string{waitForCreated}, goals...)...)),
		"fail_on_error": flagOr("Whether apply reports an error, instead of a warning, if the run fails while apply waits for it. "+
			"An error during creation taints the resource: the next apply replaces the "+word+". False by default.",
			false),
		"on_finished": textOr("What to plan for a "+word+" that has succeeded or failed: `keep` it (default), also when a TTL has removed its objects, or `recreate` it.",
			onFinishedKeep, stringvalidator.OneOf(onFinishedKeep, onFinishedRecreate)),
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
	return optionalText(description, jsonSyntax)
}

func podOverridesAttribute() schema.StringAttribute {
	return jsonAttribute("Strategic-merge patch of the pod template, applied last, for fields without an attribute here: `jsonencode({ spec = { dnsConfig = { options = [{ name = \"ndots\", value = \"2\" }] } } })`.")
}

func tolerationsAttribute(description string) schema.Attribute {
	return optionalObjects(description, map[string]schema.Attribute{
		"key":      optionalText("The taint's key; if not set, all keys match."),
		"operator": optionalText("`Exists` or `Equal`.", stringvalidator.OneOf("Exists", "Equal")),
		"value":    optionalText("The taint's value, with `Equal`."),
		"effect": optionalText("`NoSchedule`, `PreferNoSchedule` or `NoExecute`; if not set, all effects match.",
			stringvalidator.OneOf("NoSchedule", "PreferNoSchedule", "NoExecute")),
		"toleration_seconds": optionalInteger("Seconds for which a `NoExecute` taint is tolerated."),
	})
}

// volumeAttributes are the attributes of a volume of any kind of job.
func volumeAttributes(readOnly string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name":       requiredText("Name of the volume in the pod."),
		"mount_path": requiredText("Path in the container at which the volume is mounted."),
		"claim_name": optionalText("Name of a PersistentVolumeClaim. Exactly one of `claim_name`, `host_path`, `empty_dir` and `config_map` is set."),
		"host_path":  optionalText("Path on the node."),
		"config_map": optionalText("Name of a ConfigMap."),
		"empty_dir": optionalObject("An empty directory that lives as long as its pod; `{}` for a directory on the node's disk.", map[string]schema.Attribute{
			"medium": optionalText("`Memory` for a RAM-backed volume; if not set, the node's disk.",
				stringvalidator.OneOf(string(corev1.StorageMediumMemory))),
			"size_limit": schema.StringAttribute{MarkdownDescription: "Maximum size of the volume.", CustomType: quantity.Type{}, Optional: true},
		}),
		"read_only": optionalFlag(readOnly),
	}
}

// jsonSyntax refuses text that is no JSON.
var jsonSyntax = textRule{"JSON", func(at path.Path, text string) (title, detail string) {
	var anything any
	if err := json.Unmarshal([]byte(text), &anything); err != nil {
		return "Invalid JSON", fmt.Sprintf("%s is not JSON: %s. Write it with jsonencode({ … }).", at, err)
	}
	return "", ""
}}
