package trainingjob

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A job with a command computes with a script of the user's, and its master runs a copy of the script to apply updates.
// The copy runs in a container of its own, a sidecar of the master's: the containers of a pod share neither files nor
// processes, so that the script sees no token of the API server, no key of the job's and no memory of the master.

// scriptContainer is the name of the container of the master's pod in which the script runs.
const scriptContainer = "script"

// ScriptSharedDir is the directory that both containers see: the master makes sockets in it, and the script's container
// has it read-only. ScriptSharedFlag passes its path to the master.
const (
	ScriptSharedDir  = "/elastic-script"
	ScriptSharedFlag = "--script-shared"
)

// tokenDir is where Kubernetes' clients look for a pod's token, and tokenSeconds its life when Kubernetes mounts it.
const (
	tokenDir     = "/var/run/secrets/kubernetes.io/serviceaccount"
	tokenSeconds = 3607
)

// addScript adds the script's container to a master's pod. A sidecar begins before the master and is ended after it,
// and the pod's end is the master's.
func (d Definition) addScript(t *corev1.PodTemplateSpec) {
	master := &t.Spec.Containers[0]
	script := master.DeepCopy()
	script.Name, script.Args, script.Ports = scriptContainer, []string{"script", "--shared", ScriptSharedDir}, nil
	script.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	script.Env = env(Merge(map[string]string{"HOME": scratchDir, "TMPDIR": scratchDir}, d.Master.Env)) // frameworks keep caches there
	script.VolumeMounts = append(d.scriptMounts(),
		corev1.VolumeMount{Name: scriptVolume, MountPath: ScriptSharedDir, ReadOnly: true},
		corev1.VolumeMount{Name: scratchVolume, MountPath: scratchDir},
	)
	master.Resources, script.Resources = shared(master.Resources)
	master.Args = append(master.Args, ScriptSharedFlag, ScriptSharedDir)
	master.VolumeMounts = append(master.VolumeMounts, corev1.VolumeMount{Name: scriptVolume, MountPath: ScriptSharedDir})
	t.Spec.Volumes = append(t.Spec.Volumes, emptyVolume(scriptVolume), emptyVolume(scratchVolume))
	t.Spec.InitContainers = append(t.Spec.InitContainers, *script)
}

// scriptMounts are the user's volumes of the master's pod as a worker has them: a script that writes to the master's
// checkpoints would decide what the job continues from.
func (d Definition) scriptMounts() []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	for _, v := range d.Volumes {
		if v.mountedBy(RoleMaster) {
			mounts = append(mounts, corev1.VolumeMount{Name: v.Name, MountPath: v.MountPath, ReadOnly: v.ReadOnly == nil || *v.ReadOnly})
		}
	}
	return mounts
}

// checkScript refuses a master's pod in which the user's patch gives the script what it must not have.
func checkScript(ours, t corev1.PodTemplateSpec) error {
	if !slices.ContainsFunc(ours.Spec.InitContainers, isScript) {
		return nil
	}
	i := slices.IndexFunc(t.Spec.InitContainers, isScript)
	if i < 0 {
		return fmt.Errorf("pod_overrides of the master's pod remove container %q, which runs workers.command", scriptContainer)
	}
	for _, m := range t.Spec.InitContainers[i].VolumeMounts {
		if m.Name == credentialsVolume || m.Name == tokenVolume || m.Name == scriptVolume && !m.ReadOnly {
			return fmt.Errorf("pod_overrides of the master's pod mount volume %q in container %q; only the master may use it", m.Name, scriptContainer)
		}
	}
	for field, set := range map[string]*bool{
		"shareProcessNamespace": t.Spec.ShareProcessNamespace, "hostPID": &t.Spec.HostPID, "automountServiceAccountToken": t.Spec.AutomountServiceAccountToken,
	} {
		if set != nil && *set {
			return fmt.Errorf("pod_overrides of the master's pod set %s, by which the script of workers.command could read the master's token and key; leave it out", field)
		}
	}
	return nil
}

func isScript(c corev1.Container) bool { return c.Name == scriptContainer }

// shared divides a master's resources between it and its script, so that the pod asks for as much as without the second
// container: half of what is requested is each one's, and each may use up to the limits. What cannot be divided
// (devices, huge pages) is the script's.
func shared(all corev1.ResourceRequirements) (master, script corev1.ResourceRequirements) {
	master.Limits, script.Limits = corev1.ResourceList{}, all.Limits
	master.Requests, script.Requests = corev1.ResourceList{}, corev1.ResourceList{}
	script.Claims = all.Claims
	divided := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	for name, limit := range all.Limits {
		if slices.Contains(divided, name) {
			master.Limits[name] = limit
		}
		script.Requests[name] = limit // which is Kubernetes' default
	}
	maps.Copy(script.Requests, all.Requests)
	for _, name := range divided {
		if request, ok := script.Requests[name]; ok {
			master.Requests[name] = half(name, request)
			request.Sub(master.Requests[name])
			script.Requests[name] = request
		}
	}
	return master, script
}

// half is half of an amount, rounded down to what Kubernetes counts in.
func half(name corev1.ResourceName, amount resource.Quantity) resource.Quantity {
	if name == corev1.ResourceCPU {
		return *resource.NewMilliQuantity(amount.MilliValue()/2, amount.Format)
	}
	return *resource.NewQuantity(amount.Value()/2, amount.Format)
}

// tokenProjection is what Kubernetes mounts into every container by itself when automountServiceAccountToken is on.
func tokenProjection() corev1.Volume {
	return corev1.Volume{Name: tokenVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(int32(0o444)),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(tokenSeconds))}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
}

func emptyVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}
