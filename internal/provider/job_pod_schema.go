package provider

import (
	"math"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider/quantity"
)

// activeDeadlineAttribute is how long a Job may be active; the description names the start of that time.
func activeDeadlineAttribute(description string) schema.Attribute {
	return optionalInteger(description, int64validator.AtLeast(1))
}

// resourcesAttribute is a container's requests and limits.
func resourcesAttribute(description string) schema.Attribute {
	amounts := func(description string) schema.Attribute {
		return schema.MapAttribute{
			MarkdownDescription: description,
			ElementType:         quantity.Type{},
			Optional:            true,
			Validators:          []validator.Map{mapvalidator.ValueStringsAre(quantity.NotNegative())},
		}
	}
	return optionalObject(description, map[string]schema.Attribute{
		"requests": amounts("Requests by resource, which the scheduler reserves for the container: `{ cpu = \"1\", memory = \"4Gi\" }`."),
		"limits":   amounts("Limits by resource."),
	})
}

// securityContextAttribute is the identity and the rights of a pod's processes, of which the API keeps a part at the
// pod and a part at each container. The description ends with the default.
func securityContextAttribute(otherwise string) schema.SingleNestedAttribute {
	id := func(description string) schema.Attribute {
		return optionalInteger(description, int64validator.Between(0, math.MaxInt32))
	}
	capabilities := func(description string) schema.Attribute {
		return schema.SetAttribute{
			MarkdownDescription: description,
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.Set{setvalidator.SizeAtLeast(1)},
		}
	}
	return optionalObject("User, group and privileges of the processes in the pod and in all its containers, including `init_containers`. "+otherwise, map[string]schema.Attribute{
		"run_as_user":     id("User ID of the processes."),
		"run_as_group":    id("Group ID of the processes."),
		"run_as_non_root": optionalFlag("Whether the kubelet refuses to start a container as root."),
		"fs_group":        id("Group that owns the files of the pod's volumes; the processes belong to it."),
		"supplemental_groups": schema.SetAttribute{
			MarkdownDescription: "Additional groups that the processes belong to.",
			ElementType:         types.Int64Type,
			Optional:            true,
			Validators:          []validator.Set{setvalidator.SizeAtLeast(1), setvalidator.ValueInt64sAre(int64validator.Between(0, math.MaxInt32))},
		},
		"seccomp_profile": optionalObject("Which system calls the processes may make.", map[string]schema.Attribute{
			"type": requiredText("`RuntimeDefault` (the container runtime's profile), `Unconfined` (all system calls) or `Localhost` (a profile file on the node).",
				stringvalidator.OneOf(string(corev1.SeccompProfileTypeRuntimeDefault), string(corev1.SeccompProfileTypeUnconfined), string(corev1.SeccompProfileTypeLocalhost))),
			"localhost_profile": nonEmptyText("With `Localhost`: the file, relative to the kubelet's directory of seccomp profiles."),
		}),
		"read_only_root_filesystem":  optionalFlag("Whether the containers' root file systems are read-only."),
		"allow_privilege_escalation": optionalFlag("Whether a process may gain more privileges than its parent."),
		"capabilities": optionalObject("Linux capabilities, without `CAP_`: `{ add = [\"IPC_LOCK\"] }`.", map[string]schema.Attribute{
			"add":  capabilities("Capabilities that the containers get."),
			"drop": capabilities("Capabilities that the containers do not get; `ALL` means all capabilities that are not in `add`."),
		}),
	})
}

// initContainersAttribute are the containers that run in each pod before its own; beside names that one.
func initContainersAttribute(beside string) schema.Attribute {
	words := func(description string) schema.Attribute {
		return optionalTexts(description, listvalidator.SizeAtLeast(1))
	}
	return optionalObjects("Containers that run to completion, one after the other, before "+beside+", for example to fetch data into a volume. If one fails, the pod fails.", map[string]schema.Attribute{
		"name":    requiredText("Name of the container in the pod."),
		"image":   nonEmptyText("Image of the container; by default the image of " + beside + "."),
		"command": words("Entrypoint of the container, instead of the image's: `[\"sh\", \"-c\"]`."),
		"args":    words("Arguments, instead of the image's."),
		"env":     optionalTextMap("Environment variables of the container. The value is stored in the state in plain text: do not use it for secrets."),
		"volume_mounts": optionalObjects("Volumes from `volumes` that the container mounts.", map[string]schema.Attribute{
			"name":       requiredText("Name of a volume in `volumes`."),
			"mount_path": requiredText("Path in the container at which the volume is mounted."),
			"sub_path":   nonEmptyText("Directory or file in the volume to mount, instead of the whole volume."),
			"read_only":  optionalFlag("Whether the volume is mounted read-only; false by default."),
		}),
		"resources": resourcesAttribute("Requests and limits of the container; by default the CPU and memory of " + beside + ", which does not increase the pod's total request."),
	})
}
