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
		"Name of the task and of its Kubernetes Job; at most 50 characters, because its pods are named after it. A name in `yaml` has no effect.", taskName)
	attributes := map[string]schema.Attribute{
		"name":          name,
		"generate_name": generateName,

		// Optional: the file, and the attributes that it can set too. An attribute that the file sets is omitted.
		"yaml": optionalText("Text of a SkyPilot task file: `file(\"low.yaml\")`. `resources.labels` may contain `kueue.x-k8s.io/queue-name` and `kueue.x-k8s.io/priority-class`. "+
			"A key that is not supported is rejected; the error names the line. Attributes may set values that the file does not contain.",
			stringvalidator.LengthAtLeast(1)),
		"run":   scriptAttribute("The commands of the task, for a shell; required without `yaml`."),
		"setup": computed(scriptAttribute("Commands that each pod runs once, before `run`.")),
		"num_nodes": schema.Int64Attribute{
			MarkdownDescription: "Number of pods; 1 by default. Each pod requests the full `accelerators`, `cpus` and `memory`. Several pods start together; if one fails, all are restarted, or, with `rejoin`, that one.",
			Optional:            true,
			Computed:            true,
		},
		"rejoin": flagOr("Whether the commands of the other nodes continue when the command of a node fails or its pod is lost: the new pod runs the command again, which rejoins them, as `torchrun` does with `--rdzv-backend=c10d`. "+
			"All run again if the first node is lost, or if a command has already succeeded. `SKYPILOT_NODE_IPS` of the commands that continue keeps the old address of the replaced node. False by default: all run again. Only with `num_nodes` greater than 1.",
			false),
		"env":          optionalTextMap("Environment variables of the commands, in addition to those of the file. The value is stored in the state in plain text: do not use it for secrets."),
		"workdir":      optionalTextMap("Files in the working directory of the commands, by relative path: `{ \"train.py\" = file(\"train.py\") }`. The total size may be at most 1 MiB."),
		"image":        computed(nonEmptyText("Container image for the commands; it must contain a shell; `" + task.DefaultImage + "` by default.")),
		"accelerators": acceleratorsAttribute(),
		"cpus":         nonEmptyText("CPUs of each pod: `\"4\"`, or `\"4+\"` for at least 4; or a Kubernetes quantity, `\"500m\"`."),
		"memory":       nonEmptyText("Memory of each pod in GiB: `\"32\"`, or `\"32+\"` for at least 32; or a Kubernetes quantity, `\"512Mi\"`."),
		"recovery": schema.SingleNestedAttribute{
			MarkdownDescription: "When a failed task runs again. A preemption is not a failure: a preempted task is always queued and runs again.",
			Optional:            true,
			Computed:            true,
			Attributes: map[string]schema.Attribute{
				"max_restarts_on_errors": optionalInteger("Number of failures after which the task runs again; 0 by default. Changes in place.",
					int64validator.Between(0, 1<<31-1)),
				"recover_on_exit_codes": schema.ListAttribute{
					MarkdownDescription: "Exit codes after which the task runs again without counting a failure: 1 to 255, except 137.",
					ElementType:         types.NumberType,
					Optional:            true,
				},
			},
		},

		// Optional: the queue. In place as far as Kueue allows it.
		"queue": optionalObject("Where the task waits for quota under Kueue: it is suspended until it is admitted, and queued again when it is preempted. Without a queue the task starts immediately.", map[string]schema.Attribute{
			"name": optionalText("LocalQueue in the task's namespace, such as `elastic_local_queue.NAME.name`. Required unless `yaml` names the queue. It changes in place while the task waits; otherwise a change replaces the task.",
				subdomain, stringvalidator.AtLeastOneOf(path.MatchRelative().AtParent().AtName("workload_priority_class"))),
			"workload_priority_class": optionalText("WorkloadPriorityClass, such as `elastic_workload_priority_class.NAME.name`. Changes in place to another class, also while the task runs; it cannot be removed.",
				subdomain),
		}),

		"topology": topologyAttribute("Where the pods of the task run, relative to each other, by Kueue's topology-aware scheduling.", "pods", "num_nodes"),

		// Optional: secrets.
		"secrets": schema.MapNestedAttribute{
			MarkdownDescription: "Environment variables whose values are in existing Secrets.",
			Optional:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"secret_name": requiredText("Name of the Secret, in the same namespace."),
				"key":         requiredText("Key in the Secret."),
			}},
		},
		"secrets_wo": schema.MapAttribute{
			MarkdownDescription: "Environment variables whose values are only written to a Secret of the task: the state and the plan do not contain them. Needs Terraform 1.11 or later.",
			ElementType:         types.StringType,
			Optional:            true,
			Sensitive:           true,
			WriteOnly:           true,
			Validators:          []validator.Map{mapvalidator.AlsoRequires(path.MatchRoot("secrets_wo_version"))},
		},
		"secrets_wo_version": optionalInteger("Version of `secrets_wo`, because Terraform cannot compare its values. Changing it replaces the task and uses the current values.",
			int64validator.AlsoRequires(path.MatchRoot("secrets_wo"))),

		// Optional: how and where the pods run. Changing any of these replaces the task.
		"accelerator_labels": acceleratorLabelsAttribute(),
		"volumes": optionalObjects("Volumes of every pod.",
			volumeAttributes("Whether the volume is mounted read-only; false by default.")),
		"supervisor_image": computed(nonEmptyText("Image of the supervisor, which starts the commands of several nodes together; by default the image of this provider's release. " +
			"Not used with one node.")),
		"priority_class_name":  nameAttribute("PriorityClass of the pods, which kube-scheduler uses, such as `elastic_priority_class.NAME.name`; the cluster's default if not set."),
		"node_selector":        optionalTextMap("Labels of the nodes that the pods may run on.", labels{}),
		"tolerations":          tolerationsAttribute("Taints that the pods tolerate."),
		"service_account_name": nameAttribute("ServiceAccount of the pods. Without it, a task with one node has no account; for a task with several nodes the provider creates an account and a Role with the permissions that it needs."),
		"runtime_class_name":   nameAttribute("RuntimeClass of the pods."),
		"security_context": presentObject(ctx, securityContextAttribute("Attributes that are not set have the defaults of the image and the cluster; the default seccomp profile is `RuntimeDefault`. "+
			"A task that does not run as root (`run_as_non_root = true`, or `run_as_user` other than 0) meets the Pod Security Standard `restricted`: by default, privilege escalation is not allowed and all capabilities are dropped.")),
		"init_containers": initContainersAttribute("the task's own container"),
		"termination_grace_period_seconds": integerOr("Seconds between SIGTERM and SIGKILL when the task is preempted or deleted; 30 by default. A command that handles SIGTERM must exit with a code other than 0, "+
			"such as 143: Kubernetes counts a pod that exits with 0 as completed, and does not start it again.",
			trainingjob.DefaultTerminationGracePeriodSeconds),
		"pod_overrides": overridesNothing(podOverridesAttribute()),

		// Optional: in place.
		"active_deadline_seconds": activeDeadlineAttribute("Time limit of the task: after this number of seconds since its start, Kubernetes stops its pods and fails the task (`DeadlineExceeded`), regardless of `recovery`. " +
			"Under a queue the time starts when the task is admitted, and starts again when the task is admitted after a preemption: time in the queue does not count. Changes in place."),
		"ttl_seconds_after_finished": optionalInteger("Seconds after the end of the task at which its objects are removed; they are kept by default. The task then remains in the state.",
			int64validator.Between(0, 1<<31-1)),

		// Computed.
		"logs": schema.StringAttribute{
			MarkdownDescription: "Command that shows the task's log.",
			Computed:            true,
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		},
	}
	maps.Copy(attributes, jobAttributes(ctx, "task", waitForAdmitted, waitForRunning, waitForSucceeded))
	maps.Copy(attributes, taskObservedAttributes())
	return schema.Schema{
		MarkdownDescription: "A task: commands that run in one pod, or in several pods together, with accelerators. It is described by a SkyPilot task file, or by attributes. " +
			"With a `queue`, Kueue admits the task, preempts it for workloads of higher priority, and queues it again. This needs no Terraform run, and plans show no changes.\n\n" +
			"`labels`, `annotations`, `queue.workload_priority_class`, `recovery.max_restarts_on_errors`, `active_deadline_seconds`, `ttl_seconds_after_finished`, the attributes that control the wait of an apply and, while the task waits, `queue` change in place; " +
			"everything else replaces the task.",
		Attributes: numeric.Attributes(absentIsEmpty(attributes)),
	}
}

// taskObservedAttributes are the attributes that the cluster reports for the task. An update that does not wait leaves
// them as they were at the last refresh, so that a plan shows only the user's changes.
func taskObservedAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"phase":       observedText("`Queued`, `Suspended` (the Job was suspended or, in a queue, the Workload was deactivated), `Starting`, `Running`, `Succeeded` or `Failed`."),
		"reason":      observedText("Reason why the task waits or has failed; null if there is none."),
		"restarts":    observedInteger("Number of failed runs after which the task ran again."),
		"preemptions": observedInteger("Number of times that Kueue evicted the task and queued it again."),
		"workload":    observedText("Name of the task's Workload in Kueue; null if there is none."),
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
	return optionalText(description + " They run with bash if the image contains it, otherwise with sh.")
}

func acceleratorsAttribute() schema.Attribute {
	return schema.DynamicAttribute{
		MarkdownDescription: "Accelerators of each pod, in SkyPilot's notation: `\"T4:4\"` for four T4s, `\"H100\"` for one H100. A list, `[\"H100:8\", \"A100:8\"]`, contains alternatives in order of preference; " +
			"a set, `toset([\"H100:8\", \"A100:8\"])`, contains alternatives of equal rank. A pod accepts a node with any of the labels that clouds and GPU feature discovery use.",
		Optional:   true,
		Validators: []validator.Dynamic{acceleratorList{}},
	}
}

func acceleratorLabelsAttribute() schema.Attribute {
	return schema.MapNestedAttribute{
		MarkdownDescription: "Additional accelerators, or additional labels of known accelerators, by name; they extend the provider's table.",
		Optional:            true,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"resource": optionalText("Resource that a pod requests; `nvidia.com/gpu` by default."),
			"labels": schema.MapAttribute{
				MarkdownDescription: "Label values by label key; a node with any of them has the accelerator.",
				ElementType:         types.ListType{ElemType: types.StringType},
				Optional:            true,
			},
			"topologies": optionalTextMap("For a TPU: the value of `cloud.google.com/gke-tpu-topology` by number of chips, `{ \"8\" = \"2x4\" }`."),
		}},
	}
}
