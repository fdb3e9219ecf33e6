package trainingjob

import (
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
)

// Same reports whether two definitions make the same job, however each of them is written: what its master reads and
// the pods that it consists of are equal. A definition that makes no pods is the same as none.
func Same(a, b Definition) bool {
	x, errX := a.outcome()
	y, errY := b.outcome()
	return errX == nil && errY == nil && equality.Semantic.DeepEqual(x, y)
}

// outcome is all that a definition decides.
type outcome struct {
	Definition       Definition // canonical, and without what is in the pods
	MinPriorityClass string
	Master, Worker   corev1.PodTemplateSpec
}

func (d Definition) outcome() (outcome, error) {
	o := outcome{Definition: d.Canonical()}
	var err error
	if o.Master, err = o.Definition.MasterTemplate(); err != nil {
		return o, err
	}
	if o.Worker, err = o.Definition.WorkerTemplate(); err != nil {
		return o, err
	}
	// The minimum has the workers' own class where it is given none.
	o.MinPriorityClass = cmp.Or(d.MinPriorityClassName, o.Worker.Spec.PriorityClassName)
	o.Definition.MinPriorityClassName = ""
	o.Definition.Settings = Settings{ServiceAccountName: o.Definition.ServiceAccountName}
	for _, template := range []*corev1.PodTemplateSpec{&o.Master, &o.Worker} {
		*template = CanonicalTemplate(*template)
	}
	return o, nil
}

// Canonical is the one way to write a definition among all that make the same job: what has a default says it, and what
// has no order is sorted. Only pod_overrides can still say something that an attribute says too.
func (d Definition) Canonical() Definition {
	d.Job = d.Job.canonical()
	if d.Queue != nil {
		q := *d.Queue
		q.MinPriorityClass = q.MinClass()
		d.Queue = &q
	}
	d.ImagePullPolicy = cmp.Or(d.ImagePullPolicy, PullPolicy(d.Image))
	d.ImagePullSecrets = Sorted(d.ImagePullSecrets)
	d.Volumes = CanonicalVolumes(d.Volumes)
	for i, v := range d.Volumes {
		d.Volumes[i].Mount = cmp.Or(v.Mount, MountAll)
		if v.ReadOnly == nil && (v.Mount == MountMaster || v.Mount == MountWorkers) {
			d.Volumes[i].ReadOnly = new(v.Mount == MountWorkers && !d.writtenByWorkers(v))
		}
	}
	d.Master, d.Workers = d.Master.canonical(RoleMaster), d.Workers.canonical(RoleWorker)
	return d
}

func (j Job) canonical() Job {
	j.Data.Training, j.Data.Validation = canonicalSource(j.Data.Training), canonicalSource(j.Data.Validation)
	j.Training.Aggregation = cmp.Or(j.Training.Aggregation, AggregationMaster)
	if j.Step == 1 {
		j.Step = 0
	}
	if j.ProcessesPerWorker == 1 {
		j.ProcessesPerWorker = 0
	}
	if j.Restart != nil {
		j.Restart = j.Restart.Canonical()
	}
	if j.Output != "" {
		j.Output = path.Clean(j.Output)
	}
	checkpoint := Checkpoint{KeepMax: new(j.Keep())}
	if c := j.Checkpoint; c != nil {
		checkpoint.Steps, checkpoint.Directory = c.Steps, c.Directory
	}
	switch {
	case checkpoint.Directory != "":
		checkpoint.Directory = path.Clean(checkpoint.Directory)
	case j.Output != "":
		checkpoint.Directory = path.Join(j.Output, CheckpointsDir)
	}
	j.Checkpoint = &checkpoint
	return j
}

// Canonical leaves out the defaults, which are then no part of a job's identity; nil if nothing else is set.
func (r Restart) Canonical() *Restart {
	if r.IntervalSeconds == DefaultRestartIntervalSeconds {
		r.IntervalSeconds = 0
	}
	if r == (Restart{}) {
		return nil
	}
	return &r
}

// canonicalSource is one spelling of where records are: a path without "." and a slash at its end, the parameters of a
// generated data set all and in order.
func canonicalSource(source string) string {
	_, _, isURL := strings.Cut(source, "://")
	switch {
	case source == "":
		return ""
	case !isURL:
		return path.Clean(source)
	}
	// In object stores the key of an object and that of a directory differ by the slash at their ends.
	if set, err := dataset.ParseSynthetic(source); err == nil && strings.HasPrefix(source, dataset.SyntheticPrefix) {
		return set.String()
	}
	if set, err := dataset.ParseIndices(source); err == nil && strings.HasPrefix(source, dataset.IndicesPrefix) {
		return set.String()
	}
	return source
}

func (s PodSettings) canonical(role string) PodSettings {
	resources := DefaultResources(role)
	if s.Resources != nil {
		resources = *s.Resources.DeepCopy()
	}
	s.Resources = &resources
	requestLimits(s.Resources)
	if s.TerminationGracePeriodSeconds == nil {
		s.TerminationGracePeriodSeconds = new(int64(DefaultTerminationGracePeriodSeconds))
	}
	if s.Affinity != nil && equality.Semantic.DeepEqual(*s.Affinity, corev1.Affinity{}) {
		s.Affinity = nil
	}
	s.Tolerations = CanonicalTolerations(s.Tolerations)
	s.PodOverrides = CanonicalOverrides(s.PodOverrides)
	return s
}

// CanonicalOverrides are pod_overrides, or nil where they override nothing.
func CanonicalOverrides(patch json.RawMessage) json.RawMessage {
	var entries map[string]any
	if json.Unmarshal(patch, &entries) == nil && len(entries) == 0 {
		return nil
	}
	return patch
}

// CanonicalTolerations have their operators, and are in order: which comes first has no meaning.
func CanonicalTolerations(tolerations []corev1.Toleration) []corev1.Toleration {
	tolerations = slices.Clone(tolerations)
	for i, t := range tolerations {
		tolerations[i].Operator = cmp.Or(t.Operator, corev1.TolerationOpEqual)
	}
	slices.SortStableFunc(tolerations, func(a, b corev1.Toleration) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Value, b.Value))
	})
	return tolerations
}

// CanonicalVolumes are in order of their names, with paths that say nothing twice: which comes first has no meaning.
func CanonicalVolumes(volumes []Volume) []Volume {
	volumes = slices.Clone(volumes)
	for i, v := range volumes {
		if v.MountPath != "" {
			volumes[i].MountPath = path.Clean(v.MountPath)
		}
		if v.HostPath != "" {
			volumes[i].HostPath = path.Clean(v.HostPath)
		}
	}
	slices.SortStableFunc(volumes, func(a, b Volume) int { return cmp.Compare(a.Name, b.Name) })
	return volumes
}

// Sorted is a sorted copy without repetitions.
func Sorted[T cmp.Ordered](values []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

// CanonicalTemplate is a pod template in which what pod_overrides say has the API server's defaults, as far as the
// attributes have them.
func CanonicalTemplate(t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	t = *t.DeepCopy()
	t.Spec.Tolerations = CanonicalTolerations(t.Spec.Tolerations)
	if t.Spec.Affinity != nil && equality.Semantic.DeepEqual(*t.Spec.Affinity, corev1.Affinity{}) {
		t.Spec.Affinity = nil
	}
	slices.SortStableFunc(t.Spec.ImagePullSecrets, func(a, b corev1.LocalObjectReference) int { return cmp.Compare(a.Name, b.Name) })
	for _, containers := range [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			c.ImagePullPolicy = cmp.Or(c.ImagePullPolicy, PullPolicy(c.Image))
			requestLimits(&c.Resources)
			for j, m := range c.VolumeMounts {
				c.VolumeMounts[j].MountPath = path.Clean(m.MountPath)
			}
			slices.SortStableFunc(c.VolumeMounts, func(a, b corev1.VolumeMount) int { return cmp.Compare(a.MountPath, b.MountPath) })
		}
	}
	return t
}

// requestLimits has a container request what it is limited to, as the API server does where it requests nothing.
func requestLimits(r *corev1.ResourceRequirements) {
	requests := maps.Clone(r.Requests)
	for name, limit := range r.Limits {
		if _, ok := requests[name]; !ok {
			if requests == nil {
				requests = corev1.ResourceList{}
			}
			requests[name] = limit
		}
	}
	r.Requests = requests
}

// PullPolicy is the API server's default for an image: Always for the tag latest, which an image without tag and digest
// has, and IfNotPresent otherwise.
func PullPolicy(image string) corev1.PullPolicy {
	if image == "" {
		return ""
	}
	last := image[strings.LastIndex(image, "/")+1:]
	name, digest, _ := strings.Cut(last, "@")
	_, tag, _ := strings.Cut(name, ":")
	if cmp.Or(tag, digest, "latest") == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}
