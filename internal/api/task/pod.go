package task

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/accelerator"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/gang"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// start is the program of a task's container.
//
//go:embed start.sh
var start string

const (
	filesVolume   = "elastic-task"      // ConfigMap NAME-task
	filesDir      = "/etc/elastic-task" // where it is mounted
	scratchVolume = "elastic-scratch"   // the workdir, and in a gang the supervisor
	scratchDir    = "/elastic"
	workdirDir    = "workdir" // below each of the two
	supervisor    = scratchDir + "/bin/elastic-trainer"

	gangContainer = "gang" // the init container that brings the supervisor

	// indexLabel is the Job controller's, on every pod of an Indexed Job.
	indexLabel = "batch.kubernetes.io/job-completion-index"
	// stopSeconds of the grace period are left to the kubelet and to start.sh, which must be the one that ends.
	stopSeconds = 2

	// supervisorUser runs the init container: "nonroot" of the distroless images.
	supervisorUser = 65532
)

// podTemplate is the template of every pod of the task.
func (t Task) podTemplate(flavors []map[string]string) (corev1.PodTemplateSpec, error) {
	var place accelerator.Placement
	if len(t.Accelerators) > 0 {
		var err error
		if place, err = t.place(flavors); err != nil {
			return corev1.PodTemplateSpec{}, err
		}
	}
	container, err := t.container(place)
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	grace := t.gracePeriodSeconds()
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: trainingjob.Merge(t.Labels, objectLabels(t.Name)), Annotations: maps.Clone(t.Annotations)},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &grace,
			PriorityClassName:             t.PriorityClassName,
			NodeSelector:                  maps.Clone(t.NodeSelector),
			Tolerations:                   slices.Clone(t.Tolerations),
			// Variables for every Service of the namespace help nobody here and grow with the namespace.
			EnableServiceLinks: new(false),
			Containers:         []corev1.Container{container},
			Volumes:            t.volumes(),
		},
	}
	if t.Topology != nil {
		template.Annotations = trainingjob.Merge(template.Annotations, t.Topology.Annotations())
	}
	spec := &template.Spec
	if t.RuntimeClassName != "" {
		spec.RuntimeClassName = new(t.RuntimeClassName)
	}
	for _, name := range t.ImagePullSecrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	if place.Affinity != nil {
		spec.Affinity = &corev1.Affinity{NodeAffinity: place.Affinity}
	}
	switch {
	case t.ServiceAccountName != "":
		spec.ServiceAccountName = t.ServiceAccountName
	case t.gang():
		spec.ServiceAccountName = ServiceAccountName(t.Name)
	default:
		spec.AutomountServiceAccountToken = new(false)
	}
	spec.SecurityContext = t.security().OfPod(nil)
	if t.gang() {
		spec.InitContainers = []corev1.Container{t.gangContainer(container.Resources)}
	}
	spec.InitContainers = append(spec.InitContainers, trainingjob.InitContainers(t.InitContainers, container)...)
	return template, nil
}

func (t Task) container(place accelerator.Placement) (corev1.Container, error) {
	resources, err := t.resources(place)
	if err != nil {
		return corev1.Container{}, err
	}
	c := corev1.Container{
		Name:            ContainerName,
		Image:           t.Image,
		ImagePullPolicy: t.ImagePullPolicy,
		Command:         []string{"/bin/sh", filesDir + "/" + startKey, filesDir, scratchDir},
		Env:             t.env(place.Count),
		Resources:       resources,
		VolumeMounts: []corev1.VolumeMount{
			{Name: filesVolume, MountPath: filesDir, ReadOnly: true},
			{Name: scratchVolume, MountPath: scratchDir},
		},
		// A crash's last lines are then in the pod's status, where people and diagnostics look first.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          t.security().OfContainer(nil),
	}
	if t.gang() {
		c.Command = append(c.Command, supervisor, "gang", "run", "--task", t.Name)
		if t.Rejoin {
			c.Command = append(c.Command, "--rejoin")
		}
		c.Command = append(c.Command, "--")
	}
	for _, v := range t.Volumes {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: v.MountPath, ReadOnly: v.ReadOnly != nil && *v.ReadOnly})
	}
	return c, nil
}

// gangContainer puts the supervisor where the task's own image can execute it: it is one static program. It has the
// task's own CPU and memory for its moment, which adds nothing to what the pod needs, and satisfies a namespace whose
// quota wants every container to say something.
func (t Task) gangContainer(task corev1.ResourceRequirements) corev1.Container {
	return corev1.Container{
		Name:            gangContainer,
		Image:           t.TrainerImage,
		ImagePullPolicy: t.ImagePullPolicy,
		Args:            []string{"gang", "install", supervisor},
		Resources:       trainingjob.CPUAndMemory(task),
		VolumeMounts:    []corev1.VolumeMount{{Name: scratchVolume, MountPath: scratchDir}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			RunAsNonRoot:             new(true),
			RunAsUser:                new(int64(supervisorUser)),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// resources are the container's.
func (t Task) resources(place accelerator.Placement) (corev1.ResourceRequirements, error) {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, of := range []struct {
		name  corev1.ResourceName
		text  string
		parse func(string) (amount, error)
	}{
		{corev1.ResourceCPU, t.CPUs, parseCPUs},
		{corev1.ResourceMemory, t.Memory, parseMemory},
	} {
		if of.text == "" {
			continue
		}
		a, err := of.parse(of.text)
		if err != nil {
			return r, fmt.Errorf("%s %w", of.name, err)
		}
		r.Requests[of.name] = a.Quantity
		if !a.atLeast {
			r.Limits[of.name] = a.Quantity
		}
	}
	if place.Count > 0 {
		r.Requests[place.Resource], r.Limits[place.Resource] = count(place.Count), count(place.Count)
	}
	return r, nil
}

func (t Task) place(flavors []map[string]string) (accelerator.Placement, error) {
	table, err := accelerator.New(t.AcceleratorLabels)
	if err != nil {
		return accelerator.Placement{}, err
	}
	options := accelerator.Options{Ordered: t.Ordered}
	switch {
	case t.Queue != "" && flavors == nil:
		options.Refuse = table.Values()
	case t.Queue != "":
		options.Refuse = map[string][]string{}
		for _, labels := range flavors {
			for key, value := range labels {
				options.Refuse[key] = append(options.Refuse[key], value)
			}
		}
	}
	return table.Place(t.Accelerators, options)
}

// env are our variables, then the user's in order of name.
func (t Task) env(gpus int64) []corev1.EnvVar {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	vars := []corev1.EnvVar{
		field("MY_POD_IP", "status.podIP"),
		field("MY_POD_NAME", "metadata.name"),
		field("MY_POD_NAMESPACE", "metadata.namespace"),
		field("MY_POD_UID", "metadata.uid"),
		field("MY_JOB_UID", "metadata.labels['"+gang.PodLabel+"']"),
		{Name: "ELASTIC_STOP_SECONDS", Value: fmt.Sprint(max(0, t.gracePeriodSeconds()-stopSeconds))},
		{Name: "SKYPILOT_NUM_NODES", Value: fmt.Sprint(t.NumNodes)},
		{Name: "SKYPILOT_NUM_GPUS_PER_NODE", Value: fmt.Sprint(gpus)},
		// The same whatever number of times the task is run, as SkyPilot's managed jobs have it.
		{Name: "SKYPILOT_TASK_ID", Value: t.Name + "_$(MY_JOB_UID)"},
	}
	rank := corev1.EnvVar{Value: "0"}
	if t.gang() {
		rank = field("", "metadata.labels['"+indexLabel+"']")
	} else {
		vars = append(vars, corev1.EnvVar{Name: "SKYPILOT_NODE_IPS", Value: "$(MY_POD_IP)"})
	}
	for _, name := range []string{"SKYPILOT_NODE_RANK", "SKYPILOT_SETUP_NODE_RANK"} {
		rank.Name = name
		vars = append(vars, rank)
	}
	user := map[string]corev1.EnvVar{}
	for name, value := range t.Envs {
		user[name] = corev1.EnvVar{Name: name, Value: literal(value)}
	}
	for name, key := range t.Secrets {
		user[name] = secretVar(name, key)
	}
	for _, name := range t.SecretValues {
		user[name] = secretVar(name, SecretKey{SecretName: SecretName(t.Name), Key: name})
	}
	for _, name := range slices.Sorted(maps.Keys(user)) {
		vars = append(vars, user[name])
	}
	return vars
}

func secretVar(name string, key SecretKey) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: key.SecretName}, Key: key.Key,
	}}}
}

// literal keeps Kubernetes from reading $(NAME) and $$ in a value, which SkyPilot hands on as it is.
func literal(value string) string {
	if strings.Contains(value, "$(") || strings.Contains(value, "$$") {
		return strings.ReplaceAll(value, "$", "$$")
	}
	return value
}

func (t Task) volumes() []corev1.Volume {
	items := []corev1.KeyToPath{{Key: startKey, Path: startKey}, {Key: runKey, Path: runKey}}
	if t.Setup != "" {
		items = append(items, corev1.KeyToPath{Key: setupKey, Path: setupKey})
	}
	for i, name := range t.workdirFiles() {
		items = append(items, corev1.KeyToPath{Key: fileKey(i), Path: workdirDir + "/" + name})
	}
	volumes := []corev1.Volume{
		{Name: filesVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: ConfigMapName(t.Name)},
			Items:                items,
			DefaultMode:          new(int32(0o555)), // a program in the workdir can be executed
		}}},
		{Name: scratchVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	for _, v := range t.Volumes {
		volumes = append(volumes, corev1.Volume{Name: v.Name, VolumeSource: v.Source(v.ReadOnly != nil && *v.ReadOnly)})
	}
	return volumes
}

// workdirFiles are the paths of the workdir's files, in the order of their keys in the ConfigMap.
func (t Task) workdirFiles() []string { return slices.Sorted(maps.Keys(t.Workdir)) }

// gang reports whether the task's pods must be started, ended and restarted together.
func (t Task) gang() bool { return t.NumNodes > 1 }

func (t Task) gracePeriodSeconds() int64 {
	if t.TerminationGracePeriodSeconds != nil {
		return *t.TerminationGracePeriodSeconds
	}
	return trainingjob.DefaultTerminationGracePeriodSeconds
}

// objectLabels are on every object and pod of a task.
func objectLabels(name string) map[string]string {
	return map[string]string{
		LabelTask:                      name,
		"app.kubernetes.io/name":       "elastic-task",
		"app.kubernetes.io/instance":   name,
		"app.kubernetes.io/part-of":    "elastic-training",
		"app.kubernetes.io/managed-by": "terraform-provider-elastic",
	}
}
