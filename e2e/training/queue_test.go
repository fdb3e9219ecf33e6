package training_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"

	kueueclient "github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/client"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// The classes of every queue of these tests.
const (
	burst   = "burst"
	minimum = "minimum"
	urgent  = "urgent"
)

// queue is a queue of CPUs in a namespace of its own.
type queue struct {
	*testing.T
	kueue *kueueclient.Client
	ns    string
}

// newQueue makes a queue, in which higher priority evicts lower.
func newQueue(t *testing.T, cpus string) *queue {
	t.Helper()
	client, err := cluster.Kueue()
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{T: t, kueue: client, ns: cluster.Namespace(t)}
	t.Cleanup(q.explain)
	named := metav1.ObjectMeta{Name: q.ns} // cluster-wide: a test's own
	o := metav1.CreateOptions{}
	_, err = client.ResourceFlavors().Create(t.Context(), &kueue.ResourceFlavor{ObjectMeta: named}, o)
	q.made(err)
	_, err = client.ClusterQueues().Create(t.Context(), &kueue.ClusterQueue{ObjectMeta: named, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{},
		ResourceGroups: []kueue.ResourceGroup{{
			CoveredResources: []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory},
			Flavors: []kueue.FlavorQuotas{{Name: kueue.ResourceFlavorReference(q.ns), Resources: []kueue.ResourceQuota{
				{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse(cpus)},
				{Name: corev1.ResourceMemory, NominalQuota: resource.MustParse("1Ti")},
			}}},
		}},
		Preemption: &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority},
	}}, o)
	q.made(err)
	_, err = client.LocalQueues(q.ns).Create(t.Context(), &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Name: "queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(q.ns)},
	}, o)
	q.made(err)
	for class, value := range map[string]int32{burst: 10, minimum: 100, urgent: 1000} {
		_, err = client.WorkloadPriorityClasses().Create(t.Context(), &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: q.class(class)}, Value: value}, o)
		q.made(err)
	}
	return q
}

func (q *queue) made(err error) {
	q.Helper()
	if err != nil {
		q.Fatal(err)
	}
}

func (q *queue) class(name string) string { return name + "-" + q.ns }

// define is a job of 150 steps in this queue, one CPU a worker and a few for the master.
func (q *queue) define(most int, masterCPUs string) trainingjob.Definition {
	q.Helper()
	d := paced(define(q.T, referenceModel), 50*time.Millisecond)
	d.Job.Namespace = q.ns
	d.Job.Data.Training = "synthetic://digits?records=6000&seed=1"
	d.Max = most
	d.Queue = &trainingjob.Queue{Name: "queue", PriorityClass: q.class(burst), MinPriorityClass: q.class(minimum)}
	d.Master.Resources.Requests[corev1.ResourceCPU] = resource.MustParse(masterCPUs)
	d.Workers.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
	return d
}

// urgent is a Job of others that wants so many CPUs, until it is deleted.
func (q *queue) urgent(j *job, cpus int32) (remove func()) {
	q.Helper()
	idle := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "urgent", Labels: map[string]string{controllerconstants.QueueLabel: "queue", controllerconstants.WorkloadPriorityClassLabel: q.class(urgent)}},
		Spec: batchv1.JobSpec{
			Parallelism: &cpus, Completions: &cpus,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{nodeKind: stable}, TerminationGracePeriodSeconds: new(int64(0)),
				Containers: []corev1.Container{{
					Name: "idle", Image: idler, Args: []string{"3600"},
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
				}},
			}},
		},
	}
	_, err := j.client.BatchV1().Jobs(q.ns).Create(q.Context(), idle, metav1.CreateOptions{})
	q.made(err)
	return func() {
		q.Helper()
		q.made(j.client.BatchV1().Jobs(q.ns).Delete(q.Context(), "urgent", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}))
	}
}

// group is the workload of the job's master and minimum workers.
func (q *queue) group(ctx context.Context, j *job) (*kueue.Workload, error) {
	return q.kueue.Workloads(q.ns).Get(ctx, trainingjob.GroupOf(j.objects.MinJob.Spec.Template.Labels), metav1.GetOptions{})
}

// awaitGroup waits until the group's condition is true.
func (q *queue) awaitGroup(j *job, condition string) *kueue.Workload {
	q.Helper()
	var found *kueue.Workload
	j.await("the group's condition "+condition, func(ctx context.Context) (string, bool, error) {
		w, err := q.group(ctx, j)
		if err != nil {
			return "", false, err
		}
		found = w
		return fmt.Sprintf("%+v", w.Status.Conditions), meta.IsStatusConditionTrue(w.Status.Conditions, condition), nil
	})
	return found
}

// awaitNothingHeld waits until the queue's whole quota is free: nothing of a job that is over is kept.
func (q *queue) awaitNothingHeld(j *job) {
	q.Helper()
	j.await("the queue's whole quota", func(ctx context.Context) (string, bool, error) {
		live, err := q.kueue.ClusterQueues().Get(ctx, q.ns, metav1.GetOptions{})
		if err != nil {
			return "", false, err
		}
		return fmt.Sprintf("%+v", live.Status), live.Status.ReservingWorkloads == 0 && live.Status.PendingWorkloads == 0, nil
	})
	j.await("pods without Kueue's finalizer", func(ctx context.Context) (string, bool, error) {
		pods, err := j.pods(ctx, "")
		held := slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !slices.Contains(p.Finalizers, podconstants.PodFinalizer) })
		return names(held), len(held) == 0, err
	})
}

// explain prints what Kueue says of a queue whose test failed.
func (q *queue) explain() {
	if !q.Failed() {
		return
	}
	cluster.LogState(q.T, q.ns)
}

// runs waits until the job has exactly that many workers at work.
func (j *job) runs(workers int) trainingjob.Status {
	j.Helper()
	return j.awaitStatus(strconv.Itoa(workers)+" workers", func(s trainingjob.Status) bool {
		return s.WorkersRunning == workers && s.Phase == trainingjob.PhaseRunning
	})
}

// uids are those of the job's pods that run, by their names.
func (j *job) uids(ok func(corev1.Pod) bool) map[string]types.UID {
	j.Helper()
	pods, err := j.pods(j.Context(), "")
	if err != nil {
		j.Fatal(err)
	}
	found := map[string]types.UID{}
	for _, p := range running(pods) {
		if ok(p) {
			found[p.Name] = p.UID
		}
	}
	return found
}

func inGroup(p corev1.Pod) bool { return trainingjob.GroupOf(p.Labels) != "" }

func TestAJobUnderAQueueShrinksInsteadOfBeingEvictedAndGrowsBack(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "5")
	d := q.define(4, "1")
	d.Job.Data.Training = "synthetic://digits?records=12000&seed=1" // 300 steps: it grows back before its end on a busy machine, too
	j := start(t, d)
	j.runs(4)
	group := j.uids(inGroup)
	if len(group) != 2 {
		t.Fatalf("the group of master and minimum workers is %v", group)
	}

	remove := q.urgent(j, 2)
	shrunk := j.runs(2)
	j.awaitStatus("steps with two workers", func(s trainingjob.Status) bool { return s.StepsDone >= shrunk.StepsDone+5 })
	j.awaitWorkers("two workers in line again, under new names", func(pods []corev1.Pod) bool {
		waiting := slices.DeleteFunc(living(pods), func(p corev1.Pod) bool { return len(p.Spec.SchedulingGates) == 0 })
		slices.SortFunc(waiting, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
		return len(waiting) == 2 && waiting[0].Name == j.name+"-worker-4" && waiting[1].Name == j.name+"-worker-5"
	})
	remove()
	s := j.awaitStatus("four workers, and the record of both preemptions", func(s trainingjob.Status) bool {
		d := s.Disruptions
		return s.WorkersRunning == 4 && s.Phase == trainingjob.PhaseRunning && d != nil && len(d.Newest) == 2 && d.Newest[0].FullSize != nil
	})
	if s.Preemptions != 2 {
		t.Errorf("%d preemptions were counted", s.Preemptions)
	}
	for _, d := range s.Disruptions.Newest {
		if d.Kind != trainingjob.DisruptionPreempted || d.Reason != kueue.InClusterQueueReason || d.ByUID == "" || d.Recovered == nil {
			t.Errorf("a preemption by Kueue is recorded as %+v", d)
		}
	}

	hash := j.awaitSuccess()
	if want := localOf(t, d); hash != want {
		t.Errorf("hash %s, and on one machine %s", hash, want)
	}
	w := q.awaitGroup(j, kueue.WorkloadFinished)
	if evictions := w.Status.SchedulingStats; evictions != nil && len(evictions.Evictions) > 0 {
		t.Errorf("the group was evicted: %+v", evictions)
	}
	pods, err := j.pods(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if inGroup(p) && group[p.Name] != p.UID {
			t.Errorf("pod %s came later", p.Name)
		}
	}
	q.awaitNothingHeld(j)
}

func TestWhenMasterAndMinimumAreEvictedTheOtherWorkersLeaveAndTheJobIsQueuedAgain(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "5")
	// The group has four CPUs and the worker above it one. Four CPUs are had by evicting the group alone, and Kueue's
	// way of choosing victims does that: a worker of the lowest priority is put back when the group's room suffices.
	d := q.define(2, "3")
	j := start(t, d)
	j.runs(2)
	before := j.uids(inGroup)
	above := j.uids(func(p corev1.Pod) bool {
		return p.Labels[trainingjob.LabelRole] == trainingjob.RoleWorker && !inGroup(p)
	})
	if len(above) != 1 {
		t.Fatalf("above the minimum are %v", above)
	}

	remove := q.urgent(j, 4)
	j.await("the end of every pod", func(ctx context.Context) (string, bool, error) {
		pods, err := j.pods(ctx, "")
		return names(running(pods)), len(running(pods)) == 0, err
	})
	q.awaitGroup(j, kueue.WorkloadEvicted)
	for name := range above {
		text, err := j.client.CoreV1().Events(q.ns).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range text.Items {
			if e.Reason == "Stopped" {
				t.Errorf("the queue took %s, which this test is not about: %s", name, e.Message)
			}
		}
	}
	j.await("the event of the eviction", func(ctx context.Context) (string, bool, error) {
		events, err := j.client.CoreV1().Events(q.ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=Evicted"})
		if err != nil {
			return "", false, err
		}
		return "no such event", slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.InvolvedObject.UID == j.uid }), nil
	})

	remove()
	hash := j.awaitSuccess()
	record := j.awaitStatus("the record of the master's eviction", func(s trainingjob.Status) bool { return s.Disruptions != nil }).Disruptions
	evicted := slices.DeleteFunc(slices.Clone(record.Newest), func(d trainingjob.Disruption) bool { return d.Role != trainingjob.RoleMaster })
	if len(evicted) != 1 || evicted[0].Reason != kueue.InClusterQueueReason || evicted[0].ByUID == "" || evicted[0].Recovered == nil || record.LostSeconds <= 0 {
		t.Errorf("recorded are %+v", record)
	}
	if want := localOf(t, d); hash != want {
		t.Errorf("hash %s, and on one machine %s", hash, want)
	}
	after, err := j.pods(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range after {
		if before[p.Name] != "" {
			t.Errorf("pod %s of the evicted group is still there", p.Name)
		}
	}
	q.awaitGroup(j, kueue.WorkloadFinished)
	q.awaitNothingHeld(j)
}

func TestAMinimumWorkerThatDiesIsReplacedInItsGroup(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "3")
	d := q.define(2, "1")
	j := start(t, d)
	j.runs(2)
	if err := syscall.Kill(j.worker(0), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	j.awaitStatus("the loss", func(s trainingjob.Status) bool { return s.WorkersRunning < 2 })
	j.runs(2)
	if hash, want := j.awaitSuccess(), localOf(t, d); hash != want {
		t.Errorf("hash %s, and on one machine %s", hash, want)
	}
	q.awaitGroup(j, kueue.WorkloadFinished)
	q.awaitNothingHeld(j)
}

func TestAQueuedJobThatFailsHoldsNoQuota(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "3")
	d := q.define(2, "1")
	d.ModelText = "import nothing\n"
	j := start(t, d)
	j.awaitStatus("failure", func(s trainingjob.Status) bool { return s.Phase == trainingjob.PhaseFailed })
	j.await("the Job's failure", func(ctx context.Context) (string, bool, error) { return j.condition(ctx, batchv1.JobFailed) })
	q.awaitNothingHeld(j)
}
