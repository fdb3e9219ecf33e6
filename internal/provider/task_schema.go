package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/task"
)

// waitForAdmitted is the word of wait_for, besides those of a training job, for a task that may start.
const waitForAdmitted = "admitted"

// taskSchema leaves to the task what the task refuses itself, so that a mistake is told once, and in the file's case too.
func taskSchema(ctx context.Context) schema.Schema {
	attributes := map[string]schema.Attribute{
		// Required.
		"name": schema.StringAttribute{
			MarkdownDescription: "Name of the task and of its Kubernetes Job; at most 50 characters, because its pods are named after it. A name in `yaml` has no effect. Changing it replaces the task.",
			Required:            true,
		},

		// Optional: the file, and what it may say as well. What the file says is not said by an attribute again.
		"yaml": schema.StringAttribute{
			MarkdownDescription: "Text of a SkyPilot task file: `file(\"low.yaml\")`. `resources.labels` may have `kueue.x-k8s.io/queue-name` and `kueue.x-k8s.io/priority-class`. " +
				"What cannot be done is refused, with its line; what the file does not say may be said by attributes.",
			Optional:   true,
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"run":   scriptAttribute("The commands of the task, for a shell; required without `yaml`."),
		"setup": scriptAttribute("Commands that each pod runs once before `run`."),
		"num_nodes": schema.Int64Attribute{
			MarkdownDescription: "Number of pods, each with all the resources; 1 by default. More than one start together, and when one fails all run again.",
			Optional:            true,
		},
		"envs": schema.MapAttribute{
			MarkdownDescription: "Environment of the commands. It stands in the state as it is: no place for secrets. It is added to that of the file.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"workdir": schema.MapAttribute{
			MarkdownDescription: "Files in the directory in which the commands start, by relative path: `{ \"train.py\" = file(\"train.py\") }`. All together at most 1 MiB.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"image":        imageAttribute("Image in which the commands run, with a shell; `" + task.DefaultImage + "` by default."),
		"accelerators": acceleratorsAttribute(),
		"cpus":         amountAttribute("CPUs of each pod: `\"4\"`, or `\"4+\"` for at least 4; also in Kubernetes' way, `\"500m\"`."),
		"memory":       amountAttribute("Memory of each pod in GiB: `\"32\"`, or `\"32+\"` for at least 32; also in Kubernetes' way, `\"512Mi\"`."),
		"recovery": schema.SingleNestedAttribute{
			MarkdownDescription: "When a task that failed runs again. A preemption is no failure: after it the task always waits and runs again.",
			Optional:            true,
			Attributes: map[string]schema.Attribute{
				"max_restarts_on_errors": schema.Int64Attribute{
					MarkdownDescription: "How many failures are followed by another run; 0 by default. In place.",
					Optional:            true,
					Validators:          []validator.Int64{int64validator.Between(0, 1<<31-1)},
				},
				"recover_on_exit_codes": schema.ListAttribute{
					MarkdownDescription: "Exit codes that are followed by another run and not counted: 1 to 255, and not 137.",
					ElementType:         types.Int64Type,
					Optional:            true,
				},
			},
		},

		// Optional: the queue. In place as far as Kueue allows it.
		"queue": schema.StringAttribute{
			MarkdownDescription: "Kueue's LocalQueue, in the same namespace: refer to `elastic_local_queue.NAME.name`. The task is suspended until it is admitted, and queued again when it was preempted. " +
				"Without a queue it starts at once. It changes in place while the task waits, and replaces it otherwise.",
			Optional: true,
		},
		"priority_class": schema.StringAttribute{
			MarkdownDescription: "Kueue's WorkloadPriorityClass: refer to `elastic_workload_priority_class.NAME.name`. Changes in place to another class, also while the task runs; it cannot be taken away.",
			Optional:            true,
		},

		// Optional: secrets.
		"secrets": schema.MapNestedAttribute{
			MarkdownDescription: "Environment variables whose values are in Secrets that exist already.",
			Optional:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"secret_name": schema.StringAttribute{MarkdownDescription: "Name of the Secret, in the same namespace.", Required: true},
				"key":         schema.StringAttribute{MarkdownDescription: "Key in the Secret.", Required: true},
			}},
		},
		"secrets_wo": schema.MapAttribute{
			MarkdownDescription: "Environment variables whose values are written to a Secret of the task, and to nothing else: neither state nor plan have them. Terraform 1.11 or later.",
			ElementType:         types.StringType,
			Optional:            true,
			Sensitive:           true,
			WriteOnly:           true,
			Validators:          []validator.Map{mapvalidator.SizeAtLeast(1), mapvalidator.AlsoRequires(path.MatchRoot("secrets_wo_version"))},
		},
		"secrets_wo_version": schema.Int64Attribute{
			MarkdownDescription: "Version of `secrets_wo`, which Terraform cannot compare. Changing it replaces the task, with the values of that moment.",
			Optional:            true,
			Validators:          []validator.Int64{int64validator.AlsoRequires(path.MatchRoot("secrets_wo"))},
		},

		// Optional: how and where the pods run. Changing any of these replaces the task.
		"namespace": schema.StringAttribute{
			MarkdownDescription: "Namespace of all of the task's objects. `default` by default.",
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(corev1.NamespaceDefault),
			Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"accelerator_labels": acceleratorLabelsAttribute(),
		"volumes": schema.ListNestedAttribute{
			MarkdownDescription: "Volumes of every pod.",
			Optional:            true,
			NestedObject:        schema.NestedAttributeObject{Attributes: volumeAttributes("Whether it is mounted read-only; false by default.")},
		},
		"image_pull_policy": schema.StringAttribute{
			MarkdownDescription: "`Always`, `IfNotPresent` or `Never`. Kubernetes' own default depends on the image's tag.",
			Optional:            true,
			Validators:          []validator.String{stringvalidator.OneOf(string(corev1.PullAlways), string(corev1.PullIfNotPresent), string(corev1.PullNever))},
		},
		"image_pull_secrets": schema.ListAttribute{
			MarkdownDescription: "Names of Secrets with credentials for the image's registry.",
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.List{listvalidator.ValueStringsAre(subdomain{})},
		},
		"trainer_image": imageAttribute("Image of the program that starts the pods of several nodes together; that of this provider's release by default. Of no effect with one node."),
		"priority_class_name": schema.StringAttribute{
			MarkdownDescription: "PriorityClass of the pods, kube-scheduler's: refer to `elastic_priority_class.NAME.name`.",
			Optional:            true,
			Validators:          []validator.String{subdomain{}},
		},
		"node_selector": schema.MapAttribute{
			MarkdownDescription: "Labels of the nodes that the pods may run on.",
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.Map{labels{}},
		},
		"tolerations": tolerationsAttribute("Taints that the pods tolerate."),
		"service_account_name": schema.StringAttribute{
			MarkdownDescription: "ServiceAccount of the pods. Without it the pods of one node have none, and those of several get one of their own with a Role of what they do.",
			Optional:            true,
			Validators:          []validator.String{subdomain{}},
		},
		"runtime_class_name": schema.StringAttribute{
			MarkdownDescription: "RuntimeClass of the pods.",
			Optional:            true,
			Validators:          []validator.String{subdomain{}},
		},
		"termination_grace_period_seconds": schema.Int64Attribute{
			MarkdownDescription: "Time between the request to stop (SIGTERM) and the end, when the task is preempted or deleted; 30 by default.",
			Optional:            true,
		},
		"pod_overrides": schema.StringAttribute{
			MarkdownDescription: "Strategic-merge patch of the pod template, applied last, for what has no attribute: `jsonencode({ spec = { dnsPolicy = \"None\" } })`.",
			CustomType:          jsontypes.NormalizedType{},
			Optional:            true,
			PlanModifiers:       []planmodifier.String{keepEqualJSON{}},
		},

		// Optional: in place.
		"labels":      labelsAttribute(),
		"annotations": annotationsAttribute(),
		"ttl_seconds_after_finished": schema.Int64Attribute{
			MarkdownDescription: "Removes the task's objects so long after its end; they are kept by default. A task that was removed so stays in the state.",
			Optional:            true,
			Validators:          []validator.Int64{int64validator.Between(0, 1<<31-1)},
		},
		"wait_for": schema.StringAttribute{
			MarkdownDescription: "What an apply waits for: `created` (default), `admitted`, `running` or `succeeded`. A wait that ends by timeout or Ctrl-C is a warning: the task goes on.",
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(waitForCreated),
			Validators:          []validator.String{stringvalidator.OneOf(waitForCreated, waitForAdmitted, waitForRunning, waitForSucceeded)},
		},
		"fail_on_error": schema.BoolAttribute{
			MarkdownDescription: "Whether a run that fails while an apply waits for it is an error instead of a warning. " +
				"An error when the task is created taints it: the next apply deletes it and begins anew. False by default.",
			Optional: true,
			Computed: true,
			Default:  booldefault.StaticBool(false),
		},
		"on_finished": schema.StringAttribute{
			MarkdownDescription: "What to plan for a task that has succeeded or failed: `keep` it (default), also when a TTL has removed its objects, or `recreate` it.",
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(onFinishedKeep),
			Validators:          []validator.String{stringvalidator.OneOf(onFinishedKeep, onFinishedRecreate)},
		},
		"timeouts": timeouts.Attributes(ctx, timeouts.Opts{Create: true, Update: true, Delete: true}),

		// Computed.
		"uid": uidAttribute(),
	}
	for name, attribute := range taskObservedAttributes() {
		attributes[name] = attribute
	}
	return schema.Schema{
		MarkdownDescription: "A task: commands that run in one pod, or in several together, on the accelerators they ask for. What a SkyPilot task file says, by attributes or by the file itself. " +
			"With a `queue` Kueue admits it, preempts it for more important work, and queues it again by itself, keeping its place by age; nobody has to run Terraform for that, and it is no change in a plan.\n\n" +
			"`labels`, `annotations`, `priority_class`, `recovery.max_restarts_on_errors`, `ttl_seconds_after_finished`, how an apply waits and, while the task waits, `queue` change in place; " +
			"everything else replaces the task.",
		Attributes: attributes,
	}
}

// taskObservedAttributes are what the cluster says of the task. An update that does not wait leaves them as they were at
// the last refresh, so that a plan shows only what the user changes.
func taskObservedAttributes() map[string]schema.Attribute {
	integer := func(description string) schema.Attribute {
		return schema.Int64Attribute{
			MarkdownDescription: description + " As of the last refresh.", Computed: true,
			PlanModifiers: []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
		}
	}
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{
			MarkdownDescription: description, Computed: true,
			PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		}
	}
	return map[string]schema.Attribute{
		"phase":       text("`Queued`, `Starting`, `Running`, `Succeeded` or `Failed`. As of the last refresh."),
		"reason":      text("Why it waits or has failed, in a sentence; null while there is nothing to say. As of the last refresh."),
		"restarts":    integer("Runs that failed and were followed by another one."),
		"preemptions": integer("How often Kueue took its place away and queued it again."),
		"workload":    text("Name of Kueue's Workload of the task; null without one. As of the last refresh."),
		"logs":        text("The command that shows what the task prints."),
	}
}

func scriptAttribute(description string) schema.Attribute {
	return schema.StringAttribute{MarkdownDescription: description + " Bash, where the image has it, or sh.", Optional: true}
}

func imageAttribute(description string) schema.Attribute {
	return schema.StringAttribute{MarkdownDescription: description, Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)}}
}

func amountAttribute(description string) schema.Attribute {
	return schema.StringAttribute{MarkdownDescription: description, Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)}}
}

func acceleratorsAttribute() schema.Attribute {
	return schema.DynamicAttribute{
		MarkdownDescription: "Accelerators of each pod, as SkyPilot writes them: `\"T4:4\"` for four T4s, `\"H100\"` for one. A list, `[\"H100:8\", \"A100:8\"]`, are alternatives in order of preference; " +
			"a set, `toset([\"H100:8\", \"A100:8\"])`, are alternatives of equal rank. A pod accepts a node by any of the labels that clouds and labellers mark it with.",
		Optional:      true,
		Validators:    []validator.Dynamic{acceleratorList{}},
		PlanModifiers: []planmodifier.Dynamic{keepEqualAccelerators{}},
	}
}

func acceleratorLabelsAttribute() schema.Attribute {
	return schema.MapNestedAttribute{
		MarkdownDescription: "More accelerators, or more labels of known ones, by name: what `accelerators` may say besides the provider's own table.",
		Optional:            true,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"resource": schema.StringAttribute{MarkdownDescription: "What a pod requests; `nvidia.com/gpu` by default.", Optional: true},
			"labels": schema.MapAttribute{
				MarkdownDescription: "Values by label key, any of which marks a node that has it.",
				ElementType:         types.ListType{ElemType: types.StringType},
				Optional:            true,
			},
			"topologies": schema.MapAttribute{
				MarkdownDescription: "Of a TPU: the value of `cloud.google.com/gke-tpu-topology` by number of chips, `{ \"8\" = \"2x4\" }`.",
				ElementType:         types.StringType,
				Optional:            true,
			},
		}},
	}
}
