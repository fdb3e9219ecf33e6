package provider

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/migrate/skypilot"
)

// newSkypilotTask is provider::elastic::skypilot_task.
func newSkypilotTask() function.Function {
	return &ofText{
		name:    "skypilot_task",
		summary: "A SkyPilot task file as the arguments of elastic_task",
		describes: "Converts a SkyPilot task file to attributes of `elastic_task`, so that a configuration can change or reuse parts of it. To use the file unchanged, set the attribute `yaml` of the resource. " +
			"`resources.labels` give `queue`, with its `workload_priority_class`. Attributes that the file does not set are null. Unsupported keys are errors with their line; " +
			"`warnings` lists keys that have no effect. The result does not contain the files of `workdir` and the values of `secrets`: set them in the resource.",
		parameter: function.StringParameter{
			Name:                "yaml",
			MarkdownDescription: "Text of the file: `file(\"low.yaml\")`.",
		},
		returns: function.ObjectReturn{AttributeTypes: attributeTypesOf(skypilotResult(task.Task{}, nil))},
		of: func(text string) (any, error) {
			t, warnings, err := skypilot.Parse("yaml", []byte(text), skypilot.Given{Workdir: true, AnySecret: true})
			return skypilotResult(t, warnings), err
		},
	}
}

// skypilotResult is the function's value; its type does not depend on the arguments.
func skypilotResult(t task.Task, warnings []skypilot.Problem) types.Object {
	texts := func(values map[string]string) types.Map {
		if len(values) == 0 {
			return types.MapNull(types.StringType)
		}
		elements := make(map[string]attr.Value, len(values))
		for key, value := range values {
			elements[key] = types.StringValue(value)
		}
		return types.MapValueMust(types.StringType, elements) // strings only
	}
	messages := make([]attr.Value, len(warnings))
	for i, warning := range warnings {
		messages[i] = types.StringValue(fmt.Sprintf("line %d: %s", warning.Line, warning.Message))
	}
	return objectValue(map[string]attr.Value{
		"name":          textOrNull(t.Name),
		"run":           textOrNull(t.Run),
		"setup":         textOrNull(t.Setup),
		"num_nodes":     types.Int64Value(int64(t.NumNodes)),
		"env":           texts(t.Envs),
		"image":         textOrNull(t.Image),
		"accelerators":  acceleratorsValue(t.Accelerators, t.Ordered),
		"cpus":          textOrNull(t.CPUs),
		"memory":        textOrNull(t.Memory),
		"queue":         skypilotQueue(t),
		"labels":        texts(t.Labels),
		"recovery":      skypilotRecovery(t.Recovery),
		"volumes":       skypilotVolumes(t.Volumes),
		"pod_overrides": textOrNull(string(t.PodOverrides)),
		"warnings":      types.ListValueMust(types.StringType, messages), // strings only
	})
}

func skypilotQueue(t task.Task) types.Object {
	value := objectValue(map[string]attr.Value{
		"name": textOrNull(t.Queue), "workload_priority_class": textOrNull(t.PriorityClass),
	})
	if t.Queue == "" && t.PriorityClass == "" {
		return types.ObjectNull(attributeTypesOf(value))
	}
	return value
}

func skypilotRecovery(r task.Recovery) types.Object {
	codes := make([]attr.Value, len(r.RecoverOnExitCodes))
	for i, code := range r.RecoverOnExitCodes {
		codes[i] = types.Int64Value(int64(code))
	}
	value := objectValue(map[string]attr.Value{
		"max_restarts_on_errors": types.Int64Value(int64(r.MaxRestartsOnErrors)),
		"recover_on_exit_codes":  types.ListValueMust(types.Int64Type, codes), // numbers only
	})
	if r.MaxRestartsOnErrors == 0 && len(codes) == 0 {
		return types.ObjectNull(attributeTypesOf(value))
	}
	return value
}

// skypilotVolumes are claims: the file has no others.
func skypilotVolumes(volumes []task.Volume) types.List {
	of := func(v task.Volume) types.Object {
		return objectValue(map[string]attr.Value{
			"name": types.StringValue(v.Name), "mount_path": types.StringValue(v.MountPath), "claim_name": types.StringValue(v.PVC),
		})
	}
	kind := types.ObjectType{AttrTypes: attributeTypesOf(of(task.Volume{}))}
	if len(volumes) == 0 {
		return types.ListNull(kind)
	}
	elements := make([]attr.Value, len(volumes))
	for i, v := range volumes {
		elements[i] = of(v)
	}
	return types.ListValueMust(kind, elements) // each is of that kind
}
