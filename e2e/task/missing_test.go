package task_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
)

// TestATaskThatLosesItsPartsGetsThemBack has each object that a running task of two nodes owns deleted, one after the
// other, and created again by terraform; then all of them, and one of its pods.
func TestATaskThatLosesItsPartsGetsThemBack(t *testing.T) {
	t.Parallel()
	ns, r, shared := namespace(t), providertest.NewTerminal(t), t.TempDir()
	enforce(t, ns, "privileged") // host_path
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	config := block(ns, "parts", fmt.Sprintf(`
  num_nodes          = 2
  supervisor_image      = "elastic-trainer"
  secrets_wo         = { TOKEN = "hidden" }
  secrets_wo_version = 1
  wait_for           = "running"
  volumes            = [{ name = "shared", mount_path = "/shared", host_path = %q }]
  run                = "[ \"$TOKEN\" = hidden ] || exit 1; while [ ! -e /shared/finish ]; do sleep 0.1; done"
`, shared))
	t.Cleanup(func() {
		if printed, code := r.Run(t, config, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
	})
	apply := func(t *testing.T) {
		t.Helper()
		if printed, code := r.Run(t, config, "apply", "-auto-approve"); code != 0 {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		r.ExpectNoChanges(t, config)
	}
	apply(t)
	uid := job(t, ns, "parts").UID
	for _, part := range task.NamedParts(task.Task{Name: "parts", Namespace: ns, NumNodes: 2, SecretValues: []string{"TOKEN"}}) {
		t.Run(fmt.Sprintf("%T %s is deleted", part, part.GetName()), func(t *testing.T) {
			change := onPart(t, part)
			change.finalizers(`["example.com/hold"]`)
			change.delete()
			printed, code := r.Run(t, config, "plan", "-detailed-exitcode")
			if code != 0 {
				t.Fatalf("plan exited with %d:\n%s", code, printed)
			}
			providertest.ExpectText(t, printed, "No changes.", change.ref+" is being deleted", "Task "+ns+"/parts needs it", "held by finalizers: example.com/hold")

			change.finalizers("null")
			printed, code = r.Run(t, config, "apply", "-auto-approve") // which prints the plan, too
			if n := strings.Count(strings.Join(strings.Fields(printed), " "), "was deleted. Without it"); code != 0 || n != 1 {
				t.Fatalf("apply exited with %d, and %d objects were missing:\n%s", code, n, printed)
			}
			loss := task.LossOf("parts", part)
			providertest.ExpectText(t, printed, "will be updated in-place", "missing_objects", "is missing objects",
				change.ref+" was deleted. Without it "+loss.Without+". terraform apply "+loss.Repair, "1 changed")
		})
	}
	r.ExpectNoChanges(t, config)
	for _, pod := range pods(t.Context(), t, ns, "parts") { // their tokens are of the account that was deleted
		if err := client(t).CoreV1().Pods(ns).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "both pods again", func(context.Context) (string, bool) {
		live := job(t, ns, "parts")
		return fmt.Sprintf("%+v", live.Status), live.Status.Ready != nil && *live.Status.Ready == 2 && (live.Status.Terminating == nil || *live.Status.Terminating == 0)
	})
	if err := os.WriteFile(filepath.Join(shared, "finish"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	await(t, "the end", func(context.Context) (string, bool) {
		live := job(t, ns, "parts")
		return fmt.Sprintf("%+v", live.Status), live.UID == uid && live.Status.Succeeded == 2
	})
	t.Run("a task that has ended needs none of them", func(t *testing.T) {
		for _, part := range task.NamedParts(task.Task{Name: "parts", Namespace: ns, NumNodes: 2, SecretValues: []string{"TOKEN"}}) {
			onPart(t, part).delete()
		}
		apply(t) // the phase is new
	})
	t.Run("a task that is being deleted is reported", func(t *testing.T) {
		change := onPart(t, job(t, ns, "parts"))
		change.finalizers(`["example.com/hold"]`)
		t.Cleanup(func() { change.finalizers("null") })
		change.delete()
		printed, code := r.Run(t, config, "plan", "-detailed-exitcode")
		if code != 0 {
			t.Fatalf("plan exited with %d:\n%s", code, printed)
		}
		providertest.ExpectText(t, printed, "No changes.", "Task "+ns+"/parts is being deleted", "marked for deletion since 20", "example.com/hold", "kubectl patch job -n "+ns+" parts")
	})
}

// partChange is a change of a task's object by another client.
type partChange struct {
	ref        string
	delete     func()
	finalizers func(list string)
}

func onPart(t *testing.T, part task.Object) partChange {
	t.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(part)
	if err != nil {
		t.Fatal(err)
	}
	config, err := cluster.Config()
	if err != nil {
		t.Fatal(err)
	}
	all, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	objects := all.Resource(resource).Namespace(part.GetNamespace())
	return partChange{
		ref: fmt.Sprintf("%s %s/%s", kinds[0].Kind, part.GetNamespace(), part.GetName()),
		delete: func() {
			background := metav1.DeletePropagationBackground
			if err := objects.Delete(t.Context(), part.GetName(), metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
				t.Fatal(err)
			}
		},
		finalizers: func(list string) {
			patch := []byte(`{"metadata":{"finalizers":` + list + `}}`)
			if _, err := objects.Patch(context.WithoutCancel(t.Context()), part.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		},
	}
}
