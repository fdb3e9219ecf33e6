package workload

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// StoppingAnnotation is on a Job between its suspension and the restoration of its pod template, which takes several
// requests: one that is interrupted is gone on with.
const StoppingAnnotation = "kueue.x-k8s.io/stopping"

// ErrConflict means that an admission would change what a pod template has already. It is permanent.
var ErrConflict = errors.New("invalid admission check PodSetUpdate")

// Additions are what the admission of one pod set adds to its pods.
type Additions struct {
	Name         kueue.PodSetReference
	Count        int32
	Labels       map[string]string
	Annotations  map[string]string
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Gate keeps the pods back until each has its domain.
	Gate bool
}

// A FlavorReader looks a flavor up; it returns nil for one that is not there.
type FlavorReader func(name kueue.ResourceFlavorReference) *kueue.ResourceFlavor

// AdditionsOf are the additions of an admitted workload, in the order of its pod sets.
func AdditionsOf(w *kueue.Workload, flavor FlavorReader) ([]Additions, error) {
	var all []Additions
	for i, assignment := range w.Status.Admission.PodSetAssignments {
		a := Additions{
			Name:         assignment.Name,
			Count:        ptr.Deref(assignment.Count, w.Spec.PodSets[i].Count),
			Labels:       map[string]string{kueue.PodSetLabel: string(assignment.Name), kueue.LocalQueueLabel: string(w.Spec.QueueName)},
			Annotations:  map[string]string{kueue.WorkloadAnnotation: w.Name},
			NodeSelector: map[string]string{},
		}
		if assignment.TopologyAssignment != nil {
			a.Gate = true
			if r := w.Spec.PodSets[i].TopologyRequest; r == nil || r.Preferred == nil && r.Required == nil && r.Unconstrained == nil {
				a.Annotations[kueue.PodSetUnconstrainedTopologyAnnotation] = "true"
			}
		}
		if queue := string(w.Status.Admission.ClusterQueue); len(validation.IsDNS1123Label(queue)) == 0 {
			a.Labels[kueue.ClusterQueueLabel] = queue
		}
		seen := map[kueue.ResourceFlavorReference]bool{}
		for _, resource := range slices.Sorted(maps.Keys(assignment.Flavors)) {
			name := assignment.Flavors[resource]
			if seen[name] {
				continue
			}
			seen[name] = true
			f := flavor(name)
			if f == nil {
				return nil, fmt.Errorf("resourceflavors.kueue.x-k8s.io %q not found", name)
			}
			maps.Copy(a.NodeSelector, f.Spec.NodeLabels)
			a.Tolerations = append(a.Tolerations, f.Spec.Tolerations...)
		}
		for _, check := range w.Status.AdmissionChecks {
			for _, update := range check.PodSetUpdates {
				if update.Name != a.Name {
					continue
				}
				err := a.add(Additions{Labels: update.Labels, Annotations: update.Annotations, NodeSelector: update.NodeSelector, Tolerations: update.Tolerations})
				if err != nil {
					return nil, fmt.Errorf("in admission check %q: %w", check.Name, err)
				}
			}
		}
		all = append(all, a)
	}
	return all, nil
}

// add adds b to a; neither may contradict the other.
func (a *Additions) add(b Additions) error {
	for _, m := range []struct {
		what string
		to   *map[string]string
		from map[string]string
	}{{"annotations", &a.Annotations, b.Annotations}, {"labels", &a.Labels, b.Labels}, {"nodeSelector", &a.NodeSelector, b.NodeSelector}} {
		merged := maps.Clone(*m.to)
		for _, key := range slices.Sorted(maps.Keys(m.from)) {
			if have, there := merged[key]; there && have != m.from[key] {
				return fmt.Errorf("%w: conflict for %s: conflict for key=%v, value1=%v, value2=%v", ErrConflict, m.what, key, have, m.from[key])
			}
			if merged == nil {
				merged = map[string]string{}
			}
			merged[key] = m.from[key]
		}
		*m.to = merged
	}
	for _, t := range b.Tolerations {
		if !slices.ContainsFunc(a.Tolerations, func(have corev1.Toleration) bool {
			return have.MatchToleration(&t) && ptr.Equal(have.TolerationSeconds, t.TolerationSeconds)
		}) {
			a.Tolerations = append(slices.Clip(a.Tolerations), t)
		}
	}
	return nil
}

// apply puts the additions into a pod's or template's metadata and spec.
func (a Additions) apply(object *metav1.ObjectMeta, spec *corev1.PodSpec) error {
	merged := Additions{Labels: object.Labels, Annotations: object.Annotations, NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations}
	if err := merged.add(a); err != nil {
		return err
	}
	object.Labels, object.Annotations, spec.NodeSelector, spec.Tolerations = merged.Labels, merged.Annotations, merged.NodeSelector, merged.Tolerations
	return nil
}

// StartJob un-suspends a Job with what its admission adds. An error that is ErrConflict will not go away.
func StartJob(job *batchv1.Job, a Additions) error {
	job.Spec.Suspend = ptr.To(false)
	if jobMinPods(job) != nil {
		setParallelism(job, a.Count)
	}
	if gates := &job.Spec.Template.Spec.SchedulingGates; a.Gate {
		*gates = append(slices.Clip(*gates), corev1.PodSchedulingGate{Name: kueue.TopologyGate})
	}
	return a.apply(&job.Spec.Template.ObjectMeta, &job.Spec.Template.Spec)
}

// StartPod un-gates a pod with what its admission adds. One that is placed by topology keeps the gate of that.
func StartPod(pod *corev1.Pod, a Additions) error {
	if err := a.apply(&pod.ObjectMeta, &pod.Spec); err != nil {
		return err
	}
	pod.Spec.SchedulingGates = slices.DeleteFunc(slices.Clone(pod.Spec.SchedulingGates), func(g corev1.PodSchedulingGate) bool {
		return g.Name == kueue.AdmissionGate || g.Name == kueue.TopologyGate && !a.Gate
	})
	return nil
}

func setParallelism(job *batchv1.Job, pods int32) {
	job.Spec.Parallelism = ptr.To(pods)
	if job.Annotations[kueue.JobCompletionsEqualParallelismAnnotation] == "true" {
		job.Spec.Completions = ptr.To(pods)
	}
}

// JobSuspended reports whether a Job is suspended and has its own pod template back.
func JobSuspended(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.Suspend, false) && job.Annotations[StoppingAnnotation] != "true"
}

// JobChangeable reports whether a Job's pod template can be changed: it is suspended, and its own controller has
// stopped all its pods (Kubernetes v1.36, MutableSchedulingDirectivesForSuspendedJobs). Other controllers than
// Kubernetes' own may never say so.
func JobChangeable(job *batchv1.Job) bool {
	if ptr.Deref(job.Spec.ManagedBy, batchv1.JobControllerName) != batchv1.JobControllerName {
		return true
	}
	return job.Status.Active == 0 && slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionTrue
	})
}

// RestoreJob gives a suspended Job the pod template and parallelism that it had before its admission, as its workload
// remembers them; w is nil for a Job without one, which is left as it is.
func RestoreJob(job *batchv1.Job, w *kueue.Workload) {
	delete(job.Annotations, StoppingAnnotation)
	if w == nil || len(w.Spec.PodSets) == 0 {
		return
	}
	before := w.Spec.PodSets[0]
	if jobMinPods(job) != nil && ptr.Deref(job.Spec.Parallelism, 0) != before.Count {
		setParallelism(job, before.Count)
	}
	template := &job.Spec.Template
	labels := maps.Clone(before.Template.Labels)
	for _, key := range []string{"job-name", "controller-uid", batchv1.JobNameLabel, batchv1.ControllerUidLabel} {
		if value, there := template.Labels[key]; there {
			if labels == nil {
				labels = map[string]string{}
			}
			labels[key] = value
		}
	}
	template.Labels = labels
	template.Annotations = maps.Clone(before.Template.Annotations)
	template.Spec.NodeSelector = maps.Clone(before.Template.Spec.NodeSelector)
	template.Spec.Tolerations = slices.Clone(before.Template.Spec.Tolerations)
	template.Spec.SchedulingGates = slices.Clone(before.Template.Spec.SchedulingGates)
}
