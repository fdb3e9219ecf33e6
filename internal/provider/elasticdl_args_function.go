package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/migrate/elasticdl"
)

// newElasticdlArgs is provider::elastic::elasticdl_args.
func newElasticdlArgs(version string) function.Function {
	return &ofText{
		name:    "elasticdl_args",
		summary: "The arguments of elastic_training_job for an ElasticDL command line",
		describes: "Converts the command line of ElasticDL's client, as in its tutorial on elastic scheduling, to attributes of `elastic_training_job`: " +
			"`name`, `image`, `data`, `training`, `master`, `workers` and `volumes` are attributes of the resource, and `model_file` is the path of the file for `model.content`. " +
			"`notices` has a sentence for each flag that has no equivalent or another meaning, with its replacement; a `check` block reports them in the plan. " +
			"Omitted flags have the client's defaults. Values that the client rejects are errors with the flag's name; for an unknown flag the error suggests a similar one. " +
			"Flags of later versions that only have another name, such as `--num_workers`, are read as the flags below; the error for any other names the attribute to set.\n\n" +
			"| flag | result |\n|---|---|\n" +
			"| `--job_name` | `name` |\n" +
			"| `--model_file` | `model_file` |\n" +
			"| `--image_base` | `image`: kept if it names an `elastic-trainer` of any registry, otherwise replaced by the trainer's image of the provider's version; no image is built for a job |\n" +
			"| `--repository`, `--docker_image_repository` | nothing: no image is pushed |\n" +
			"| `--train_data_dir` | `data.training`; without `--volume_name` also `volumes`: ElasticDL's image contained the records, the trainer's does not, and PersistentVolumeClaim `" + elasticdl.Claim + "` is mounted at the path's first folder |\n" +
			"| `--record_per_task` | `data.records_per_task` |\n" +
			"| `--codec_type` | `data.codec` |\n" +
			"| `--num_epoch` | `training.epochs` |\n" +
			"| `--minibatch_size` | `training.minibatch_size` |\n" +
			"| `--grads_to_wait` | `training.grads_to_wait` |\n" +
			"| `--num_worker` | `workers.max`; `workers.min` is 1, as ElasticDL continues with any number |\n" +
			"| `--master_pod_priority`, `--worker_pod_priority` | `master.priority_class_name`, `workers.priority_class_name` |\n" +
			"| `--{master,worker}_{cpu,memory}_{request,limit}` | `{master,workers}.resources.{requests,limits}.{cpu,memory}` |\n" +
			"| `--volume_name`, `--mount_path` | `volumes`, with that client's PersistentVolumeClaim `" + elasticdl.Claim + "` |",
		parameter: function.StringParameter{
			Name: "command_line",
			MarkdownDescription: "The flags of the command line, with or without the program's name before them: " +
				"`--flag=value` or `--flag value`, quotes as in a shell, lines that end with a backslash.",
		},
		returns: function.ObjectReturn{AttributeTypes: attributeTypesOf(elasticdlResult(elasticdl.Arguments{}, elasticdl.Translation{}))},
		of: func(line string) (any, error) {
			arguments, err := elasticdl.Parse(line)
			return elasticdlResult(arguments, arguments.Translate(trainingjob.DefaultImage(version), elasticdl.Claim)), err
		},
	}
}

// elasticdlResult is the function's value; its type does not depend on the arguments.
func elasticdlResult(a elasticdl.Arguments, t elasticdl.Translation) types.Object {
	workers := elasticdlPod(a.Worker)
	workers["min"], workers["max"] = types.Int64Value(1), types.Int64Value(a.Workers)
	volume := objectValue(map[string]attr.Value{
		"name": types.StringValue(t.VolumeName), "mount_path": types.StringValue(t.MountPath), "claim_name": types.StringValue(elasticdl.Claim),
	})
	volumes := types.ListNull(volume.Type(context.Background()))
	if t.VolumeName != "" {
		volumes = types.ListValueMust(volume.Type(context.Background()), []attr.Value{volume})
	}
	notices := make([]attr.Value, len(t.Notices))
	for i, notice := range t.Notices {
		notices[i] = types.StringValue(notice)
	}
	return objectValue(map[string]attr.Value{
		"notices":    types.ListValueMust(types.StringType, notices),
		"name":       types.StringValue(a.Name),
		"image":      types.StringValue(t.Image),
		"model_file": types.StringValue(a.ModelFile),
		"data": objectValue(map[string]attr.Value{
			"training": types.StringValue(a.TrainingData), "format": types.StringValue(dataset.RecordIO), "codec": types.StringValue(a.Codec),
			"records_per_task": types.Int64Value(a.RecordsPerTask),
		}),
		"training": objectValue(map[string]attr.Value{
			"epochs": types.Int64Value(a.Epochs), "minibatch_size": types.Int64Value(a.MinibatchSize), "grads_to_wait": types.Int64Value(a.GradsToWait),
		}),
		"master":  objectValue(elasticdlPod(a.Master)),
		"workers": objectValue(workers),
		"volumes": volumes,
	})
}

func elasticdlPod(pod elasticdl.Pod) map[string]attr.Value {
	amounts := func(cpu, memory string) attr.Value {
		return objectValue(map[string]attr.Value{"cpu": types.StringValue(cpu), "memory": types.StringValue(memory)})
	}
	return map[string]attr.Value{
		"priority_class_name": textOrNull(pod.PriorityClass),
		"resources": objectValue(map[string]attr.Value{
			"requests": amounts(pod.CPURequest, pod.MemoryRequest), "limits": amounts(pod.CPULimit, pod.MemoryLimit),
		}),
	}
}

// objectValue is the object with these attributes; its type is theirs.
func objectValue(attributes map[string]attr.Value) types.Object {
	kinds := make(map[string]attr.Type, len(attributes))
	for name, value := range attributes {
		kinds[name] = value.Type(context.Background())
	}
	return types.ObjectValueMust(kinds, attributes) // the kinds are the values' own
}

func attributeTypesOf(object types.Object) map[string]attr.Type {
	return object.AttributeTypes(context.Background())
}
