package provider

import (
	"context"
	"maps"
	"math"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/float64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/zoo"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider/numeric"
)

// trainingJobSchema is built once, as each plan requests it many times; it must not be changed.
func trainingJobSchema(context.Context) schema.Schema { return theTrainingJobSchema() }

var theTrainingJobSchema = sync.OnceValue(func() schema.Schema { return newTrainingJobSchema(context.Background()) })

func newTrainingJobSchema(ctx context.Context) schema.Schema {
	name, generateName := nameAttributes("job",
		"Name of the job and of its Kubernetes Job; at most 50 characters, because the workers' pods are named after it.", trainingJobName{})
	attributes := map[string]schema.Attribute{
		// Required.
		"image": schema.StringAttribute{
			MarkdownDescription: "The trainer's image, of the master and of the workers. Changing it replaces the job.",
			Required:            true,
			Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"model":    trainingJobModelAttribute(),
		"data":     trainingJobDataAttribute(),
		"training": trainingJobTrainingAttribute(),
		"workers":  trainingJobWorkersAttribute(),

		// Optional: what runs, and where. Changing any of these replaces the job.
		"name":          name,
		"generate_name": generateName,
		"master": presentObject(ctx, schema.SingleNestedAttribute{
			MarkdownDescription: "The master's pod. Its priority should be higher than the workers': without its master the job stops. Changing it replaces the job.",
			Attributes:          podAttributes("100m", "1024Mi"),
		}),
		"output": schema.StringAttribute{
			MarkdownDescription: "Directory for the final model and the checkpoints, in a volume that the master mounts; a run writes below `OUTPUT/<digest>/`. " +
				"Without it a model of at most 900 KiB is kept in ConfigMap `NAME-model`, and before it the newest checkpoint. Changing it replaces the job.",
			Optional:   true,
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"checkpoint": presentObject(ctx, trainingJobCheckpointAttribute()),
		"evaluation": trainingJobEvaluationAttribute(),
		"volumes":    trainingJobVolumesAttribute(),
		"queue":      trainingJobQueueAttribute(),
		"active_deadline_seconds": activeDeadlineAttribute("Seconds after creation, or after the last resume, at which Kubernetes fails the job (`DeadlineExceeded`). " +
			"Time spent waiting for capacity or in a queue counts; time spent suspended does not. " +
			"The master writes a checkpoint before it ends, and the workers leave within two minutes. Changes in place."),
		"service_account_name": nameAttribute("ServiceAccount of the master. Without it the job gets one of its own, with a Role that allows only what the master does; " +
			"the account that applies this needs the same permissions. If it is set, no RBAC object is created. Changing it replaces the job."),
	}
	maps.Copy(attributes, jobAttributes(ctx, "job", waitForRunning, waitForSucceeded))
	maps.Copy(attributes, observedAttributes())
	return schema.Schema{
		MarkdownDescription: "An elastic training job: a master, and between `workers.min` and `workers.max` workers that may be taken away at any time. " +
			"The model it ends with does not depend on how many workers there were, or when.\n\n" +
			"`workers`, `active_deadline_seconds`, `labels`, `annotations` and how an apply waits change in place; everything else replaces the job, and the plan says what is lost.\n\n" +
			"A running job has a live page and Prometheus metrics: `kubectl port-forward job/NAME 8080`, then http://localhost:8080/ and http://localhost:8080/metrics. " +
			"The page stays as `report.html` in the output directory.",
		Attributes: numeric.Attributes(absentIsEmpty(attributes)),
	}
}

// observedAttributes are the attributes that the master reports. An update that does not wait leaves them as they were
// at the last refresh, so that a plan shows only the user's changes.
func observedAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"phase": observedText("`Pending`, `Queued` (its queue has not admitted it), `Suspended` (its Job was suspended or, in a queue, " +
			"its Workload was deactivated), `Waiting` (fewer workers than the minimum), `Running`, `Evaluating`, " +
			"`CannotSave` (the model cannot be written; the master retries), `Succeeded` or `Failed`."),
		"steps_done":      observedInteger("Model updates done."),
		"steps_total":     observedInteger("Model updates of the whole run."),
		"workers_running": observedInteger("Workers that are connected and up to date."),
		"workers_pending": observedInteger("Workers that wait to be scheduled or started."),
		"preemptions":     observedInteger("Number of preempted workers."),
		"model_sha256":    observedText("SHA-256 of the final model, in hexadecimal."),
		"loss": schema.Float64Attribute{
			MarkdownDescription: "Loss of the last step; at the end that of the validation data where there is any. As of the last refresh.", Computed: true,
			PlanModifiers: []planmodifier.Float64{float64planmodifier.UseStateForUnknown()},
		},
		"metrics": schema.MapAttribute{
			MarkdownDescription: "The model's metrics on the validation data. As of the last refresh.", Computed: true,
			ElementType:   types.Float64Type,
			PlanModifiers: []planmodifier.Map{mapplanmodifier.UseStateForUnknown()},
		},
		"output_files": schema.ListAttribute{
			MarkdownDescription: "Files that the run has written. As of the last refresh.", Computed: true,
			ElementType:   types.StringType,
			PlanModifiers: []planmodifier.List{listplanmodifier.UseStateForUnknown()},
		},
	}
}

func trainingJobModelAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "The model: a model file, or a built-in model. Changing it replaces the job.",
		Required:            true,
		Attributes: map[string]schema.Attribute{
			"content": nonEmptyText("Text of an ElasticDL model file: `file(\"${path.module}/mnist_functional_api.py\")`."),
			"name": nonEmptyText("A built-in model, instead of `content`: `" + strings.Join(zoo.Names(), "`, `") + "`. " +
				"`elastic-trainer model NAME` shows its layers and what its records hold, and with `--source` its file."),
		},
	}
}

func trainingJobDataAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "The data sets. Changing it replaces the job.",
		Required:            true,
		Attributes: map[string]schema.Attribute{
			"training": schema.StringAttribute{
				MarkdownDescription: "A directory or file, in the image or in a volume; `s3://BUCKET/PREFIX` or `gs://BUCKET/PREFIX`, " +
					"with a trainer image that was built with `make image TAGS=objectstores`, " +
					"which makes it 1.5 MB larger; `synthetic://digits?records=10000&seed=1` (`shapes` is a set of coloured images, " +
					"`frappe` and `census` are those of the tabular models); or, with `workers.command`, `indices://NAME?records=60000`: the numbers of a data set that the script has itself. " +
					"Master and workers find the credentials of a store as the cloud's own tools do: by the identity of their ServiceAccounts (EKS's roles, " +
					"GKE's workload identity; the master's is the job's own or `service_account_name`, the workers' the namespace's `default`), or from a Secret, " +
					"which `pod_overrides` gives to the `workers`, and with the name `master` to the `master`, without a value in the state: " +
					"`jsonencode({ spec = { containers = [{ name = \"worker\", envFrom = [{ secretRef = { name = \"s3\" } }] }] } })`. " +
					"The Secret has `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`; a store that speaks S3 and is not Amazon's is named by `AWS_ENDPOINT_URL` in `env`.",
				Required: true,
			},
			"validation": schema.StringAttribute{
				MarkdownDescription: "Validation data, in the same form as `training`; the model is evaluated on them at the end.",
				Optional:            true,
			},
			"format": schema.StringAttribute{
				MarkdownDescription: "How the files are stored: " + dataset.FormatsMarkdown() + ".",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
				Computed:            true,
				Default:             stringdefault.StaticString(dataset.DefaultFormat),
			},
			"codec": schema.StringAttribute{
				MarkdownDescription: "How a record is encoded: `bytes` (default) or `tf_example`. Of no effect on `csv`, whose rows are read by the names of their columns, and on `idx`.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
				Computed:            true,
				Default:             stringdefault.StaticString(dataset.BytesCodec),
			},
			"csv": schema.SingleNestedAttribute{
				MarkdownDescription: "Columns of CSV files, where the header row is not enough. A feature of the model is the column of its name, and one of several elements the columns `NAME_0`, `NAME_1`, …",
				Optional:            true,
				Attributes: map[string]schema.Attribute{
					"columns": schema.MapAttribute{
						MarkdownDescription: "Columns of features whose names differ, one for each element of a feature: `{ label = [\"species\"] }`.",
						Optional:            true,
						ElementType:         types.ListType{ElemType: types.StringType},
					},
					"vocabularies": schema.MapAttribute{
						MarkdownDescription: "Categories of text columns, in index order from 0: `{ species = [\"setosa\", \"versicolor\", \"virginica\"] }`.",
						Optional:            true,
						ElementType:         types.ListType{ElemType: types.StringType},
					},
				},
			},
			"records_per_task": schema.Int64Attribute{
				MarkdownDescription: "Records that are shuffled and assigned together; best a multiple of `minibatch_size`.",
				Required:            true,
				Validators:          []validator.Int64{int64validator.Between(1, trainingjob.MaxRecordsPerTask)},
			},
		},
	}
}

func trainingJobTrainingAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Hyperparameters of the run. Changing them replaces the job.",
		Required:            true,
		Attributes: map[string]schema.Attribute{
			"minibatch_size": schema.Int64Attribute{
				MarkdownDescription: "Records per gradient.",
				Required:            true,
				Validators:          []validator.Int64{int64validator.Between(1, trainingjob.MaxMinibatchSize)},
			},
			"epochs": schema.Int64Attribute{
				MarkdownDescription: "Passes over the data; 1 by default.",
				Optional:            true,
				Computed:            true,
				Default:             int64default.StaticInt64(1),
				Validators:          []validator.Int64{int64validator.Between(1, trainingjob.MaxEpochs)},
			},
			"grads_to_wait": schema.Int64Attribute{
				MarkdownDescription: "Virtual workers: gradients that are averaged for one step, whatever the number of running workers; 1 by default.",
				Optional:            true,
				Computed:            true,
				Default:             int64default.StaticInt64(trainingjob.DefaultGradsToWait),
				Validators:          []validator.Int64{int64validator.Between(1, trainingjob.MaxGradsToWait)},
			},
			"seed": schema.Int64Attribute{
				MarkdownDescription: "Random seed of initial weights, order of records and dropout; 1 by default.",
				Optional:            true,
				Computed:            true,
				Default:             int64default.StaticInt64(1),
				Validators:          []validator.Int64{int64validator.AtLeast(0)},
			},
			"learning_rate": schema.Float64Attribute{
				MarkdownDescription: "Learning rate in place of the model file's.",
				Optional:            true,
			},
			"aggregation": schema.StringAttribute{
				MarkdownDescription: "Where the gradients of a step are added: at the `master` (the default), by `allreduce` between the workers, " +
					"each of which finishes a slice of the sum, or where it takes less time (`auto`: by the model's size and the number of workers). " +
					"The model is the same, bit for bit. Between the workers, they connect to each other on ports of their own choice: a NetworkPolicy must let a job's workers reach each other.",
				Optional:   true,
				Validators: []validator.String{stringvalidator.OneOf(trainingjob.Aggregations...)},
			},
		},
	}
}

func trainingJobWorkersAttribute() schema.Attribute {
	attributes := podAttributes("1000m", "4096Mi")
	attributes["max"] = schema.Int64Attribute{
		MarkdownDescription: "Maximum number of workers; the job grows to it when there is capacity.",
		Required:            true,
		Validators:          []validator.Int64{int64validator.Between(1, trainingjob.MaxWorkers)},
	}
	attributes["min"] = schema.Int64Attribute{
		MarkdownDescription: "Minimum number of workers; with fewer the job waits; 1 by default.",
		Optional:            true,
		Computed:            true,
		Default:             int64default.StaticInt64(1),
		Validators:          []validator.Int64{int64validator.Between(1, trainingjob.MaxWorkers)},
	}
	attributes["min_priority_class_name"] = nameAttribute("Priority class of the first `min` workers; should be above `priority_class_name`.")
	attributes["command"] = schema.ListAttribute{
		MarkdownDescription: "Train with a framework such as PyTorch: `model.content` is a script, and this command runs it, with the script's path as its last argument: `[\"python3\"]`. " +
			"`image` must hold the command, the framework and `elastic-trainer` as its entrypoint; the master's pod runs the same in a container of its own, `script`, " +
			"without the master's credentials. The job has the same schedule, membership and restarts, and the bits that the framework promises. " +
			"The root file system is read-only; `TMPDIR` and `HOME` name a directory that can be written to. See the guide *Elastic PyTorch*. Changing it replaces the job.",
		ElementType: types.StringType,
		Optional:    true,
		Validators:  []validator.List{listvalidator.SizeAtLeast(1), listvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1))},
	}
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Number of workers, and their pods. Changes in place: existing pods keep their settings, new pods get the new ones.",
		Required:            true,
		Attributes:          attributes,
	}
}

func trainingJobQueueAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Where the job waits for quota under Kueue. " +
			"The master and the first `workers.min` workers are admitted, and evicted, together; every worker above them is queued by itself, " +
			"so that the queue takes workers one by one and the job shrinks instead of being evicted. " +
			"When the queue evicts master and minimum workers, the other workers leave too, and the job continues when it is admitted again. " +
			"Under a queue the name has at most 48 characters, and a change of `workers.min` or `workers.min_priority_class_name` replaces the job; the minimum keeps the pods' settings that the job was made with. Changing it replaces the job.",
		Optional: true,
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				MarkdownDescription: "LocalQueue in the job's namespace: refer to `elastic_local_queue.NAME.name`. " +
					"Not `default`, and not in a namespace with a LocalQueue of that name: Kueue would queue the job's Jobs there, and not its pods.",
				Required:   true,
				Validators: []validator.String{subdomain{}},
			},
			"workload_priority_class": nameAttribute("WorkloadPriorityClass of the workers above the minimum: refer to `elastic_workload_priority_class.NAME.name`. " +
				"Without it the pods' own priority counts."),
			"min_workload_priority_class": nameAttribute("WorkloadPriorityClass of the master and the first `workers.min` workers; `workload_priority_class` by default. " +
				"It should be above that, or Kueue may evict the minimum where it could take a worker above it."),
		},
	}
}

func trainingJobEvaluationAttribute() schema.Attribute {
	between := func(description, other string) schema.Int64Attribute {
		return schema.Int64Attribute{
			MarkdownDescription: description,
			Optional:            true,
			Validators: []validator.Int64{
				int64validator.AtLeast(1), int64validator.AtLeastOneOf(path.MatchRelative().AtParent().AtName(other)),
			},
		}
	}
	return schema.SingleNestedAttribute{
		MarkdownDescription: "When the validation data are evaluated, in addition to after the last step: every N steps, every N epochs, or both. " +
			"Training pauses meanwhile, and the workers share the data. The model does not depend on it. " +
			"Each result is an Event; all are in the job's status and in `model.json`. Needs `data.validation`. Changing it replaces the job.",
		Optional: true,
		Attributes: map[string]schema.Attribute{
			"interval_steps":  between("Steps between two evaluations (ElasticDL's `--evaluation_steps`).", "interval_epochs"),
			"interval_epochs": between("Epochs between two evaluations.", "interval_steps"),
		},
	}
}

func trainingJobCheckpointAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "When and where the whole state is written: an interrupted job resumes from its newest checkpoint, " +
			"with the same result as an uninterrupted one. As long as a worker is alive, no checkpoint is needed. " +
			"A checkpoint is also written when the master is stopped, and after the last step, so that a job with more epochs can continue from it. " +
			"Changing it replaces the job, and the new one continues from the checkpoints that it finds.",
		Attributes: map[string]schema.Attribute{
			"interval_steps": schema.Int64Attribute{
				MarkdownDescription: "Steps between two checkpoints (ElasticDL's `--checkpoint_steps`). By default there is one at the end of each epoch.",
				Optional:            true,
				Validators:          []validator.Int64{int64validator.AtLeast(1)},
			},
			"max_to_keep": schema.Int64Attribute{
				MarkdownDescription: "How many of the newest are kept (`--keep_checkpoint_max`); 0 keeps all. 3 by default: where one is damaged the one before it is used. Without `output` there is one.",
				Optional:            true,
				Validators:          []validator.Int64{int64validator.Between(0, math.MaxInt32)},
			},
			"directory": schema.StringAttribute{
				MarkdownDescription: "Directory for them (`--checkpoint_dir`), in a volume that the master mounts. " +
					"By default `checkpoints` below `output`; jobs with the same model, data and training find each other's there, whatever their number of epochs.",
				Optional:   true,
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		},
	}
}

// podAttributes are the attributes of the pods of master and workers.
func podAttributes(cpu, memory string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"priority_class_name": nameAttribute("PriorityClass of the pod, the cluster's default without it: refer to `elastic_priority_class.NAME.name`."),
		"resources":           resourcesAttribute("Requests and limits of the container; `" + cpu + "` CPU and `" + memory + "` memory by default, as in ElasticDL."),
		"node_selector":       nodeSelectorAttribute("Node labels that the pod requires."),
		"tolerations":         tolerationsAttribute("Taints that the pod tolerates, in addition to `not-ready` and `unreachable` for 15 s."),
		"affinity":            jsonAttribute("Affinity of the pod as in the Kubernetes API: `jsonencode({ nodeAffinity = … })`."),
		"env": schema.MapAttribute{
			MarkdownDescription: "Environment of the container. It is stored in the state in plain text: do not use it for secrets.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"labels":      schema.MapAttribute{MarkdownDescription: "Labels of the pod.", ElementType: types.StringType, Optional: true, Validators: []validator.Map{labels{}}},
		"annotations": schema.MapAttribute{MarkdownDescription: "Annotations of the pod.", ElementType: types.StringType, Optional: true, Validators: []validator.Map{annotations{}}},
		"termination_grace_period_seconds": schema.Int64Attribute{
			MarkdownDescription: "Time to finish the current minibatch or step; 30 by default.",
			Optional:            true,
			Validators:          []validator.Int64{int64validator.AtLeast(0)},
		},
		"runtime_class_name": nameAttribute("RuntimeClass of the pod."),
		"security_context": securityContextAttribute("Without an attribute: user, group and `fs_group` 65532, not root, a read-only root file system, no privilege escalation, all capabilities dropped, " +
			"and seccomp's `RuntimeDefault`, as the Pod Security Standard *restricted* requires."),
		"init_containers": initContainersAttribute("the pod's own container"),
		"pod_overrides":   podOverridesAttribute(),
	}
}

func trainingJobVolumesAttribute() schema.Attribute {
	attributes := volumeAttributes("Whether it is mounted read-only; by default it is on workers, which only read data, and is not on the master, which writes the output.")
	attributes["mount_on"] = schema.StringAttribute{
		MarkdownDescription: "Which pods mount it: `all` (default), `master` or `workers`.",
		Optional:            true,
		Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
		Computed:            true,
		Default:             stringdefault.StaticString(trainingjob.MountAll),
	}
	return schema.ListNestedAttribute{
		MarkdownDescription: "Volumes for data and output. Changing them replaces the job.",
		Optional:            true,
		NestedObject:        schema.NestedAttributeObject{Attributes: attributes},
	}
}
