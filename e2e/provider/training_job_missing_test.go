package provider_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

// deletePart deletes a part of a job as kubectl does.
func deletePart(t *testing.T, part trainingjob.Object) (ref string) {
	t.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(part)
	if err != nil {
		t.Fatal(err)
	}
	client, err := metadata.NewForConfig(adminConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	background := metav1.DeletePropagationBackground
	err = client.Resource(resource).Namespace(part.GetNamespace()).Delete(t.Context(), part.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s/%s", kinds[0].Kind, part.GetNamespace(), part.GetName())
}

// theJobGoesOn deletes a worker and waits until another one has replaced it and the job has made progress: a pod was
// created, started with its volumes, found the master, and the master has reported.
func theJobGoesOn(t *testing.T, name string) {
	t.Helper()
	core := adminClient(t).CoreV1()
	var was trainingjob.Status
	until(t, "another worker's work", func() (string, bool) {
		live, err := core.ConfigMaps("default").Get(t.Context(), trainingjob.StatusName(name), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		status, err := trainingjob.DecodeStatus(live)
		if err != nil {
			t.Fatal(err)
		}
		if status.Phase.Finished() {
			t.Fatalf("the job has ended first: %+v", status)
		}
		if was.Phase == "" && status.WorkersRunning > 0 { // the first one is taken away
			for _, worker := range status.Workers {
				if worker.State == "ready" {
					if err := core.Pods("default").Delete(t.Context(), trainingjob.WorkerName(name, worker.ID), metav1.DeleteOptions{}); apierrors.IsNotFound(err) {
						return "the pod of a worker that the status lists", false
					} else if err != nil {
						t.Fatal(err)
					}
					was = status
					return "", false
				}
			}
		}
		for _, worker := range status.Workers {
			known := false
			for _, before := range was.Workers {
				known = known || before.ID == worker.ID
			}
			if was.Phase != "" && !known && worker.State == "ready" && worker.Gradients > 0 && status.StepsDone > was.StepsDone {
				return "", true
			}
		}
		return fmt.Sprintf("%+v", status), false
	})
}

func until(t *testing.T, what string, condition func() (found string, done bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Long)
	defer cancel()
	err := await.Until(ctx, what, 100*time.Millisecond, func(context.Context) error {
		if found, done := condition(); !done {
			return errors.New(found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// losesItsParts has each object that a running job owns deleted, one after the other, and created again by terraform.
func losesItsParts(t *testing.T, job func(name, lines string) string) {
	const name = "parts"
	config := func(pace string) string {
		return job(name, `
  wait_for = "running"
  training = { minibatch_size = 10, grads_to_wait = 2, epochs = 30 }
  workers  = { max = 2, pod_overrides = jsonencode({ spec = { containers = [{ name = "worker", args = ["worker", "--threads", "1", "--pace", "`+pace+`"] }] } }) }`)
	}
	r := newTerminal(t)
	r.destroyAtTheEnd(t, name, config("0s"))
	slow := config("300ms")
	if printed, code := r.run(t, slow, "apply", "-auto-approve"); code != 0 || strings.Contains(printed, "Warning: Training job") {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	uid := liveJob(t, name).UID
	// repaired runs terraform plan and apply, and returns their output. No later plan reports the objects as missing.
	repaired := func(t *testing.T, missing int) (printed string) {
		t.Helper()
		printed, code := r.run(t, slow, "apply", "-auto-approve")
		if n := strings.Count(strings.Join(strings.Fields(printed), " "), "was deleted. Without it"); code != 0 || n != missing || !strings.Contains(printed, "1 changed") {
			t.Fatalf("apply exited with %d, and %d objects were missing, not %d:\n%s", code, n, missing, printed)
		}
		theJobGoesOn(t, name)
		return printed
	}
	theJobGoesOn(t, name)
	parts := trainingjob.NamedParts(trainingjob.JobRef{Name: name, Namespace: "default", UID: uid}, true, false)
	for _, part := range parts {
		t.Run(fmt.Sprintf("%T %s is deleted", part, part.GetName()), func(t *testing.T) {
			ref := deletePart(t, part)
			printed := repaired(t, 1)
			loss := trainingjob.LossOf(name, part)
			expectText(t, printed, "will be updated in-place", "missing_objects", ref, "Training job default/parts is missing objects",
				ref+" was deleted. Without it "+loss.Without+". terraform apply "+loss.Repair)
		})
	}
	t.Run("all are deleted", func(t *testing.T) {
		for _, part := range parts {
			deletePart(t, part)
		}
		repaired(t, len(parts))
		r.expectNoChanges(t, slow)
	})
	if liveJob(t, name).UID != uid {
		t.Error("the job was replaced")
	}
	t.Run("the job runs to its end", func(t *testing.T) {
		if printed, code := r.run(t, config("0s"), "apply", "-auto-approve"); code != 0 || !strings.Contains(printed, "1 changed") {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		pods := adminClient(t).CoreV1().Pods("default")
		// A new master, too, starts with the created objects: workers adapt to its settings when they do.
		if err := pods.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: trainingjob.LabelJobName + "=" + name}); err != nil {
			t.Fatal(err)
		}
		until(t, "the job's end", func() (string, bool) {
			live, err := adminClient(t).CoreV1().ConfigMaps("default").Get(t.Context(), trainingjob.StatusName(name), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			status, err := trainingjob.DecodeStatus(live)
			if err != nil || status.Phase == trainingjob.PhaseFailed {
				t.Fatalf("%+v %v", status, err)
			}
			ended := liveJob(t, name).Status.CompletionTime != nil
			return fmt.Sprintf("%+v", status), ended && status.Phase == trainingjob.PhaseSucceeded && status.ModelSHA256 != ""
		})
	})
	t.Run("what a job that has ended does not need is no difference", func(t *testing.T) {
		for _, part := range parts {
			deletePart(t, part)
		}
		r.expectNoChanges(t, config("0s"))
		smaller := strings.Replace(config("0s"), "max = 2", "max = 1", 1)
		if printed, code := r.run(t, smaller, "apply", "-auto-approve"); code != 0 || !strings.Contains(printed, "1 changed") {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		r.expectNoChanges(t, smaller)
	})
}
