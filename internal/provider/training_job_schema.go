package provider

import (
	"context"
	"fmt"
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
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
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
		"Name of the job and of its Kubernetes Job; at most 50 characters, because the workers' pods are named after it.", trainingJobName)
	attributes := map[string]schema.Attribute{
		// Required.
		"image": requiredText("Container image of the trainer, used by the master and the workers. Changing it replaces the job.",
			stringvalidator.LengthAtLeast(1)),
		"workers": trainingJobWorkersAttribute(),

		// Required, unless the workers run a command that is restarted.
		"model":    trainingJobModelAttribute(),
		"data":     trainingJobDataAttribute(),
		"training": trainingJobTrainingAttribute(),

		// Optional: what runs, and where. Changing any of these replaces the job.
		"name":          name,
		"generate_name": generateName,
		"master": presentObject(ctx, schema.SingleNestedAttribute{
			MarkdownDescription: "Settings of the master's pod. Its priority should be higher than the workers', because the job stops without its master. Changing it replaces the job.",
			Attributes:          podAttributes("100m", "1024Mi"),
		}),
		"master_priority_check": textOr("What a plan does if the scheduler may preempt the master instead of a worker, because the value of its PriorityClass is not higher than that of the workers': "+
			"`warn` (default; no warning if neither has a class), report an `error`, or nothing (`off`). A priority that is not known during the plan is not checked. Changes in place.",
			masterPriorityWarn, stringvalidator.OneOf(masterPriorityWarn, masterPriorityError, masterPriorityOff)),
		"output": optionalText("Directory for the final model and the checkpoints, in a volume that the master mounts; a run writes below `OUTPUT/<digest>/`. "+
			"Without it, ConfigMap `NAME-model` holds the newest checkpoint during the run and the final model afterwards, if the model has at most 900 KiB. Changing it replaces the job.",
			stringvalidator.LengthAtLeast(1)),
		"checkpoint": presentObject(ctx, trainingJobCheckpointAttribute()),
		"evaluation": trainingJobEvaluationAttribute(),
		"volumes":    trainingJobVolumesAttribute(),
		"queue":      trainingJobQueueAttribute(),
		"topology": topologyAttribute("Where the master and the first `workers.min` workers run, relative to each other, by Kueue's topology-aware scheduling. "+
			"With `required` or `preferred`, but without slices, the master runs in the domain of these workers. "+
			"Kueue queues each further worker separately and places it in any domain, on a flavor with a topology.", "of them", "workers.min"),
		"active_deadline_seconds": activeDeadlineAttribute("Seconds after creation, or after the last resume, at which Kubernetes fails the job (`DeadlineExceeded`). " +
			"Time spent waiting for capacity or in a queue counts; time spent suspended does not. " +
			"The master writes a checkpoint before it ends, and the workers exit within two minutes. Changes in place."),
		"service_account_name": nameAttribute("ServiceAccount of the master. Without it, the provider creates one for the job, with a Role limited to what the master needs; " +
			"the account that applies this needs the same permissions. If it is set, no RBAC object is created. Changing it replaces the job."),
	}
	maps.Copy(attributes, jobAttributes(ctx, "job", waitForRunning, waitForSucceeded))
	maps.Copy(attributes, observedAttributes())
	return schema.Schema{
		MarkdownDescription: "An elastic training job: a master, and between `workers.min` and `workers.max` workers that may be preempted at any time. " +
			"The final model does not depend on the number of workers or on when they run.\n\n" +
			"`workers` (except `workers.command`, `workers.elastic`, `workers.processes`, `workers.step`, `workers.restart_interval_seconds` and, under a queue, `workers.min` and `workers.min_priority_class_name`), `active_deadline_seconds`, `labels`, `annotations`, " +
			"`master_priority_check`, `wait_for`, `fail_on_error`, `on_finished` and `timeouts` change in place. A change to any other attribute replaces the job, and the plan shows what is lost.\n\n" +
			"The master of a running job serves a status page and Prometheus metrics: `kubectl port-forward job/NAME 8080`, then http://localhost:8080/ and http://localhost:8080/metrics. " +
			"The page is saved as `report.html` in the output directory.",
		Attributes: numeric.Attributes(absentIsEmpty(attributes)),
	}
}

// observedAttributes are the attributes that the master reports. An update that does not wait leaves them as they were
// at the last refresh, so that a plan shows only the user's changes.
func observedAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"phase": observedText("`Pending`, `Queued` (the queue has not admitted the job), `Suspended` (the Job was suspended or, in a queue, " +
			"the Workload was deactivated), `Waiting` (fewer workers than the minimum), `Running`, `Evaluating`, " +
			"`CannotSave` (the model cannot be written; the master retries), `Succeeded` or `Failed`."),
		"message": observedText("Why the job waits or failed: the master's message, the queue's for a job that is queued, " +
			"or the Job's if its rules ended it. Null if there is no message."),
		"steps_done":      observedInteger("Number of completed steps (model updates)."),
		"steps_total":     observedInteger("Number of steps of the whole run."),
		"workers_running": observedInteger("Workers that are connected and up to date."),
		"workers_pending": observedInteger("Workers that wait to be scheduled or started."),
		"preemptions":     observedInteger("Number of preempted workers."),
		"model_sha256":    observedText("SHA-256 of the final model, in hexadecimal."),
		"loss": schema.Float64Attribute{
			MarkdownDescription: "Loss of the last step; after the end, the loss on the validation data, if configured. As of the last refresh.", Computed: true,
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
	return optionalObject("The model: a model file, or a built-in model. Required, unless `workers.elastic` is `restart`: then it may have the `content` of a script. Changing it replaces the job.", map[string]schema.Attribute{
		"content": nonEmptyText("Text of an ElasticDL model file: `file(\"${path.module}/mnist_functional_api.py\")`."),
		"name": nonEmptyText("A built-in model, instead of `content`: `" + strings.Join(zoo.Names(), "`, `") + "`. " +
			"`elastic-trainer model NAME` shows its layers and the features of its records; `--source` prints its model file."),
	})
}

func trainingJobDataAttribute() schema.Attribute {
	return optionalObject("The data sets. Required, unless `workers.elastic` is `restart`: then the script reads its data itself. Changing it replaces the job.", map[string]schema.Attribute{
		"training": requiredText("Location of the training data: a directory or file in the image or in a volume; " +
			"`s3://BUCKET/PREFIX` or `gs://BUCKET/PREFIX` (needs a trainer image built with `make image TAGS=objectstores`); " +
			"`synthetic://digits?records=10000&seed=1` (also `shapes`, `frappe`, `census`); " +
			"or, with `workers.command`, `indices://NAME?records=60000`, record indices that the script interprets itself. " +
			"Credentials for object stores come from the pods' ServiceAccounts (IAM roles on EKS, Workload Identity on GKE): " +
			"the master uses `service_account_name` or the job's own account, and the workers use the namespace's `default`. " +
			"Alternatively, pass a Secret with `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` in `pod_overrides` of `workers` and of `master` " +
			"(container names `worker` and `master`), so that its values are not stored in the state: " +
			"`jsonencode({ spec = { containers = [{ name = \"worker\", envFrom = [{ secretRef = { name = \"s3\" } }] }] } })`. " +
			"For other S3-compatible stores, set `AWS_ENDPOINT_URL` in `env`."),
		"validation": optionalText("Location of the validation data, in the same form as `training`; the model is evaluated on it after the last step."),
		"format": textOr("How the files are stored: "+dataset.FormatsMarkdown()+".",
			dataset.DefaultFormat, stringvalidator.LengthAtLeast(1)),
		"codec": textOr("How a record is encoded: `bytes` (default) or `tf_example`. Ignored for `csv` (columns are matched by name) and for `idx`.",
			dataset.BytesCodec, stringvalidator.LengthAtLeast(1)),
		"csv": optionalObject("Mapping of CSV columns to features, if the header names do not match. By default a feature is read from the column with its name; a feature with several elements from `NAME_0`, `NAME_1`, …", map[string]schema.Attribute{
			"columns": schema.MapAttribute{
				MarkdownDescription: "CSV columns for each feature whose columns have other names, one per element: `{ label = [\"species\"] }`.",
				Optional:            true,
				ElementType:         types.ListType{ElemType: types.StringType},
			},
			"vocabularies": schema.MapAttribute{
				MarkdownDescription: "Categories of text columns, in index order from 0: `{ species = [\"setosa\", \"versicolor\", \"virginica\"] }`.",
				Optional:            true,
				ElementType:         types.ListType{ElemType: types.StringType},
			},
		}),
		"records_per_task": requiredInteger("Number of records that are shuffled and assigned to a worker together; preferably a multiple of `minibatch_size`.",
			int64validator.Between(1, trainingjob.MaxRecordsPerTask)),
	})
}

func trainingJobTrainingAttribute() schema.Attribute {
	return optionalObject("Hyperparameters of the run. Required, unless `workers.elastic` is `restart`: then the script has its own. Changing them replaces the job.", map[string]schema.Attribute{
		"minibatch_size": requiredInteger("Records per gradient.", int64validator.Between(1, trainingjob.MaxMinibatchSize)),
		"epochs":         integerOr("Passes over the data; 1 by default.", 1, int64validator.Between(1, trainingjob.MaxEpochs)),
		"grads_to_wait": integerOr("Number of gradients averaged per step (called virtual workers), independent of the number of running workers; 1 by default.",
			trainingjob.DefaultGradsToWait, int64validator.Between(1, trainingjob.MaxGradsToWait)),
		"seed": integerOr("Random seed for the initial weights, the order of records and dropout; 1 by default.",
			1, int64validator.AtLeast(0)),
		"learning_rate": schema.Float64Attribute{
			MarkdownDescription: "Learning rate; overrides the model file's.",
			Optional:            true,
		},
		"aggregation": optionalText("Where gradients are summed: `master` (default); `allreduce` (between the workers, each of which sums one slice); "+
			"or `auto` (the faster of the two, by model size and number of workers). The model is bit-identical in all cases. "+
			"With `allreduce`, workers connect to each other on arbitrary free ports; a NetworkPolicy must allow this.",
			stringvalidator.OneOf(trainingjob.Aggregations...)),
	})
}

func trainingJobWorkersAttribute() schema.Attribute {
	attributes := podAttributes("1000m", "4096Mi")
	attributes["max"] = requiredInteger("Maximum number of workers; the job scales up to this number when there is capacity.",
		int64validator.Between(1, trainingjob.MaxWorkers))
	attributes["min"] = integerOr("Minimum number of workers; with fewer workers the job waits. 1 by default.",
		1, int64validator.Between(1, trainingjob.MaxWorkers))
	attributes["min_priority_class_name"] = nameAttribute("PriorityClass of the first `min` workers. Its value should be higher than that of `priority_class_name`.")
	attributes["command"] = optionalTexts("Train with a framework such as PyTorch: `model.content` is a script, and this command runs it, with the script's path as its last argument: `[\"python3\"]`. "+
		"`image` must contain the command and the framework, and have `elastic-trainer` as its entrypoint. The master's pod also runs the script, "+
		"in a separate container `script` without the master's credentials. Scheduling, elasticity and restarts work as for Keras models; "+
		"whether results are bit-identical depends on the framework. "+
		"The root file system is read-only; `TMPDIR` and `HOME` are set to a writable directory. See the guide *Elastic PyTorch*. Changing it replaces the job.",
		listvalidator.SizeAtLeast(1), listvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1)))
	attributes["elastic"] = optionalText("With `command`, how gradients are exchanged: `gradients` (by default) passes them through the workers' and the master's processes; "+
		"with `collectives` the script's own process group (gloo; NCCL on GPUs, which is not tested) exchanges them, and the workers form a new group in the same processes when one joins, leaves or is lost. "+
		"`collectives` needs `data.training = \"indices://NAME?records=N\"` and `output`, in a volume that all workers mount: the script writes its checkpoints there; "+
		"the master then needs neither framework nor accelerator. "+
		"With `restart`, `command` runs a script for `torchrun` (DDP, FSDP, DeepSpeed, Accelerate, Lightning): each worker runs it with torchrun's environment, and it is stopped with SIGTERM and started again on all workers when one joins, leaves or is lost. "+
		"The script must resume from its own checkpoints; `data`, `training`, `checkpoint` and `evaluation` are not set. See the guide *Elastic PyTorch*. Changing it replaces the job.",
		stringvalidator.OneOf(trainingjob.ElasticModes...))
	attributes["processes"] = optionalInteger("With `elastic = \"collectives\"` or `\"restart\"`, number of processes of the script on each worker (torchrun's `--nproc-per-node`); each is a rank, with its own `LOCAL_RANK`. By default one for each accelerator in `resources.limits`, and one without accelerators. Changing it replaces the job.",
		int64validator.Between(1, trainingjob.MaxProcesses))
	attributes["step"] = optionalInteger("With `elastic = \"collectives\"` or `\"restart\"`, the script runs on a multiple of this number of workers, for example 2 for a model that is split over two; others wait. `min` must be a multiple of it. 1 by default. Changing it replaces the job.",
		int64validator.Between(1, trainingjob.MaxWorkers))
	attributes["restart_interval_seconds"] = optionalInteger(fmt.Sprintf("With `elastic = \"restart\"`, minimum number of seconds for which the command runs before it is restarted for joining workers; %d by default. It is restarted immediately if a worker leaves or is lost. Changing it replaces the job.", trainingjob.DefaultRestartIntervalSeconds),
		int64validator.Between(1, trainingjob.MaxRestartIntervalSeconds))
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Number of workers, and the settings of their pods. Changes in place: existing pods keep their settings, new pods get the new ones.",
		Required:            true,
		Attributes:          attributes,
	}
}

func trainingJobQueueAttribute() schema.Attribute {
	return optionalObject("Where the job waits for quota under Kueue. "+
		"The master and the first `workers.min` workers are admitted and evicted together. Each further worker is queued separately, "+
		"so Kueue can evict workers one by one, and the job continues with fewer workers. "+
		"When Kueue evicts the master and the minimum workers, the other workers exit too, and the job continues when it is admitted again. "+
		"Under a queue, a change to `workers.min` or `workers.min_priority_class_name` replaces the job; "+
		"the pods of the minimum workers keep the settings from when the job was created. Changing it replaces the job.", map[string]schema.Attribute{
		"name": requiredText("LocalQueue in the job's namespace, such as `elastic_local_queue.NAME.name`. "+
			"The name must not be `default`, and the namespace must not contain a LocalQueue `default`, because Kueue would then queue the job's Jobs instead of its pods.",
			subdomain),
		"workload_priority_class": nameAttribute("WorkloadPriorityClass of the workers above the minimum, such as `elastic_workload_priority_class.NAME.name`. " +
			"If it is not set, the priority of the pods is used."),
		"min_workload_priority_class": nameAttribute("WorkloadPriorityClass of the master and the first `workers.min` workers; `workload_priority_class` by default. " +
			"Its value should be higher than that of `workload_priority_class`; otherwise Kueue may evict the minimum instead of a worker above it."),
	})
}

func trainingJobEvaluationAttribute() schema.Attribute {
	between := func(description, other string) schema.Int64Attribute {
		return optionalInteger(description,
			int64validator.AtLeast(1), int64validator.AtLeastOneOf(path.MatchRelative().AtParent().AtName(other)))
	}
	return optionalObject("When the model is evaluated on the validation data, in addition to the evaluation after the last step: every N steps, every N epochs, or both. "+
		"Training pauses during an evaluation, and the workers share the data. Evaluation does not affect the model. "+
		"An Event reports each result; the job's status and `model.json` contain all of them. Needs `data.validation`. Changing it replaces the job.", map[string]schema.Attribute{
		"interval_steps":  between("Steps between two evaluations (ElasticDL's `--evaluation_steps`).", "interval_epochs"),
		"interval_epochs": between("Epochs between two evaluations.", "interval_steps"),
	})
}

func trainingJobCheckpointAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "When and where the master writes checkpoints. An interrupted job resumes from its newest checkpoint, " +
			"with the same result as an uninterrupted job. As long as a worker is running, no checkpoint is needed. " +
			"The master also writes a checkpoint when it is stopped, and after the last step, so that a job with more epochs can continue from it. " +
			"Changing it replaces the job; the new job resumes from the newest matching checkpoint.",
		Attributes: map[string]schema.Attribute{
			"interval_steps": optionalInteger("Steps between two checkpoints (ElasticDL's `--checkpoint_steps`). By default a checkpoint is written at the end of each epoch.",
				int64validator.AtLeast(1)),
			"max_to_keep": optionalInteger("Number of checkpoints to keep (`--keep_checkpoint_max`); 0 keeps all. 3 by default. If a checkpoint is damaged, the previous one is used. Without `output`, only one is kept.",
				int64validator.Between(0, math.MaxInt32)),
			"directory": optionalText("Directory for the checkpoints (`--checkpoint_dir`), in a volume that the master mounts. "+
				"By default `checkpoints` below `output`; jobs with the same model, data and training settings share their checkpoints there, also with a different number of epochs.",
				stringvalidator.LengthAtLeast(1)),
		},
	}
}

// podAttributes are the attributes of the pods of master and workers.
func podAttributes(cpu, memory string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"priority_class_name": nameAttribute("PriorityClass of the pod, such as `elastic_priority_class.NAME.name`; the cluster's default if not set."),
		"resources":           resourcesAttribute("Requests and limits of the container; `" + cpu + "` CPU and `" + memory + "` memory by default, as in ElasticDL."),
		"node_selector":       optionalTextMap("Node labels that the pod requires.", labels{}),
		"tolerations":         tolerationsAttribute("Taints that the pod tolerates, in addition to `not-ready` and `unreachable` for 15 s."),
		"affinity":            jsonAttribute("Affinity of the pod as in the Kubernetes API: `jsonencode({ nodeAffinity = … })`."),
		"env":                 optionalTextMap("Environment variables of the container. The value is stored in the state in plain text: do not use it for secrets."),
		"labels":              optionalTextMap("Labels of the pod.", labels{}),
		"annotations":         optionalTextMap("Annotations of the pod.", annotations{}),
		"termination_grace_period_seconds": optionalInteger("Seconds between SIGTERM and SIGKILL, in which the pod can finish its current minibatch or step; 30 by default.",
			int64validator.AtLeast(0)),
		"runtime_class_name": nameAttribute("RuntimeClass of the pod."),
		"security_context": securityContextAttribute("Defaults of the attributes that are not set: user, group and `fs_group` 65532, not root, a read-only root file system, no privilege escalation, all capabilities dropped, " +
			"and the seccomp profile `RuntimeDefault`, as the Pod Security Standard *restricted* requires."),
		"init_containers": initContainersAttribute("the pod's own container"),
		"pod_overrides":   podOverridesAttribute(),
	}
}

func trainingJobVolumesAttribute() schema.Attribute {
	attributes := volumeAttributes("Whether the volume is mounted read-only; by default true on workers, which only read data, and false on the master, which writes the output.")
	attributes["mount_on"] = textOr("Which pods mount it: `all` (default), `master` or `workers`.",
		trainingjob.MountAll, stringvalidator.LengthAtLeast(1))
	return optionalObjects("Volumes for data and output. Changing them replaces the job.", attributes)
}
