package workload_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

func TestNames(t *testing.T) {
	t.Run("are those that Kueue gives", func(t *testing.T) {
		// printf 'Job\nbatch\nlow\n5d4d0c5a' | sha1sum
		if got := workload.NameFor(workload.JobKind, "low", "5d4d0c5a"); got != "job-low-2bc12" {
			t.Error(got)
		}
	})
	t.Run("can be labels, and differ when an owner is created anew", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			name := rapid.StringMatching(`[a-z][a-z0-9-]{0,70}[a-z0-9]`).Draw(t, "name")
			a, b := workload.NameFor(workload.PodKind, name, "1"), workload.NameFor(workload.PodKind, name, "2")
			if len(a) > 63 || a == b {
				t.Fatalf("%s, %s", a, b)
			}
		})
	})
}

func TestAJobsWorkloadHasTheFieldsOfTheJob(t *testing.T) {
	job := aJob(func(job *batchv1.Job) {
		job.Labels[kueue.MaxExecTimeSecondsLabel] = "60"
		job.Annotations = map[string]string{kueue.JobMinParallelismAnnotation: "2", kueue.AdmissionGatedByAnnotation: "example.com/a", "provreq.kueue.x-k8s.io/x": "y", "other": "z"}
		job.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}, {Name: "A", Value: "3"}}
	})
	w := workload.ForJob(job)
	set := w.Spec.PodSets[0]
	if w.Namespace != "team" || w.Spec.QueueName != "queue" || ptr.Deref(w.Spec.MaximumExecutionTimeSeconds, 0) != 60 || w.Labels[kueue.JobUIDLabel] != string(job.UID) ||
		!slices.Equal(w.Finalizers, []string{kueue.ResourceInUseFinalizer}) || !metav1.IsControlledBy(w, job) {
		t.Errorf("%+v", w)
	}
	if want := map[string]string{kueue.AdmissionGatedByAnnotation: "example.com/a", "provreq.kueue.x-k8s.io/x": "y"}; !reflect.DeepEqual(w.Annotations, want) {
		t.Errorf("annotations %v", w.Annotations)
	}
	if set.Name != "main" || set.Count != 3 || *set.MinCount != 2 || *set.TopologyRequest.PodIndexLabel != "batch.kubernetes.io/job-completion-index" ||
		!reflect.DeepEqual(set.Template.Labels, map[string]string{"app": "train", batchv1.JobNameLabel: "low"}) {
		t.Errorf("pod set %+v", set)
	}
	if want := []corev1.EnvVar{{Name: "A", Value: "3"}, {Name: "B", Value: "2"}}; !reflect.DeepEqual(set.Template.Spec.Containers[0].Env, want) {
		t.Errorf("environment %v", set.Template.Spec.Containers[0].Env)
	}
	if len(job.Spec.Template.Spec.Containers[0].Env) != 3 || job.Spec.Template.Labels["controller-uid"] == "" {
		t.Error("the Job itself was changed")
	}
}

func TestPriority(t *testing.T) {
	pod := func(name string, value int32) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	}
	classes := workload.Classes{
		Workload: func(name string) *kueue.WorkloadPriorityClass {
			if name != "high" {
				return nil
			}
			return &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1000}
		},
		Pod: func(name string) *schedulingv1.PriorityClass {
			if name != "pods" {
				return nil
			}
			return pod(name, 50)
		},
	}
	labelled := func(class string) func(*batchv1.Job) {
		return func(job *batchv1.Job) { job.Labels[kueue.WorkloadPriorityClassLabel] = class }
	}
	podClass := func(class string) func(*batchv1.Job) {
		return func(job *batchv1.Job) { job.Spec.Template.Spec.PriorityClassName = class }
	}
	for name, c := range map[string]struct {
		job      *batchv1.Job
		defaults []*schedulingv1.PriorityClass
		kind     kueue.PriorityClassKind
		class    string
		value    int32
		fails    bool
	}{
		"the label's class comes before the pods'":           {job: aJob(labelled("high"), podClass("pods")), kind: kueue.WorkloadPriorityClassKind, class: "high", value: 1000},
		"an unknown class in the label":                      {job: aJob(labelled("none"), podClass("pods")), fails: true},
		"the pods' class":                                    {job: aJob(podClass("pods")), defaults: []*schedulingv1.PriorityClass{pod("d", 9)}, kind: kueue.PodPriorityClassKind, class: "pods", value: 50},
		"an unknown class of the pods":                       {job: aJob(podClass("none")), fails: true},
		"of several defaults the lowest":                     {job: aJob(), defaults: []*schedulingv1.PriorityClass{pod("d", 9), pod("e", 7)}, kind: kueue.PodPriorityClassKind, class: "e", value: 7},
		"nothing is said, and there is no default: it is 0.": {job: aJob()},
	} {
		t.Run(name, func(t *testing.T) {
			classes := classes
			classes.PodDefaults = c.defaults
			w := workload.ForJob(c.job)
			err := workload.SetPriority(w, c.job, classes)
			if c.fails {
				if err == nil {
					t.Error("no error")
				}
				return
			}
			var want *kueue.PriorityClassRef
			if c.class != "" {
				want = &kueue.PriorityClassRef{Kind: c.kind, Name: c.class, Group: map[kueue.PriorityClassKind]kueue.PriorityClassGroup{kueue.WorkloadPriorityClassKind: kueue.WorkloadPriorityClassGroup, kueue.PodPriorityClassKind: kueue.PodPriorityClassGroup}[c.kind]}
			}
			if err != nil || !reflect.DeepEqual(w.Spec.PriorityClassRef, want) || *w.Spec.Priority != c.value {
				t.Errorf("%+v %v, %v; want %+v", w.Spec.PriorityClassRef, w.Spec.Priority, err, want)
			}
		})
	}
}

func TestAnAdmissionIsPutIntoAJobAndTakenOutAgain(t *testing.T) {
	flavor := kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "t4"}, Spec: kueue.ResourceFlavorSpec{
		NodeLabels:  map[string]string{"accelerator": "t4"},
		Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}},
	}}
	rapid.Check(t, func(t *rapid.T) {
		job := aJob(func(job *batchv1.Job) {
			if rapid.Bool().Draw(t, "partial") {
				job.Annotations = map[string]string{kueue.JobMinParallelismAnnotation: "1"}
				if rapid.Bool().Draw(t, "completions follow") {
					job.Annotations[kueue.JobCompletionsEqualParallelismAnnotation] = "true"
				}
			}
			if rapid.Bool().Draw(t, "selects nodes") {
				job.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "a"}
			}
			if rapid.Bool().Draw(t, "tolerates") {
				job.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
			}
		})
		w := workload.ForJob(job)
		count := rapid.Int32Range(1, 3).Draw(t, "count")
		workload.Reserve(w, admission(w, "t4", count), nil, noon)
		if !workload.StandsForJob(w, job, flavors(flavor)) {
			t.Fatal("the workload does not stand for its suspended Job")
		}
		additions, err := workload.AdditionsOf(w, flavors(flavor))
		if err != nil {
			t.Fatal(err)
		}
		running := job.DeepCopy()
		if err := workload.StartJob(running, additions[0]); err != nil {
			t.Fatal(err)
		}
		spec := running.Spec.Template.Spec
		if *running.Spec.Suspend || spec.NodeSelector["accelerator"] != "t4" || len(spec.Tolerations) != 1 || running.Spec.Template.Labels[kueue.PodSetLabel] != "main" ||
			running.Spec.Template.Annotations[kueue.WorkloadAnnotation] != w.Name {
			t.Fatalf("template %+v", running.Spec.Template)
		}
		wanted := int32(3)
		if job.Annotations != nil {
			wanted = count
		}
		if *running.Spec.Parallelism != wanted {
			t.Fatalf("parallelism %d; want %d", *running.Spec.Parallelism, wanted)
		}
		if !workload.StandsForJob(w, running, flavors(flavor)) {
			t.Fatal("the workload does not stand for its Job while it runs")
		}
		running.Spec.Suspend = ptr.To(true)
		workload.RestoreJob(running, w)
		if job.Annotations == nil {
			running.Annotations = nil
		}
		before := job.DeepCopy() // the Job controller's labels stay, but for those that it alone sets
		if !equality.Semantic.DeepEqual(running, before) {
			t.Fatalf("%+v; want %+v", running.Spec, before.Spec)
		}
	})
}

func TestAnAdmissionThatContradictsAPodTemplateFailsForGood(t *testing.T) {
	job := aJob(func(job *batchv1.Job) { job.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "a"} })
	w := workload.ForJob(job)
	workload.Reserve(w, admission(w, "b", 3), nil, noon)
	additions, err := workload.AdditionsOf(w, flavors(kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"zone": "b"}}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := workload.StartJob(job, additions[0]); !errors.Is(err, workload.ErrConflict) {
		t.Error(err)
	}
	if _, err := workload.AdditionsOf(w, flavors()); err == nil || errors.Is(err, workload.ErrConflict) {
		t.Errorf("a missing flavor, which may come: %v", err)
	}
}

func TestAWorkloadStandsForItsJobUntilThatChanges(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*batchv1.Job)
		stands bool
	}{
		"nothing changes":           {func(*batchv1.Job) {}, true},
		"a label":                   {func(job *batchv1.Job) { job.Spec.Template.Labels["app"] = "other" }, true},
		"parallelism":               {func(job *batchv1.Job) { job.Spec.Parallelism = ptr.To[int32](2) }, false},
		"a container's image":       {func(job *batchv1.Job) { job.Spec.Template.Spec.Containers[0].Image = "other" }, false},
		"the least number of pods":  {func(job *batchv1.Job) { job.Annotations = map[string]string{kueue.JobMinParallelismAnnotation: "1"} }, false},
		"the longest time":          {func(job *batchv1.Job) { job.Labels[kueue.MaxExecTimeSecondsLabel] = "5" }, false},
		"another Job of the name":   {func(job *batchv1.Job) { job.UID = "another" }, false},
		"tolerations while waiting": {func(job *batchv1.Job) { job.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "a"}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			job := aJob()
			w := workload.ForJob(job)
			c.change(job)
			if workload.StandsForJob(w, job, flavors()) != c.stands {
				t.Errorf("want %v", c.stands)
			}
		})
	}
}

func TestReclaimablePods(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*batchv1.Job)
		want   int32
	}{
		"none has ended":                            {func(*batchv1.Job) {}, 0},
		"more are to come than run at once":         {func(job *batchv1.Job) { job.Spec.Completions, job.Status.Succeeded = ptr.To[int32](9), 3 }, 0},
		"two of three are done":                     {func(job *batchv1.Job) { job.Status.Succeeded = 2 }, 2},
		"of an Indexed Job, failed indexes count":   {func(job *batchv1.Job) { indexed(job, "0", "2") }, 2},
		"indexes in both lists count once":          {func(job *batchv1.Job) { indexed(job, "0-1", "1") }, 2},
		"indexes beyond the completions do not":     {func(job *batchv1.Job) { indexed(job, "0,5-9", "") }, 1},
		"what is no list of indexes does not count": {func(job *batchv1.Job) { indexed(job, "x,2-1,0", "") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			job := aJob()
			w := workload.ForJob(job)
			c.change(job)
			got := workload.JobReclaimable(w, job)
			if c.want == 0 && len(got) > 0 || c.want > 0 && (len(got) != 1 || got[0].Count != c.want) {
				t.Errorf("%+v; want %d", got, c.want)
			}
		})
	}
}

// indexed makes a Job one whose indexes count, and not the number of pods that succeeded.
func indexed(job *batchv1.Job, completed, failed string) {
	job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	job.Status.CompletedIndexes, job.Status.FailedIndexes, job.Status.Succeeded = completed, &failed, 7
}
