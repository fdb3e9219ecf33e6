package provider

import (
	"context"
	"maps"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/numeric"
)

// waitForAdmitted is the word of wait_for, besides those of a training job, for a task that may start.
const waitForAdmitted = "admitted"

// taskSchema is built once, as each plan requests it many times; it must not be changed.
func taskSchema(context.Context) schema.Schema { return theTaskSchema() }

var theTaskSchema = sync.OnceValue(func() schema.Schema { return newTaskSchema(context.Background()) })

// newTaskSchema does not validate what the task itself validates, so that a mistake is reported once, also for a
// SkyPilot file.
func newTaskSchema(ctx context.Context) schema.Schema {
	name, generateName := nameAttributes("task",
		"Name of the task and of its Kubernetes Job; at most 50 characters, because its pods are named after it. A name in `yaml` has no effect.", taskName{})
	attributes := map[string]schema.Attribute{
		"name":          name,
		"generate_name": generateName,

		// Optional: the file, and the attributes that it can set too. An attribute that the file sets is omitted.
		"yaml": schema.StringAttribute{
			MarkdownDescription: "Text of a SkyPilot task file: `file(\"low.yaml\")`. `resources.labels` may have `kueue.x-k8s.io/queue-name` and `kueue.x-k8s.io/priority-class`. " +
				"What cannot be done is refused, with its line; what the file does not say may be said by attributes.",
			Optional:   true,
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"run":   scriptAttribute("The commands of the task, for a shell; required without `yaml`."),
		"setup": computed(scriptAttribute("Commands that each pod runs once before `run`.")),
		"num_nodes": schema.Int64Attribute{
			MarkdownDescription: "Number of pods, each with all the resources; 1 by default. More than one start together, and when one fails all run again.",
			Optional:            true,
			Computed:            true,
		},
		"env": schema.MapAttribute{
			MarkdownDescription: "Environment of the commands. It is stored in the state in plain text: do not use it for secrets. It is added to that of the file.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"workdir": schema.MapAttribute{
			MarkdownDescription: "Files in the directory in which the commands start, by relative path: `{ \"train.py\" = file(\"train.py\") }`. All together at most 1 MiB.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"image":        computed(nonEmptyText("Image in which the commands run, with a shell; `" + task.DefaultImage + "` by default.")),
		"accelerators": acceleratorsAttribute(),
		"cpus":         nonEmptyText("CPUs of each pod: `\"4\"`, or `\"4+\"` for at least 4; also in Kubernetes' way, `\"500m\"`."),
		"memory":       nonEmptyText("Memory of each pod in GiB: `\"32\"`, or `\"32+\"` for at least 32; also in Kubernetes' way, `\"512Mi\"`."),
		"recovery": schema.SingleNestedAttribute{
			MarkdownDescription: "When a task that failed runs again. A preemption is no failure: after it the task always waits and runs again.",
			Optional:            true,
			Computed:            true,
			Attributes: map[string]schema.Attribute{
				"max_restarts_on_errors": schema.Int64Attribute{
					MarkdownDescription: "How many failures are followed by another run; 0 by default. In place.",
					Optional:            true,
					Validators:          []validator.Int64{int64validator.Between(0, 1<<31-1)},
				},
				"recover_on_exit_codes": schema.ListAttribute{
					MarkdownDescription: "Exit codes that are followed by another run and not counted: 1 to 255, and not 137.",
					ElementType:         types.NumberType,
					Optional:            true,
				},
			},
		},

		// Optional: the queue. In place as far as Kueue allows it.
		"queue": schema.SingleNestedAttribute{
			MarkdownDescription: "Where the task waits for quota under Kueue: it is suspended until it is admitted, and queued again when it was preempted. Without a queue it starts at once.",
			Optional:            true,
			Attributes: map[string]schema.Attribute{
				"name": schema.StringAttribute{
					MarkdownDescription: "LocalQueue in the task's namespace: refer to `elastic_local_queue.NAME.name`. Required unless `yaml` names the queue. It changes in place while the task waits, and replaces it otherwise.",
					Optional:            true,
					Validators:          []validator.String{subdomain{}, stringvalidator.AtLeastOneOf(path.MatchRelative().AtParent().AtName("workload_priority_class"))},
				},
				"workload_priority_class": schema.StringAttribute{
					MarkdownDescription: "WorkloadPriorityClass: refer to `elastic_workload_priority_class.NAME.name`. Changes in place to another class, also while the task runs; it cannot be taken away.",
					Optional:            true,
					Validators:          []validator.String{subdomain{}},
				},
			},
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
			Validators:          []validator.Map{mapvalidator.AlsoRequires(path.MatchRoot("secrets_wo_version"))},
		},
		"secrets_wo_version": schema.Int64Attribute{
			MarkdownDescription: "Version of `secrets_wo`, which Terraform cannot compare. Changing it replaces the task, with the values of that moment.",
			Optional:            true,
			Validators:          []validator.Int64{int64validator.AlsoRequires(path.MatchRoot("secrets_wo"))},
		},

		// Optional: how and where the pods run. Changing any of these replaces the task.
		"accelerator_labels": acceleratorLabelsAttribute(),
		"volumes": schema.ListNestedAttribute{
			MarkdownDescription: "Volumes of every pod.",
			Optional:            true,
			NestedObject:        schema.NestedAttributeObject{Attributes: volumeAttributes("Whether it is mounted read-only; false by default.")},
		},
		"supervisor_image": computed(nonEmptyText("Image of the program that starts the pods of several nodes together; that of this provider's release by default. " +
			"Of no effect with one node.")),
		"priority_class_name":  nameAttribute("PriorityClass of the pods, kube-scheduler's, the cluster's default without it: refer to `elastic_priority_class.NAME.name`."),
		"node_selector":        nodeSelectorAttribute("Labels of the nodes that the pods may run on."),
		"tolerations":          tolerationsAttribute("Taints that the pods tolerate."),
		"service_account_name": nameAttribute("ServiceAccount of the pods. Without it the pods of one node have none, and those of several get one of their own with a Role of what they do."),
		"runtime_class_name":   nameAttribute("RuntimeClass of the pods."),
		"security_context": presentObject(ctx, securityContextAttribute("Without an attribute it is as the image and the cluster have it, with the seccomp profile `RuntimeDefault`. "+
			"A task that is not root (`run_as_non_root = true`, or another `run_as_user` than 0) meets the Pod Security Standard `restricted`: without further attributes it has no privilege escalation, and all capabilities are dropped.")),
		"init_containers": initContainersAttribute("the task's own container"),
		"termination_grace_period_seconds": schema.Int64Attribute{
			MarkdownDescription: "Time between the request to stop (SIGTERM) and the end, when the task is preempted or deleted; 30 by default.",
			Optional:            true,
			Computed:            true,
			Default:             int64default.StaticInt64(trainingjob.DefaultTerminationGracePeriodSeconds),
		},
		"pod_overrides": overridesNothing(podOverridesAttribute()),

		// Optional: in place.
		"active_deadline_seconds": activeDeadlineAttribute("How long the task may take: so many seconds after it has started Kubernetes stops its pods and fails it (`DeadlineExceeded`), whatever `recovery` says. " +
			"Under a queue the time begins when it is admitted, and begins anew when it was preempted and is admitted again: time in the queue does not count. Changes in place."),
		"ttl_seconds_after_finished": schema.Int64Attribute{
			MarkdownDescription: "Removes the task's objects this many seconds after its end; they are kept by default. A task that was removed so stays in the state.",
			Optional:            true,
			Validators:          []validator.Int64{int64validator.Between(0, 1<<31-1)},
		},

		// Computed.
		"logs": schema.StringAttribute{
			MarkdownDescription: "The command that shows what the task prints.",
			Computed:            true,
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		},
	}
	maps.Copy(attributes, jobAttributes(ctx, "task", waitForAdmitted, waitForRunning, waitForSucceeded))
	maps.Copy(attributes, taskObservedAttributes())
	return schema.Schema{
		MarkdownDescription: "A task: commands that run in one pod, or in several together, on the accelerators they ask for. What a SkyPilot task file says, by attributes or by the file itself. " +
			"With a `queue` Kueue admits it, preempts it for more important work, and queues it again by itself, keeping its place by age; nobody has to run Terraform for that, and it is no change in a plan.\n\n" +
			"`labels`, `annotations`, `queue.workload_priority_class`, `recovery.max_restarts_on_errors`, `active_deadline_seconds`, `ttl_seconds_after_finished`, how an apply waits and, while the task waits, `queue` change in place; " +
			"everything else replaces the task.",
		Attributes: numeric.Attributes(absentIsEmpty(attributes)),
	}
}

// taskObservedAttributes are the attributes that the cluster reports for the task. An update that does not wait leaves
// them as they were at the last refresh, so that a plan shows only the user's changes.
func taskObservedAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"phase":       observedText("`Queued`, `Suspended` (its Job was suspended or, in a queue, its Workload was deactivated), `Starting`, `Running`, `Succeeded` or `Failed`."),
		"reason":      observedText("Why it waits or has failed, in a sentence; null while there is nothing to say."),
		"restarts":    observedInteger("Runs that failed and were followed by another one."),
		"preemptions": observedInteger("How often Kueue took its place away and queued it again."),
		"workload":    observedText("Name of Kueue's Workload of the task; null without one."),
	}
}

// computed is an attribute whose value the plan decides if it is omitted; see taskModel.settle.
func computed(text schema.StringAttribute) schema.StringAttribute {
	text.Computed = true
	return text
}

// overridesNothing makes an omitted pod_overrides an empty patch.
func overridesNothing(overrides schema.StringAttribute) schema.StringAttribute {
	overrides.Computed, overrides.Default = true, stringdefault.StaticString("{}")
	return overrides
}

func scriptAttribute(description string) schema.StringAttribute {
	return schema.StringAttribute{MarkdownDescription: description + " Bash, where the image has it, or sh.", Optional: true}
}

func acceleratorsAttribute() schema.Attribute {
	return schema.DynamicAttribute{
		MarkdownDescription: "Accelerators of each pod, as SkyPilot writes them: `\"T4:4\"` for four T4s, `\"H100\"` for one. A list, `[\"H100:8\", \"A100:8\"]`, are alternatives in order of preference; " +
			"a set, `toset([\"H100:8\", \"A100:8\"])`, are alternatives of equal rank. A pod accepts a node by any of the labels that clouds and labellers mark it with.",
		Optional:   true,
		Validators: []validator.Dynamic{acceleratorList{}},
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
