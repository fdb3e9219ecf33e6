package provider_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// finalizers sets those of a job's Job.
func finalizers(t *testing.T, name, list string) {
	t.Helper()
	_, err := adminClient(t).BatchV1().Jobs("default").Patch(cleanupContext(t), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":`+list+`}}`), metav1.PatchOptions{})
	if err != nil {
		t.Error(err)
	}
}

// TestATrainingJobThatIsBeingDeleted deletes a job that a finalizer holds, as another client does, and creates it
// again.
func TestATrainingJobThatIsBeingDeleted(t *testing.T) {
	name, r := "held", newTerminal(t)
	config := func(lines string) string {
		return asAdmin("") + trainingJob(name, "timeouts = { create = \"4s\", update = \"60s\", delete = \"4s\" }\n"+lines+nowhere)
	}
	waiting := config(`wait_for = "running"`)
	printed, code := r.run(t, waiting, "apply", "-auto-approve")
	if code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	r.destroyAtTheEnd(t, name, waiting)
	podsIn := regexp.MustCompile(`pod/held-[a-z0-9]{5}\b`)
	earlier, pod := liveJob(t, name).UID, podsIn.FindString(printed)
	expectText(t, printed, "Last events:", "FailedScheduling")
	if pod == "" {
		t.Fatalf("the events name no pod of the job:\n%s", printed)
	}

	finalizers(t, name, `["example.com/hold"]`)
	held := true
	release := func() {
		if held {
			finalizers(t, name, "null")
		}
		held = false
	}
	t.Cleanup(release)
	deleteJobByHand(t, name)
	why := []string{"Training job default/held is being deleted", "marked for deletion since 20", "held by finalizers: example.com/hold", "kubectl patch job -n default held"}
	t.Run("a plan warns about it", func(t *testing.T) {
		data := "\ndata \"elastic_training_job\" \"test\" {\n  name = \"held\"\n}\n"
		printed, code := r.run(t, waiting+data, "plan")
		if code != 0 {
			t.Fatalf("plan exited with %d:\n%s", code, printed)
		}
		expectText(t, printed, append(slices.Insert(slices.Clone(why), 0, "No changes."), "the first plan after the deletion creates it again")...)
		expectText(t, printed, "(and one more similar warning elsewhere)") // the data source's
	})
	t.Run("an update is refused", func(t *testing.T) {
		printed, code := r.run(t, config("wait_for = \"running\"\n workers = { max = 1 }"), "apply", "-auto-approve")
		if code != 1 {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		expectText(t, printed, slices.Insert(slices.Clone(why), 1, "Nothing was changed")...)
	})
	t.Run("a wait for it ends at once", func(t *testing.T) {
		printed, code := r.run(t, config(`wait_for = "succeeded"`), "apply", "-auto-approve")
		if code != 0 {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		expectText(t, printed, slices.Insert(slices.Clone(why[1:]), 0, "Training job default/held will not be succeeded: it is being deleted")...)
		if strings.Contains(printed, "Waited") || strings.Contains(printed, "continues") {
			t.Errorf("the wait did not end with the deletion:\n%s", printed)
		}
	})
	t.Run("another job of its name is not made meanwhile", func(t *testing.T) {
		printed, code := newTerminal(t).run(t, waiting, "apply", "-auto-approve")
		if code != 1 {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		expectText(t, printed, "Cannot create Job default/held", "is being deleted", "Run terraform apply again when it is gone", "kubectl patch job -n default held")
		if strings.Contains(printed, "terraform import") {
			t.Errorf("what is being deleted cannot be imported:\n%s", printed)
		}
	})
	t.Run("the job that is made after it has events of its own", func(t *testing.T) {
		release()
		printed, code := r.run(t, waiting, "apply", "-auto-approve")
		if code != 0 {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		events, err := adminClient(t).CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(earlier)})
		if err != nil || len(events.Items) == 0 {
			t.Fatalf("the earlier job has left no events, so that nothing is shown: %v", err)
		}
		message := ""
		for _, e := range events.Items {
			if e.Reason == "SuccessfulCreate" {
				message = e.Message // with the name of the earlier pod
			}
		}
		expectText(t, printed, "Last events:", "FailedScheduling", podsIn.FindString(printed))
		if flat := strings.Join(strings.Fields(printed), " "); strings.Contains(flat, pod) || message == "" || strings.Contains(flat, message) {
			t.Errorf("the last events are also those of the earlier job, %s, %q:\n%s", pod, message, printed)
		}
	})
	t.Run("destroy names what blocks it", func(t *testing.T) {
		finalizers(t, name, `["example.com/hold"]`)
		held = true
		printed, code := r.run(t, waiting, "destroy", "-auto-approve")
		if code != 1 {
			t.Fatalf("destroy exited with %d:\n%s", code, printed)
		}
		expectText(t, printed, append(slices.Insert(slices.Clone(why[1:]), 0, "Training job default/held is not deleted yet"), "timeouts.delete limits the wait")...)
		release()
	})
}
