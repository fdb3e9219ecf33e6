package trainingjob

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func TestWorkerPod(t *testing.T) {
	w := workersOf(t, everything())
	job := JobRef{Name: "low-prio-job", Namespace: "default", UID: "3f0c"}

	t.Run("a burst worker keeps the workers' class, a minimum worker gets the minimum's", func(t *testing.T) {
		burst, minimum := WorkerPod(w, job, 3, false, "a:1"), WorkerPod(w, job, 4, true, "a:1")
		if burst.Spec.PriorityClassName != "low-priority" || minimum.Spec.PriorityClassName != "high-priority" {
			t.Errorf("burst %q, minimum %q", burst.Spec.PriorityClassName, minimum.Spec.PriorityClassName)
		}
		if _, ok := burst.Labels[LabelMinimum]; ok || minimum.Labels[LabelMinimum] != "true" {
			t.Errorf("minimum labels: burst %v, minimum %v", burst.Labels, minimum.Labels)
		}
	})
	t.Run("without a class of their own, minimum workers have the workers' class", func(t *testing.T) {
		w := w
		w.MinPriorityClassName = ""
		if got := WorkerPod(w, job, 0, true, "a:1").Spec.PriorityClassName; got != "low-priority" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("the Job controller finds no worker by its labels, and owns none", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			w := w
			w.Template = *w.Template.DeepCopy()
			for _, key := range rapid.SliceOf(rapid.SampledFrom(jobSelectorLabels)).Draw(t, "labels") {
				w.Template.Labels[key] = string(job.UID)
			}
			id := rapid.IntRange(0, 1<<20).Draw(t, "id")
			pod := WorkerPod(w, job, id, rapid.Bool().Draw(t, "minimum"), "a:1")
			for _, key := range jobSelectorLabels {
				if _, ok := pod.Labels[key]; ok {
					t.Fatalf("label %s is set", key)
				}
			}
			if o := pod.OwnerReferences; len(o) != 1 || o[0].UID != job.UID || o[0].Controller != nil || o[0].BlockOwnerDeletion != nil {
				t.Fatalf("owner references: %+v", o)
			}
			if got, ok := WorkerID(pod); !ok || got != id {
				t.Fatalf("worker %d reads back as %d, %v", id, got, ok)
			}
			if m := NameProblem(job.Name); m != "" || len(pod.Name) > 63 {
				t.Fatalf("pod name %q", pod.Name)
			}
		})
	})
	t.Run("two workers share nothing", func(t *testing.T) {
		a := WorkerPod(w, job, 1, false, "a:1")
		b := WorkerPod(w, job, 2, false, "b:1")
		a.Labels["x"], a.Spec.Containers[0].Env[0].Name = "y", "changed"
		if b.Labels["x"] != "" || b.Spec.Containers[0].Env[0].Name == "changed" || w.Template.Labels["x"] != "" {
			t.Error("changing one pod changed another")
		}
		if want := []string{"worker", "--master", "b:1", "--id", "2"}; !slices.Equal(b.Spec.Containers[0].Args, want) {
			t.Errorf("args %v, want %v", b.Spec.Containers[0].Args, want)
		}
	})
	t.Run("a worker holds neither the private key nor a token of the API server", func(t *testing.T) {
		pod := WorkerPod(w, job, 1, false, "a:1")
		if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
			t.Error("the service account's token is mounted")
		}
		for _, v := range pod.Spec.Volumes {
			if v.Secret != nil && slices.ContainsFunc(v.Secret.Items, func(i corev1.KeyToPath) bool { return i.Key == TLSPrivateKey }) {
				t.Error("the private key is mounted")
			}
			if v.Secret != nil && len(v.Secret.Items) == 0 {
				t.Error("the whole Secret is mounted")
			}
		}
	})
}
