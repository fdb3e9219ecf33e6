package scenario

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	_ "github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob/strategicmerge" // for pod_overrides
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// creator creates objects of a kind.
type creator[T any] interface {
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
}

// create creates an object.
func create[T metav1.Object](ctx context.Context, at creator[T], object T) error {
	if _, err := at.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

// createQueues creates the file's priority classes, topologies, flavors, cohorts and queues.
func (p *replayRun) createQueues(ctx context.Context) error {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	var problems error
	for _, class := range p.File.PriorityClasses {
		made := &schedulingv1.PriorityClass{ObjectMeta: named(class.Name), Value: class.Value}
		if class.PreemptionPolicy != "" {
			made.PreemptionPolicy = &class.PreemptionPolicy
		}
		problems = errors.Join(problems, create(ctx, p.clients.kubernetes.SchedulingV1().PriorityClasses(), made))
	}
	queues := p.clients.kueue
	for _, class := range p.File.WorkloadPriorityClasses {
		problems = errors.Join(problems, create(ctx, queues.WorkloadPriorityClasses(), &kueue.WorkloadPriorityClass{ObjectMeta: named(class.Name), Value: class.Value}))
	}
	for _, t := range p.File.Topologies {
		problems = errors.Join(problems, create(ctx, queues.Topologies(), &kueue.Topology{ObjectMeta: named(t.Name), Spec: t.TopologySpec}))
	}
	for _, flavor := range p.File.ResourceFlavors {
		problems = errors.Join(problems, create(ctx, queues.ResourceFlavors(), &kueue.ResourceFlavor{ObjectMeta: named(flavor.Name), Spec: flavor.ResourceFlavorSpec}))
	}
	for _, cohort := range p.File.Cohorts {
		problems = errors.Join(problems, create(ctx, queues.Cohorts(), &kueue.Cohort{ObjectMeta: named(cohort.Name), Spec: cohort.CohortSpec}))
	}
	for _, queue := range p.File.ClusterQueues {
		spec := queue.ClusterQueueSpec
		if spec.NamespaceSelector == nil {
			spec.NamespaceSelector = &metav1.LabelSelector{} // every namespace, as the file means it; to Kueue nil is none
		}
		problems = errors.Join(problems, create(ctx, queues.ClusterQueues(), &kueue.ClusterQueue{ObjectMeta: named(queue.Name), Spec: spec}))
	}
	for _, queue := range p.File.LocalQueues {
		problems = errors.Join(problems, create(ctx, queues.LocalQueues(p.cluster.Namespace), &kueue.LocalQueue{ObjectMeta: named(queue.Name), Spec: queue.LocalQueueSpec}))
	}
	return problems
}

// requirements are the requests of a file as a pod needs them: for extended resources Kubernetes demands an equal
// limit.
func requirements(requests scenariofile.Resources) *corev1.ResourceRequirements {
	made := corev1.ResourceRequirements{Requests: corev1.ResourceList(requests), Limits: corev1.ResourceList{}}
	for name, amount := range requests {
		if strings.Contains(string(name), "/") {
			made.Limits[name] = amount
		}
	}
	return &made
}

// maxRestarts is more than the restarts of any pod in a replay.
const maxRestarts = 100

// submitGang creates a Job whose command sleeps as long as the gang computes, in each of its pods: Kueue admits and evicts
// all of them together. If the file needs a directory, the pods run until a file appears in it (runGangs).
func (p *replayRun) submitGang(ctx context.Context, job scenariofile.Job) error {
	g := job.Gang
	grace := int64(math.Ceil(p.real(*g.TerminationGracePeriod).Seconds()))
	// The shell waits for the sleep of its trap, like a program that takes a while to terminate.
	computes := fmt.Sprintf("sleep %.3f & wait", p.real(g.Runs).Seconds())
	var volumes []corev1.Volume
	var mounts []corev1.VolumeMount
	if needsDirectory(p.File) {
		computes = fmt.Sprintf("until [ -e %s ]; do sleep 0.2; done", path.Join(directoryMount, finishedFile(job.Name)))
		volumes = []corev1.Volume{{Name: directoryVolume, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: p.cluster.SharedDir}}}}
		mounts = []corev1.VolumeMount{{Name: directoryVolume, MountPath: directoryMount, ReadOnly: true}}
	}
	command := fmt.Sprintf("trap 'sleep %.3f; exit %d' TERM; %s", p.real(*g.Stops).Seconds(), task.ExitStopped, computes)
	made := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: job.Name},
		Spec: batchv1.JobSpec{
			Parallelism: new(int32(g.Pods)), Completions: new(int32(g.Pods)),
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action:          batchv1.PodFailurePolicyActionIgnore,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
			}}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: g.Labels, Annotations: g.Topology.Annotations()},
				Spec: corev1.PodSpec{
					RestartPolicy:                 corev1.RestartPolicyNever,
					TerminationGracePeriodSeconds: &grace,
					PriorityClassName:             g.PriorityClass,
					NodeSelector:                  g.NodeSelector, Tolerations: g.Tolerations, Affinity: g.Affinity,
					Containers: []corev1.Container{{
						Name: task.ContainerName, Image: task.DefaultImage,
						Command: []string{"sh", "-c", command}, Resources: *requirements(g.Requests), VolumeMounts: mounts,
					}},
					Volumes: volumes,
				},
			},
		},
	}
	if g.Topology != nil {
		// Kueue places pods in the order of their indexes. The Job controller delays a pod by the failures of its own index,
		// 10 s after the first one; by those of all pods it would be 80 s after a failed node with four pods.
		made.Spec.CompletionMode, made.Spec.BackoffLimitPerIndex = new(batchv1.IndexedCompletion), new(int32(maxRestarts))
	}
	if g.Queue != "" {
		made.Labels = map[string]string{task.LabelQueue: g.Queue}
		if g.WorkloadPriorityClass != "" {
			made.Labels[task.LabelPriorityClass] = g.WorkloadPriorityClass
		}
		made.Spec.Suspend = new(true)
	}
	if err := create(ctx, p.clients.kubernetes.BatchV1().Jobs(p.cluster.Namespace), made); err != nil {
		return err
	}
	p.sizes[job.Name] = g.Pods
	return nil
}

// minGradient is the shortest gradient that workers can keep to reliably. Shorter ones of a file are merged, so that
// the job lasts as long with fewer steps.
const minGradient = 20 * time.Millisecond

// work returns the number of steps of an elastic job in a replay, and the duration of each gradient.
func (p *replayRun) work(e *scenariofile.Elastic) (steps int64, gradient time.Duration) {
	gradient = p.real(e.Speed.Gradient)
	together := max(1, int64(math.Ceil(float64(minGradient)/float64(gradient))))
	return (e.Steps + together - 1) / together, gradient * time.Duration(together)
}

// recordsPerTask is the task size of the synthetic data; every minibatch is one record.
const recordsPerTask = 100

// learningRate is low enough for minibatches of one record, so that the loss stays finite. The model itself does not
// matter.
const learningRate = 1e-3

// definition is an elastic job of the file with a number of workers.
func (p *replayRun) definition(job scenariofile.Job, minimum, maximum int) trainingjob.Definition {
	e := job.Elastic
	steps, gradient := p.work(e)
	d := trainingjob.Definition{
		Job: trainingjob.Job{
			Name: job.Name, Namespace: p.cluster.Namespace,
			Data: trainingjob.Data{
				Training: fmt.Sprintf("synthetic://digits?records=%d&seed=1", steps*int64(e.Speed.GradsToWait)),
				Format:   "recordio", Codec: "bytes", RecordsPerTask: recordsPerTask,
			},
			Training: trainingjob.Training{Epochs: 1, MinibatchSize: 1, GradsToWait: e.Speed.GradsToWait, Seed: 1, LearningRate: new(learningRate)},
		},
		ModelText: p.model,
		Min:       minimum, Max: maximum,
		MinPriorityClassName: e.Workers.MinPriorityClass,
	}
	if q := e.Queue; q != nil {
		d.Queue = &trainingjob.Queue{Name: q.Name, PriorityClass: q.PriorityClass, MinPriorityClass: q.MinPriorityClass, Topology: e.Topology}
	}
	if e.CheckpointEvery > 0 {
		step := gradient * time.Duration((e.Speed.GradsToWait+maximum-1)/maximum)
		d.Job.Checkpoint = &trainingjob.Checkpoint{Steps: max(1, int64(p.real(e.CheckpointEvery)/step))} // in ConfigMap NAME-model
	}
	d.Image = p.cluster.Image
	d.Master, d.Workers = podSettings(e.Master), podSettings(e.Workers.Pod)
	d.Workers.PodOverrides = fmt.Appendf(nil, `{"spec":{"containers":[{"name":%q,"args":["worker","--pace","%v"]}]}}`, trainingjob.RoleWorker, gradient)
	return d
}

func podSettings(pod scenariofile.Pod) trainingjob.PodSettings {
	grace := int64(math.Ceil(pod.TerminationGracePeriod.Std().Seconds()))
	return trainingjob.PodSettings{
		PriorityClassName: pod.PriorityClass, Resources: requirements(pod.Requests),
		NodeSelector: pod.NodeSelector, Tolerations: pod.Tolerations, Affinity: pod.Affinity, Labels: pod.Labels,
		TerminationGracePeriodSeconds: &grace,
	}
}

// submitElastic creates a job's objects in the provider's order: the Job, which owns all others, starts when they
// exist.
func (p *replayRun) submitElastic(ctx context.Context, job scenariofile.Job) error {
	d := p.definition(job, job.Elastic.Workers.Min, job.Elastic.Workers.Max)
	credentials, err := trainingjob.NewCredentials(rand.Reader, time.Now(), trainingjob.MasterName(job.Name))
	if err != nil {
		return err
	}
	objects, err := trainingjob.Render(d, credentials)
	if err != nil {
		return err
	}
	client, namespace := p.clients.kubernetes, p.cluster.Namespace
	jobs, core, rbac := client.BatchV1().Jobs(namespace), client.CoreV1(), client.RbacV1()
	owner, err := jobs.Create(ctx, objects.Job, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create Job %s: %w", job.Name, err)
	}
	objects.Own(trainingjob.JobRef{Name: job.Name, Namespace: namespace, UID: owner.UID})
	if err := errors.Join(
		create(ctx, core.ConfigMaps(namespace), objects.ConfigMap),
		create(ctx, core.ConfigMaps(namespace), objects.Status),
		create(ctx, core.ConfigMaps(namespace), objects.Model),
		create(ctx, core.Secrets(namespace), objects.Credentials),
		create(ctx, core.ServiceAccounts(namespace), objects.ServiceAccount),
		create(ctx, rbac.Roles(namespace), objects.Role),
		create(ctx, rbac.RoleBindings(namespace), objects.RoleBinding),
		create(ctx, client.CoordinationV1().Leases(namespace), objects.Lease),
	); err != nil {
		return err
	}
	service, err := core.Services(namespace).Create(ctx, objects.Service, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create Service %s: %w", objects.Service.Name, err)
	}
	if objects.MinJob != nil {
		objects.SetMasterAddress(trainingjob.MasterAddress(service))
		if err := create(ctx, jobs, objects.MinJob); err != nil {
			return err
		}
	}
	if _, err := jobs.Patch(ctx, job.Name, types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("unsuspend Job %s: %w", job.Name, err)
	}
	p.sizes[job.Name] = job.Elastic.Workers.Max
	return nil
}

// resize changes a job's number of workers as the provider does: in its ConfigMap, which the master watches, signed
// with the job's credentials.
func (p *replayRun) resize(ctx context.Context, job scenariofile.Job, size scenariofile.Resize) error {
	secret, err := p.clients.kubernetes.CoreV1().Secrets(p.cluster.Namespace).Get(ctx, trainingjob.CredentialsName(job.Name), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the credentials of %s: %w", job.Name, err)
	}
	objects, err := trainingjob.Render(p.definition(job, size.Min, size.Max), trainingjob.CredentialsOf(secret))
	if err != nil {
		return err
	}
	configMaps := p.clients.kubernetes.CoreV1().ConfigMaps(p.cluster.Namespace)
	live, err := configMaps.Get(ctx, objects.ConfigMap.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", objects.ConfigMap.Name, err)
	}
	live.Data = objects.ConfigMap.Data
	if _, err := configMaps.Update(ctx, live, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", live.Name, err)
	}
	p.sizes[job.Name] = size.Max
	return nil
}
