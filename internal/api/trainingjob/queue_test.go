package trainingjob

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"
)

func TestAQueuedJobIsOneGroupOfTwoJobs(t *testing.T) {
	render := func(t *testing.T, d Definition, c Credentials) *Objects {
		t.Helper()
		o, err := Render(d, c)
		if err != nil {
			t.Fatal(err)
		}
		o.Own(JobRef{Name: d.Job.Name, UID: "3f0c"})
		return o
	}
	o := render(t, queued(), credentials())
	jobs := map[string]*batchv1.Job{"the master": o.Job, "the minimum": o.MinJob}

	for name, job := range jobs {
		t.Run(name+" is a Job with labels of its own, none of them Kueue's: it would be queued by itself", func(t *testing.T) {
			if len(job.Labels) == 0 {
				t.Error("without labels it would get its template's")
			}
			for key := range job.Labels {
				if strings.HasPrefix(key, queueLabelPrefix) {
					t.Errorf("label %s", key)
				}
			}
		})
		t.Run(name+" has pods of the group, each of which knows how many there are", func(t *testing.T) {
			labels := job.Spec.Template.Labels
			if labels[podconstants.GroupNameLabel] != GroupOf(o.Job.Spec.Template.Labels) || labels[controllerconstants.QueueLabel] != "user-queue" || labels[controllerconstants.WorkloadPriorityClassLabel] != "mid" {
				t.Errorf("labels %v", labels)
			}
			if n := job.Spec.Template.Annotations[podconstants.GroupTotalCountAnnotation]; n != "3" {
				t.Errorf("the group has %s members, not the master and two workers", n)
			}
			if *job.Spec.PodReplacementPolicy != batchv1.Failed {
				t.Error("a pod that is replaced while it still runs makes the group too large")
			}
		})
	}
	t.Run("the minimum workers' pods are found and numbered as workers", func(t *testing.T) {
		pod := &corev1.Pod{ObjectMeta: o.MinJob.Spec.Template.ObjectMeta}
		pod.Labels[batchv1.JobCompletionIndexAnnotation] = "1" // the Job controller's
		if id, ok := WorkerID(pod); !ok || id != 1 {
			t.Errorf("number %d, %v", id, ok)
		}
		if pod.Labels[LabelJobUID] != "3f0c" || pod.Labels[LabelRole] != RoleWorker || pod.Labels[LabelMinimum] != "true" {
			t.Errorf("labels %v", pod.Labels)
		}
	})
	t.Run("the same job made again is another group", func(t *testing.T) {
		c := credentials()
		c.Token = "another"
		if again := render(t, queued(), c); GroupOf(again.Job.Spec.Template.Labels) == GroupOf(o.Job.Spec.Template.Labels) {
			t.Error("the groups have one name")
		}
	})
	t.Run("without a class of its own the minimum has that of the rest", func(t *testing.T) {
		d := queued()
		d.Queue = &Queue{Name: "user-queue", PriorityClass: "low"}
		if class := render(t, d, credentials()).Job.Spec.Template.Labels[controllerconstants.WorkloadPriorityClassLabel]; class != "low" {
			t.Errorf("class %q", class)
		}
	})
	t.Run("a job without a queue has no minimum, no label of Kueue's and no more rights", func(t *testing.T) {
		o := render(t, tutorial(), credentials())
		if o.MinJob != nil || GroupOf(o.Job.Spec.Template.Labels) != "" || len(o.Role.Rules) >= len(render(t, queued(), credentials()).Role.Rules) {
			t.Errorf("%+v", o.Job.Spec.Template.Labels)
		}
		o.SetMasterAddress("10.0.0.1:50001")
	})
	t.Run("every name of a queued job is one that Kubernetes takes", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			d := queued()
			d.Job.Name = rapid.StringMatching(`[a-z]([-a-z0-9]{0,48}[a-z0-9])?`).Draw(t, "name")
			if problems := d.Problems(); len(problems) > 0 {
				t.Fatal(problems)
			}
			o, err := Render(d, Credentials{Token: rapid.String().Draw(t, "token")})
			if err != nil {
				t.Fatal(err)
			}
			group := GroupOf(o.Job.Spec.Template.Labels)
			if errs := append(validation.IsValidLabelValue(group), validation.IsDNS1123Subdomain(group)...); len(errs) > 0 {
				t.Fatalf("group %q: %v", group, errs)
			}
			// An Indexed Job's pods have it as their host name.
			if errs := validation.IsDNS1123Label(o.MinJob.Name + "-99999"); len(errs) > 0 {
				t.Fatalf("host %q: %v", o.MinJob.Name, errs)
			}
		})
	})
}

func TestKueueStateOfAPod(t *testing.T) {
	pod := &corev1.Pod{}
	t.Run("a pod that Kueue did not mark is not managed, and not evicted", func(t *testing.T) {
		if _, evicted := EvictionMessage(pod); evicted || Managed(pod) {
			t.Error("it is")
		}
	})
	t.Run("one that it takes away says for what", func(t *testing.T) {
		pod.Labels = map[string]string{kueueconstants.ManagedByKueueLabelKey: "true"}
		pod.Status.Conditions = []corev1.PodCondition{{Type: "TerminationTarget", Status: corev1.ConditionTrue, Message: "Preempted to accommodate another"}}
		message, evicted := EvictionMessage(pod)
		if !Managed(pod) || !evicted || message != "Preempted to accommodate another" {
			t.Errorf("%q, %v", message, evicted)
		}
	})
}
