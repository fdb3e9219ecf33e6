package training_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	rule "github.com/elastic-training/terraform-provider-elastic/internal/scheduler/checkpointage"
)

// Environment variables of the comparison of victims: how long each part lasts, and the arrivals.
const (
	victimsDurationVariable = "ELASTIC_VICTIMS_DURATION"
	victimsSeedVariable     = "ELASTIC_VICTIMS_SEED"
)

// What the comparison does: jobs that save every so many steps of a second fill a queue, and urgent Jobs of the size of
// one of them arrive at random.
var (
	savedEvery   = []int64{40, 25, 45, 30}
	arrivalLeast = 30 * time.Second
	arrivalMost  = time.Minute
	urgentRuns   = 10 * time.Second
	// victimsRule tells ages of up to a minute apart, and stays below the distance from no class to the lowest one.
	victimsRule = rule.Rule{Step: 7 * time.Second, Max: 9}
)

// By Kueue itself, and with the controller of elastic-trainer checkpoint-age, the same urgent Jobs arrive. Each of them
// has to be admitted, and each training job to go on after its last eviction. How much work was lost is logged: a few
// evictions in ten minutes are too few for a bound. It runs alone, in a cluster whose Kueue reads boosts. The jobs have
// no grace period: with one, an evicted master saves its state and nothing is lost.
func TestTrainingJobsGoOnAfterUrgentOnesWhicheverVictimIsChosen(t *testing.T) {
	if os.Getenv(soakVariable) == "" {
		t.Skip("it takes twenty minutes; make soak runs it")
	}
	duration := fromEnvironment(t, victimsDurationVariable, 10*time.Minute, time.ParseDuration)
	seed := fromEnvironment(t, victimsSeedVariable, 1, func(text string) (seed uint64, err error) {
		_, err = fmt.Sscan(text, &seed)
		return seed, err
	})
	var without, with outcome
	t.Run("by admission", func(t *testing.T) { without = victims(t, duration, seed) })
	t.Run("by checkpoint age", func(t *testing.T) {
		runCheckpointAge(t, victimsRule)
		with = victims(t, duration, seed)
	})
	if t.Failed() {
		return // a part has not counted all
	}
	t.Logf("of %v each, arrivals of seed %d:\nby admission:      %v\nby checkpoint age: %v", duration, seed, without, with)
	for part, o := range map[string]outcome{"by admission": without, "by checkpoint age": with} {
		if o.done == 0 || o.evictions == 0 {
			t.Errorf("%s: %v: no job was evicted, or none went on", part, o)
		}
	}
}

func fromEnvironment[T any](t *testing.T, variable string, otherwise T, parse func(string) (T, error)) T {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	given, err := parse(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return given
}

// outcome is what a part of the comparison has counted.
type outcome struct {
	done, lost, evictions int64
	waits                 []time.Duration // of the urgent Jobs, until Kueue admitted them; sorted
}

func (o outcome) String() string {
	if len(o.waits) == 0 {
		return "no urgent Job arrived"
	}
	sum := time.Duration(0)
	for _, w := range o.waits {
		sum += w
	}
	n := len(o.waits)
	return fmt.Sprintf("%d steps done, %d lost by %d evictions; %d urgent Jobs waited for %v on average, p95 %v, at most %v", o.done, o.lost, o.evictions,
		n, (sum / time.Duration(n)).Round(time.Millisecond), o.waits[(95*n+99)/100-1].Round(time.Millisecond), o.waits[n-1].Round(time.Millisecond))
}

// victims fills a queue with elastic jobs, lets urgent Jobs arrive, and counts.
func victims(t *testing.T, duration time.Duration, seed uint64) (o outcome) {
	q := newQueue(t, fmt.Sprint(2*len(savedEvery)))
	enforce(t, q.ns, "privileged") // host paths
	var jobs []*job
	for i, every := range savedEvery {
		jobs = append(jobs, start(t, q.saving(fmt.Sprintf("every-%d", every), every)))
		jobs[i].awaitStatus("steps", func(s trainingjob.Status) bool { return s.StepsDone > 0 })
	}
	began := time.Now()
	before := make([]int64, len(jobs)) // the steps that each had done when the last urgent Job was admitted
	for n, after := range arrivals(duration, seed) {
		pass(t, began.Add(after))
		o.waits = append(o.waits, q.arrives(jobs[0], fmt.Sprintf("urgent-%d", n)))
		for i, j := range jobs {
			before[i] = j.stepsDone()
		}
	}
	t.Logf("the urgent Jobs waited for %v", o.waits)
	slices.Sort(o.waits)
	for i, j := range jobs {
		s := j.awaitStatus("its last eviction's end", func(s trainingjob.Status) bool {
			recovered := s.Disruptions == nil || len(s.Disruptions.Newest) == 0 || s.Disruptions.Newest[len(s.Disruptions.Newest)-1].Recovered != nil
			return s.Phase == trainingjob.PhaseRunning && s.StepsDone > before[i] && recovered
		})
		lost, evictions := int64(0), s.Generation-1
		if s.Disruptions != nil {
			lost = s.Disruptions.LostSteps
		}
		o.done, o.lost, o.evictions = o.done+s.StepsDone, o.lost+lost, o.evictions+evictions
		t.Logf("%s: %d steps, %d lost by %d evictions", j.name, s.StepsDone, lost, evictions)
	}
	return o
}

// stepsDone is how many steps the status says.
func (j *job) stepsDone() int64 {
	j.Helper()
	s, err := j.status(j.Context())
	if err != nil {
		j.Fatal(err)
	}
	return s.StepsDone
}

// arrivals are when urgent Jobs come, the same ones for both parts.
func arrivals(duration time.Duration, seed uint64) (all []time.Duration) {
	random := rand.New(rand.NewPCG(seed, 0))
	gap := func() time.Duration {
		return arrivalLeast + time.Duration(random.Int64N(int64(arrivalMost-arrivalLeast)))
	}
	for at := gap(); at < duration; at += gap() {
		all = append(all, at)
	}
	return all
}

// pass lets time pass until a Job arrives.
func pass(t *testing.T, at time.Time) {
	t.Helper()
	select {
	case <-time.After(time.Until(at)):
	case <-t.Context().Done():
		t.Fatal(context.Cause(t.Context()))
	}
}

// saving is a job without an end, of a step a second, that saves every so many of them.
func (q *queue) saving(name string, every int64) trainingjob.Definition {
	q.Helper()
	d := paced(define(q.T, referenceModel), 500*time.Millisecond)
	d.Job.Name, d.Job.Namespace = name, q.ns
	d.Job.Training.GradsToWait, d.Job.Training.Epochs = 2, 1000
	d.Max = 1
	d.Job.Checkpoint, d.Job.Output = &trainingjob.Checkpoint{Steps: every}, "/output"
	d.Volumes = []trainingjob.Volume{{Name: "output", MountPath: d.Job.Output, HostPath: q.TempDir(), Mount: trainingjob.MountMaster}}
	d.Queue = &trainingjob.Queue{Name: "queue", PriorityClass: q.class(minimum), MinPriorityClass: q.class(minimum)}
	for _, of := range []*trainingjob.PodSettings{&d.Master, &d.Workers} {
		of.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
		of.TerminationGracePeriodSeconds = new(int64(0))
	}
	return d
}

// arrives makes an urgent Job of a training job's size, and returns how long it waited for its quota.
func (q *queue) arrives(j *job, name string) time.Duration {
	q.Helper()
	pods := int32(2)
	urgentJob := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{controllerconstants.QueueLabel: "queue", controllerconstants.WorkloadPriorityClassLabel: q.class(urgent)}},
		Spec: batchv1.JobSpec{
			Parallelism: &pods, Completions: &pods,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{nodeKind: stable},
				Containers: []corev1.Container{{
					Name: "idle", Image: idler, Args: []string{fmt.Sprint(urgentRuns.Seconds())},
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
				}},
			}},
		},
	}
	created := time.Now()
	_, err := j.client.BatchV1().Jobs(q.ns).Create(q.Context(), urgentJob, metav1.CreateOptions{})
	q.made(err)
	j.await("the admission of "+name, func(ctx context.Context) (string, bool, error) {
		live, err := j.client.BatchV1().Jobs(q.ns).Get(ctx, name, metav1.GetOptions{})
		return "it is suspended", err == nil && !*live.Spec.Suspend, err
	})
	return time.Since(created)
}
