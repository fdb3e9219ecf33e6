package promises_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

// TestAJobWhoseWorkerIsKilledIsNoDriftAndGivesTheSameModel kills a pod without a grace period, which ends its process
// with SIGKILL.
func TestAJobWhoseWorkerIsKilledIsNoDriftAndGivesTheSameModel(t *testing.T) {
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	r, namespace := terminal(t)
	killed := config(t, "killed-worker.tf")
	destroyAtTheEnd(t, r, killed)
	succeeds(t, r, killed, "apply", "-auto-approve")
	awaitStatus := func(what string, holds func(trainingjob.Status) bool) trainingjob.Status {
		t.Helper()
		var status trainingjob.Status
		ctx, cancel := context.WithTimeout(t.Context(), patience.Medium)
		defer cancel()
		err := await.Until(ctx, what, 25*time.Millisecond, func(ctx context.Context) error {
			configMap, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, trainingjob.StatusName("digits"), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if status, err = trainingjob.DecodeStatus(configMap); err == nil && !holds(status) {
				err = errors.New(configMap.String())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	ready := func(s trainingjob.Status) (ids []int) {
		for _, worker := range s.Workers {
			if worker.State == "ready" {
				ids = append(ids, worker.ID)
			}
		}
		return ids
	}
	awaitStatus("both workers train", func(s trainingjob.Status) bool { return len(ready(s)) == 2 && s.StepsDone > 0 })
	err = client.CoreV1().Pods(namespace).Delete(t.Context(), trainingjob.WorkerName("digits", 1), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if err != nil {
		t.Fatal(err)
	}
	r.ExpectNoChanges(t, killed)
	awaitStatus("worker 2 is in the place of worker 1, or the job has ended", func(s trainingjob.Status) bool {
		return fmt.Sprint(ready(s)) == "[0 2]" || s.Phase.Finished()
	})
	done := awaitStatus("the job ends", func(s trainingjob.Status) bool { return s.Phase.Finished() })
	want, err := program.Train(t.Context(), trainer, t.TempDir(), "--model", "mnist", "--train-data-dir", "synthetic://digits?records=1200&seed=1",
		"--record-per-task", "50", "--num-epoch", "1", "--minibatch-size", "10", "--grads-to-wait", "4", "--seed", "1")
	if err != nil {
		t.Fatal(err)
	}
	if done.Phase != trainingjob.PhaseSucceeded || done.ModelSHA256 != want {
		t.Errorf("the job ends as %s with model %s, and on one machine undisturbed with %s", done.Phase, done.ModelSHA256, want)
	}
	r.ExpectNoChanges(t, killed)
}
