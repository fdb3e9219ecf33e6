package trainingjob

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// VolumeProblems are what volumes cannot be mounted with, beside volumes of ours that have these names and in whose
// directories nothing else may be mounted.
func VolumeProblems(volumes []Volume, ourNames, ourDirs []string) []Problem {
	var p problems
	names, paths := map[string]bool{}, map[string]string{}
	for _, name := range ourNames {
		names[name] = true
	}
	for i, v := range volumes {
		field := fmt.Sprintf("volumes[%d]", i)
		if len(validation.IsDNS1123Label(v.Name)) > 0 {
			p.add(field+".name", "is %q; it must consist of lower case letters, digits and \"-\"", v.Name)
		} else if names[v.Name] {
			p.add(field+".name", "is %q, which another volume of the job is called", v.Name)
		}
		names[v.Name] = true
		sources := 0
		for _, set := range []bool{v.PVC != "", v.HostPath != "", v.EmptyDir != nil, v.ConfigMap != ""} {
			if set {
				sources++
			}
		}
		if sources != 1 {
			p.add(field, "(%q) has %d sources; set exactly one of claim_name, host_path, empty_dir and config_map", v.Name, sources)
		}
		if v.Mount != "" && !slices.Contains([]string{MountAll, MountMaster, MountWorkers}, v.Mount) {
			p.add(field+".mount", "is %q; it must be %s", v.Mount, quoted([]string{MountAll, MountMaster, MountWorkers}))
		}
		switch other, taken := paths[v.MountPath]; {
		case !path.IsAbs(v.MountPath) || path.Clean(v.MountPath) != strings.TrimSuffix(v.MountPath, "/") || v.MountPath == "/":
			p.add(field+".mount_path", "is %q; it must be an absolute path without \"..\", and not the root", v.MountPath)
		case slices.ContainsFunc(ourDirs, func(dir string) bool { return within(v.MountPath, dir) }):
			p.add(field+".mount_path", "is %q, where the job's own files are; choose another", v.MountPath)
		case taken:
			p.add(field+".mount_path", "is %q, where volume %q is mounted", v.MountPath, other)
		}
		paths[v.MountPath] = v.Name
		if v.HostPath != "" && !path.IsAbs(v.HostPath) {
			p.add(field+".host_path", "is %q; it must be an absolute path of the node", v.HostPath)
		}
	}
	return p
}

// EnvName is what a shell can refer to; Kubernetes allows a little more.
var EnvName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (p *problems) pod(role string, s PodSettings) {
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !EnvName.MatchString(name) {
			p.add(role+".env", "has a variable named %q; use letters, digits and \"_\"", name)
		}
		if slices.ContainsFunc(downwardEnv, func(v struct{ name, field string }) bool { return v.name == name }) {
			p.add(role+".env", "sets %s, which the job sets from the pod itself", name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		if ReservedLabel(key) {
			p.add(role+".labels", "sets %q, which the job sets itself", key)
		}
	}
	if g := s.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		p.add(role+".termination_grace_period_seconds", "is %d; it cannot be negative", *g)
	}
	*p = append(*p, s.SecurityContext.Problems(role+".security_context", true)...)
	p.resources(role+".resources", s.Resources)
}

func (p *problems) resources(field string, r *corev1.ResourceRequirements) {
	if r == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		limit, limited := r.Limits[name]
		if limited && limit.Cmp(request) < 0 {
			p.add(field, "requests %s = %s but limits it to %s; a limit cannot be below its request", name, request.String(), limit.String())
		}
	}
}

// written reports what is wrong with the place of a directory that the master writes.
func (p *problems) written(attribute, dir string, volumes []Volume, role string) {
	i := slices.IndexFunc(volumes, func(v Volume) bool { return v.mountedBy(role) && within(dir, v.MountPath) })
	switch {
	case i < 0:
		p.add(attribute, "is %q, in no volume that %s: a pod's own file system is read-only, so nothing could be written there", dir, map[string]string{RoleMaster: "the master mounts", RoleWorker: "the workers mount"}[role])
	case volumes[i].EmptyDir != nil && role == RoleWorker:
		p.add(attribute, "is %q in volume %q, an empty_dir: the checkpoints are lost with the worker that has written them, and other workers cannot read them", dir, volumes[i].Name)
	case volumes[i].EmptyDir != nil:
		p.add(attribute, "is %q in volume %q, an empty_dir: the model and all checkpoints are lost with the master's pod", dir, volumes[i].Name)
	case volumes[i].ConfigMap != "" || (volumes[i].ReadOnly != nil && *volumes[i].ReadOnly):
		p.add(attribute, "is %q in volume %q, which is read-only", dir, volumes[i].Name)
	}
}

// within reports whether a path is dir or below it.
func within(name, dir string) bool {
	name, dir = path.Clean(name), path.Clean(dir)
	return name == dir || strings.HasPrefix(name, dir+"/")
}
