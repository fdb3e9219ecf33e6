package trainingjob

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names of the volumes that every pod of a job has besides the user's.
const (
	jobVolume         = "elastic-job"
	credentialsVolume = "elastic-credentials"
	tokenVolume       = "elastic-token"   // of the API server, for a master
	scratchVolume     = "elastic-scratch" // where a script computes
	scriptVolume      = "elastic-script"  // sockets between a master and its script
)

// scratchDir is the one directory that a script may write to, by TMPDIR and HOME: the root file system is read-only. It
// is not /tmp, which may hold something on a simulated node, whose containers see the machine's files.
const scratchDir = "/elastic-scratch"

// killReserveSeconds is what remains of a pod's grace period when a command that does not end is killed: for the
// worker's last messages.
const killReserveSeconds = 5

// jobSelectorLabels are the labels by which the Job controller finds its pods. On a worker they would make the Job
// count it as its own.
var jobSelectorLabels = []string{
	"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name",
}

// MasterTemplate is the template of the Job's only pod. The master's container alone has the token of the API server
// and the job's key: other containers of the pod run what users bring.
func (d Definition) MasterTemplate() (corev1.PodTemplateSpec, error) {
	t := d.podTemplate(RoleMaster, d.Master)
	t.Spec.ServiceAccountName = d.serviceAccount()
	t.Spec.AutomountServiceAccountToken = new(false)
	c := &t.Spec.Containers[0]
	c.Args = []string{"master", "--job", ConfigDir + "/" + JobKey, "--listen", fmt.Sprintf("$(MY_POD_IP):%d", MasterPort), "--status-address", fmt.Sprintf("$(MY_POD_IP):%d", StatusPort), SignedFlag}
	c.Ports = []corev1.ContainerPort{
		{Name: "grpc", ContainerPort: MasterPort, Protocol: corev1.ProtocolTCP},
		{Name: "http", ContainerPort: StatusPort, Protocol: corev1.ProtocolTCP},
	}
	c.VolumeMounts = append([]corev1.VolumeMount{{Name: jobVolume, MountPath: ConfigDir, ReadOnly: true}}, c.VolumeMounts...)
	t.Spec.Volumes = append([]corev1.Volume{{
		Name: jobVolume,
		VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: ConfigMapName(d.Job.Name)},
			DefaultMode:          new(int32(0o444)),
		}},
	}}, t.Spec.Volumes...)
	if len(d.Job.Command) > 0 && !d.Job.OwnGroup() {
		d.addScript(&t)
	}
	c = &t.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: tokenVolume, MountPath: tokenDir, ReadOnly: true})
	t.Spec.Volumes = append(t.Spec.Volumes, tokenProjection())
	if d.Queue != nil {
		t.Annotations = withRequest(t.Annotations, d.Queue.Topology.OfCore(RoleMaster))
	}
	return override(t, RoleMaster, d.Master.PodOverrides)
}

// WorkerTemplate is the template in workers.json. A worker has no token of the API server and no private key: it
// learns everything from its master.
func (d Definition) WorkerTemplate() (corev1.PodTemplateSpec, error) {
	t := d.podTemplate(RoleWorker, d.Workers)
	t.Spec.AutomountServiceAccountToken = new(false)
	t.Spec.Containers[0].Args = []string{"worker"}
	if d.Job.OwnGroup() {
		t.Spec.Containers[0].Args = append(t.Spec.Containers[0].Args, "--elastic", d.Job.Elastic)
	}
	if d.Job.Restarts() {
		grace := *t.Spec.TerminationGracePeriodSeconds
		t.Spec.Containers[0].Args = append(t.Spec.Containers[0].Args, "--stop-grace", fmt.Sprintf("%ds", max(grace-killReserveSeconds, 1)))
	}
	return override(t, RoleWorker, d.Workers.PodOverrides)
}

func (d Definition) serviceAccount() string {
	return cmp.Or(d.ServiceAccountName, ServiceAccountName(d.Job.Name))
}

func (d Definition) podTemplate(role string, s PodSettings) corev1.PodTemplateSpec {
	resources := DefaultResources(role)
	if s.Resources != nil {
		resources = *s.Resources.DeepCopy()
	}
	grace := int64(DefaultTerminationGracePeriodSeconds)
	if s.TerminationGracePeriodSeconds != nil {
		grace = *s.TerminationGracePeriodSeconds
	}
	volumes, mounts := d.volumes(role)
	if len(d.Job.Command) > 0 && role == RoleWorker {
		s.Env = Merge(map[string]string{"HOME": scratchDir, "TMPDIR": scratchDir}, s.Env) // frameworks keep caches there
		volumes = append(volumes, emptyVolume(scratchVolume))
		mounts = append(mounts, corev1.VolumeMount{Name: scratchVolume, MountPath: scratchDir})
	}

	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      Merge(s.Labels, podLabels(d.Job.Name, role)),
			Annotations: maps.Clone(s.Annotations),
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &grace,
			PriorityClassName:             s.PriorityClassName,
			NodeSelector:                  maps.Clone(s.NodeSelector),
			Tolerations:                   append(slices.Clone(s.Tolerations), defaultTolerations()...),
			Affinity:                      s.Affinity.DeepCopy(),
			// Variables for every Service of the namespace help nobody here and grow with the namespace.
			EnableServiceLinks: new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:        new(true),
				RunAsUser:           new(int64(userID)),
				RunAsGroup:          new(int64(userID)),
				FSGroup:             new(int64(userID)),
				FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch), // a large volume is not walked at every start
				SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:            role,
				Image:           d.Image,
				ImagePullPolicy: d.ImagePullPolicy,
				Env:             env(s.Env),
				Resources:       resources,
				VolumeMounts:    mounts,
				// A crash's last lines are then in the pod's status, where people and diagnostics look first.
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					ReadOnlyRootFilesystem:   new(true),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
			Volumes: volumes,
		},
	}
	container := &t.Spec.Containers[0]
	t.Spec.SecurityContext = s.SecurityContext.OfPod(t.Spec.SecurityContext)
	container.SecurityContext = s.SecurityContext.OfContainer(container.SecurityContext)
	t.Spec.InitContainers = InitContainers(s.InitContainers, *container)
	if s.RuntimeClassName != "" {
		t.Spec.RuntimeClassName = new(s.RuntimeClassName)
	}
	for _, name := range d.ImagePullSecrets {
		t.Spec.ImagePullSecrets = append(t.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return t
}

// podLabels are the labels by which people and the provider find a job's pods.
func podLabels(job, role string) map[string]string {
	return Merge(objectLabels(job), map[string]string{LabelRole: role, "app.kubernetes.io/component": role})
}

// objectLabels are on every object of a job: the tutorial's two, and the recommended ones.
func objectLabels(job string) map[string]string {
	return map[string]string{
		LabelApp:                       "elasticdl",
		LabelJobName:                   job,
		"app.kubernetes.io/name":       "elastic-trainer",
		"app.kubernetes.io/instance":   job,
		"app.kubernetes.io/part-of":    "elastic-training",
		"app.kubernetes.io/managed-by": "terraform-provider-elastic",
	}
}

func defaultTolerations() []corev1.Toleration {
	toleration := func(key string) corev1.Toleration {
		return corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			TolerationSeconds: new(int64(unreachableSeconds)),
		}
	}
	return []corev1.Toleration{toleration(corev1.TaintNodeNotReady), toleration(corev1.TaintNodeUnreachable)}
}

// downwardEnv are the variables that every pod gets from the downward API, with the field of each.
var downwardEnv = []struct{ name, field string }{
	{"MY_POD_IP", "status.podIP"},
	{"MY_POD_NAME", "metadata.name"},
	{"MY_POD_NAMESPACE", "metadata.namespace"},
	{"MY_NODE_NAME", "spec.nodeName"},
}

// env puts our variables first, so that the user's may refer to them, and the user's in order of name.
func env(user map[string]string) []corev1.EnvVar {
	var vars []corev1.EnvVar
	for _, v := range downwardEnv {
		vars = append(vars, corev1.EnvVar{Name: v.name, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: v.field},
		}})
	}
	for _, name := range slices.Sorted(maps.Keys(user)) {
		vars = append(vars, corev1.EnvVar{Name: name, Value: user[name]})
	}
	return vars
}

// volumes are the credentials and the user's volumes that a role mounts. Group-readable files with fsGroup are
// readable by the pod's user, whatever their owner on the node. The private key is the master's alone.
func (d Definition) volumes(role string) ([]corev1.Volume, []corev1.VolumeMount) {
	items := []corev1.KeyToPath{
		{Key: TLSCertificateKey, Path: TLSCertificateKey},
		{Key: TokenKey, Path: TokenKey},
	}
	if role == RoleMaster {
		items = slices.Insert(items, 1, corev1.KeyToPath{Key: TLSPrivateKey, Path: TLSPrivateKey})
	}
	volumes := []corev1.Volume{{
		Name: credentialsVolume,
		VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName:  CredentialsName(d.Job.Name),
			Items:       items,
			DefaultMode: new(int32(0o440)),
		}},
	}}
	mounts := []corev1.VolumeMount{{Name: credentialsVolume, MountPath: CredentialsDir, ReadOnly: true}}
	for _, v := range d.Volumes {
		if !v.mountedBy(role) {
			continue
		}
		readOnly := role == RoleWorker && !d.writtenByWorkers(v)
		if v.ReadOnly != nil {
			readOnly = *v.ReadOnly
		}
		volumes = append(volumes, corev1.Volume{Name: v.Name, VolumeSource: v.Source(readOnly)})
		mounts = append(mounts, corev1.VolumeMount{Name: v.Name, MountPath: v.MountPath, ReadOnly: readOnly})
	}
	return volumes, mounts
}

// writtenByWorkers reports whether a volume holds the checkpoints of a script that writes them itself, or may hold
// them.
func (d Definition) writtenByWorkers(v Volume) bool {
	return d.Job.Restarts() && v.ConfigMap == "" || d.Job.Collectives() && within(d.Job.CheckpointRoot(), v.MountPath)
}

func (v Volume) mountedBy(role string) bool {
	switch v.Mount {
	case MountMaster:
		return role == RoleMaster
	case MountWorkers:
		return role == RoleWorker
	default:
		return true
	}
}

// Source is the volume as a pod names it.
func (v Volume) Source(readOnly bool) corev1.VolumeSource {
	switch {
	case v.PVC != "":
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: v.PVC, ReadOnly: readOnly,
		}}
	case v.HostPath != "":
		return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: v.HostPath}}
	case v.ConfigMap != "":
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: v.ConfigMap},
		}}
	default:
		dir := &corev1.EmptyDirVolumeSource{}
		if v.EmptyDir != nil {
			dir.Medium = v.EmptyDir.Medium
			dir.SizeLimit = v.EmptyDir.SizeLimit
		}
		return corev1.VolumeSource{EmptyDir: dir}
	}
}

// override applies the user's patch and then checks what the master and the provider rely on.
func override(t corev1.PodTemplateSpec, role string, patch json.RawMessage) (corev1.PodTemplateSpec, error) {
	out, err := PatchTemplate(t, patch)
	if err != nil {
		return t, fmt.Errorf("the %s's pod: %w", role, err)
	}
	return out, checkTemplate(t, out, role)
}

// StrategicMerge merges a strategic-merge patch into the JSON of an object of like's type. Package strategicmerge sets
// it, which everything imports that makes pod templates. The trainer makes none, and its image is 0.7 MB smaller
// without the library.
var StrategicMerge = func([]byte, []byte, any) ([]byte, error) {
	return nil, errors.New("this program is built without strategic-merge patches")
}

// PatchTemplate applies pod_overrides, a strategic-merge patch, to a pod template. What the patch says must be a pod's.
func PatchTemplate(t corev1.PodTemplateSpec, patch json.RawMessage) (corev1.PodTemplateSpec, error) {
	if len(patch) == 0 {
		return t, nil
	}
	original, err := json.Marshal(t)
	if err != nil {
		return t, fmt.Errorf("encode the pod template: %w", err)
	}
	merged, err := StrategicMerge(original, patch, corev1.PodTemplateSpec{})
	if err != nil {
		return t, fmt.Errorf("apply pod_overrides: %w", err)
	}
	var out corev1.PodTemplateSpec
	if err := StrictDecode(merged, &out); err != nil {
		return t, fmt.Errorf("pod_overrides do not make a pod: %w", err)
	}
	return out, nil
}

// checkTemplate refuses a pod that the job could not work with: one that would not be found by its labels, that the
// Job would count as its own, that restarts by itself, or whose first container is not ours.
func checkTemplate(ours, t corev1.PodTemplateSpec, role string) error {
	for _, key := range slices.Sorted(maps.Keys(ours.Labels)) {
		if t.Labels[key] != ours.Labels[key] {
			return fmt.Errorf("pod_overrides of the %s's pod change label %q, by which the job finds its pods; leave it out", role, key)
		}
	}
	for key := range t.Labels {
		if strings.HasPrefix(key, queueLabelPrefix) {
			return fmt.Errorf("pod_overrides of the %s's pod set label %q, which attribute queue is for; leave it out", role, key)
		}
	}
	if role == RoleWorker {
		for _, key := range append(slices.Clone(jobSelectorLabels), LabelJobUID, LabelWorkerID, LabelMinimum) {
			if _, ok := t.Labels[key]; ok {
				return fmt.Errorf("label %q of the workers' pods belongs to Kubernetes or to the master; leave it out", key)
			}
		}
	}
	if t.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return fmt.Errorf("pod_overrides of the %s's pod set restartPolicy %q; only Never works, the master and the Job make new pods", role, t.Spec.RestartPolicy)
	}
	if i := slices.IndexFunc(t.Spec.Containers, func(c corev1.Container) bool { return c.Name == role }); i < 0 {
		return fmt.Errorf("pod_overrides of the %s's pod remove container %q, which does the work", role, role)
	}
	return checkScript(ours, t)
}

// Merge is a copy of base with over on top.
func Merge(base, over map[string]string) map[string]string {
	out := maps.Clone(base)
	if out == nil {
		out = make(map[string]string, len(over))
	}
	maps.Copy(out, over)
	return out
}

// ReservedLabel reports whether a label of pods or objects is set by us, by the master or by Kubernetes' Job
// controller.
func ReservedLabel(key string) bool {
	if _, ours := objectLabels("")[key]; ours || slices.Contains(jobSelectorLabels, key) {
		return true
	}
	return key == "app.kubernetes.io/component" || strings.HasPrefix(key, "elastic-training.github.io/") || strings.HasPrefix(key, queueLabelPrefix)
}
