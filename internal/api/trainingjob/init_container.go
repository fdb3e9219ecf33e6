package trainingjob

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// InitContainer runs to its end in each pod, after those before it, and before the pod's own container starts.
type InitContainer struct {
	Name         string                       `json:"name"`
	Image        string                       `json:"image,omitempty"` // "": that of the pod's own container
	Command      []string                     `json:"command,omitempty"`
	Args         []string                     `json:"args,omitempty"`
	Env          map[string]string            `json:"env,omitempty"`
	VolumeMounts []VolumeMount                `json:"volume_mounts,omitempty"`
	Resources    *corev1.ResourceRequirements `json:"resources,omitempty"` // nil: CPU and memory of the pod's own container
}

// VolumeMount is where an init container has one of the pod's volumes.
type VolumeMount struct {
	Name      string `json:"name"`
	MountPath string `json:"mount_path"`
	SubPath   string `json:"sub_path,omitempty"`
	ReadOnly  bool   `json:"read_only,omitempty"`
}

// InitContainers are a pod's, beside its own container: with its pull policy, its rights and, where they say no
// resources, its CPU and memory, which add nothing to what the pod needs and satisfy a namespace whose quota wants
// every container to say something.
func InitContainers(containers []InitContainer, beside corev1.Container) []corev1.Container {
	var out []corev1.Container
	for _, c := range containers {
		container := corev1.Container{
			Name: c.Name, Image: c.Image, ImagePullPolicy: beside.ImagePullPolicy,
			Command: slices.Clone(c.Command), Args: slices.Clone(c.Args),
			Resources:                CPUAndMemory(beside.Resources),
			SecurityContext:          beside.SecurityContext.DeepCopy(),
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		}
		if c.Image == "" {
			container.Image = beside.Image
		}
		for _, name := range slices.Sorted(maps.Keys(c.Env)) {
			container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: c.Env[name]})
		}
		for _, m := range c.VolumeMounts {
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: m.Name, MountPath: m.MountPath, SubPath: m.SubPath, ReadOnly: m.ReadOnly})
		}
		if c.Resources != nil {
			container.Resources = *c.Resources.DeepCopy()
		}
		out = append(out, container)
	}
	return out
}

// CPUAndMemory are requests and limits without what is there once, such as a GPU.
func CPUAndMemory(of corev1.ResourceRequirements) corev1.ResourceRequirements {
	only := func(list corev1.ResourceList) corev1.ResourceList {
		list = list.DeepCopy()
		maps.DeleteFunc(list, func(name corev1.ResourceName, _ resource.Quantity) bool {
			return name != corev1.ResourceCPU && name != corev1.ResourceMemory
		})
		return list
	}
	return corev1.ResourceRequirements{Requests: only(of.Requests), Limits: only(of.Limits)}
}

// initContainersOf are those of a template, as InitContainer says them: what they have as the pod's own container has
// it is left out.
func initContainersOf(containers []corev1.Container, beside corev1.Container) []InitContainer {
	var out []InitContainer
	for _, c := range containers {
		container := InitContainer{Name: c.Name, Command: c.Command, Args: c.Args}
		if c.Image != beside.Image {
			container.Image = c.Image
		}
		for _, v := range c.Env {
			if v.ValueFrom == nil {
				if container.Env == nil {
					container.Env = map[string]string{}
				}
				container.Env[v.Name] = v.Value
			}
		}
		for _, m := range c.VolumeMounts {
			container.VolumeMounts = append(container.VolumeMounts, VolumeMount{Name: m.Name, MountPath: m.MountPath, SubPath: m.SubPath, ReadOnly: m.ReadOnly})
		}
		if !equality.Semantic.DeepEqual(c.Resources, CPUAndMemory(beside.Resources)) {
			container.Resources = c.Resources.DeepCopy()
		}
		out = append(out, container)
	}
	return out
}

// InitContainerProblems are what init containers cannot run with beside containers of these names, in a pod with these
// volumes. The field is the attribute's. With overridden, pod_overrides may bring volumes of their own.
func InitContainerProblems(field string, containers []InitContainer, ourNames, volumes []string, overridden bool) []Problem {
	var p problems
	names := slices.Clone(ourNames)
	for i, c := range containers {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case len(validation.IsDNS1123Label(c.Name)) > 0:
			p.add(at+".name", "is %q; it must be at most 63 lower case letters, digits and \"-\", and begin and end with a letter or digit", c.Name)
		case slices.Contains(names, c.Name):
			p.add(at+".name", "is %q, which another container of the pod is called", c.Name)
		}
		names = append(names, c.Name)
		for _, name := range slices.Sorted(maps.Keys(c.Env)) {
			if !EnvName.MatchString(name) {
				p.add(at+".env", "has a variable named %q; use letters, digits and \"_\"", name)
			}
		}
		var paths []string
		for j, m := range c.VolumeMounts {
			mount := fmt.Sprintf("%s.volume_mounts[%d]", at, j)
			if !slices.Contains(volumes, m.Name) && !overridden {
				p.add(mount+".name", "is %q, which no volume of the pod is called; add it to volumes", m.Name)
			}
			switch clean := path.Clean(m.MountPath); {
			case !path.IsAbs(m.MountPath):
				p.add(mount+".mount_path", "is %q; it must be an absolute path", m.MountPath)
			case slices.Contains(paths, clean):
				p.add(mount+".mount_path", "is %q, where another volume is mounted", m.MountPath)
			default:
				paths = append(paths, clean)
			}
			if !withinVolume(m.SubPath) {
				p.add(mount+".sub_path", "is %q; it must be a relative path without \"..\"", m.SubPath)
			}
		}
		p.resources(at+".resources", c.Resources)
	}
	return p
}

func withinVolume(subPath string) bool {
	return subPath == "" || !path.IsAbs(subPath) && !slices.Contains(strings.Split(subPath, "/"), "..")
}
