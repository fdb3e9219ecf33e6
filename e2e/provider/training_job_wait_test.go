package provider_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// terminal is terraform as a person runs it, with additions for training jobs.
type terminal struct {
	*providertest.Terminal
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	return &terminal{providertest.NewTerminal(t)}
}

func (r *terminal) start(t *testing.T, config string, arguments ...string) (command *exec.Cmd, finish func() (string, int)) {
	t.Helper()
	return r.Start(t, config, arguments...)
}

func (r *terminal) run(t *testing.T, config string, arguments ...string) (string, int) {
	t.Helper()
	return r.Run(t, config, arguments...)
}

// destroyAtTheEnd leaves nothing behind, however the test ends.
func (r *terminal) destroyAtTheEnd(t *testing.T, name, config string) {
	t.Helper()
	t.Cleanup(func() {
		if printed, code := r.run(t, config, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
		nothingLeft(t, name)
	})
}

func (r *terminal) expectNoChanges(t *testing.T, config string) {
	t.Helper()
	r.ExpectNoChanges(t, config)
}

func expectText(t *testing.T, printed string, sentences ...string) {
	t.Helper()
	providertest.ExpectText(t, printed, sentences...)
}

// nowhere keeps the master's pod from being scheduled.
const nowhere = "\n master = { node_selector = { nowhere = \"true\" } }"

// untilMade waits until the job is resumed, after which Create waits.
func untilMade(t *testing.T, name string) {
	t.Helper()
	until(t, "job "+name+" is resumed", func() (string, bool) {
		live, err := adminClient(t).BatchV1().Jobs("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return "it is suspended", live.Spec.Suspend != nil && !*live.Spec.Suspend
	})
}

func TestAWaitThatTimesOutIsAWarning(t *testing.T) {
	name, r := "times-out", newTerminal(t)
	config := asAdmin("") + trainingJob(name, "wait_for = \"running\"\n timeouts = { create = \"6s\" }"+nowhere)
	r.destroyAtTheEnd(t, name, config)
	printed, code := r.run(t, config, "apply", "-auto-approve")
	if code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	expectText(t, printed, "Warning: Training job default/times-out is not running yet", "the time limit was reached", "The job continues",
		"Its phase is Pending", "Pods:", "cannot be scheduled", "Last events:", "1 added")
	uid := liveJob(t, name).UID
	r.expectNoChanges(t, config)
	if printed, code := r.run(t, config, "apply", "-auto-approve"); code != 0 || liveJob(t, name).UID != uid {
		t.Errorf("the next apply exited with %d and replaced the job:\n%s", code, printed)
	}
}

func TestAWaitThatIsInterruptedIsAWarning(t *testing.T) {
	name, r := "interrupted", newTerminal(t)
	config := asAdmin("") + trainingJob(name, "wait_for = \"succeeded\""+nowhere)
	r.destroyAtTheEnd(t, name, config)
	command, finish := r.start(t, config, "apply", "-auto-approve")
	untilMade(t, name)
	uid := liveJob(t, name).UID
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	printed, _ := finish()
	expectText(t, printed, "Training job default/interrupted has not succeeded yet", "it was interrupted")
	r.expectNoChanges(t, config)
	if liveJob(t, name).UID != uid {
		t.Error("the job was replaced")
	}
}

func TestAWaitSeesTheRunEnd(t *testing.T) {
	name, r := "ends", newTerminal(t)
	config := asAdmin("") + trainingJob(name, "wait_for = \"succeeded\""+nowhere) + "\noutput \"sha\" {\n  value = elastic_training_job.test.model_sha256\n}\n"
	r.destroyAtTheEnd(t, name, config)
	_, finish := r.start(t, config, "apply", "-auto-approve")
	untilMade(t, name)
	report(t, name, trainingjob.Status{Phase: trainingjob.PhaseRunning, StepsDone: 1, StepsTotal: 2})
	report(t, name, trainingjob.Status{Phase: trainingjob.PhaseSucceeded, StepsDone: 2, StepsTotal: 2, ModelSHA256: strings.Repeat("cd", 32)})
	printed, code := finish()
	if code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	expectText(t, printed, fmt.Sprintf("sha = %q", strings.Repeat("cd", 32)))
	r.expectNoChanges(t, config)
}

func TestAFailedRunIsAnErrorOnlyWithFailOnError(t *testing.T) {
	t.Run("a failed run is a warning, and stays", func(t *testing.T) {
		name, r := "fails", newTerminal(t)
		config := asAdmin("") + trainingJob(name, "wait_for = \"running\""+nowhere)
		r.destroyAtTheEnd(t, name, config)
		_, finish := r.start(t, config, "apply", "-auto-approve")
		untilMade(t, name)
		report(t, name, trainingjob.Status{Phase: trainingjob.PhaseFailed, Message: "model.py:3: no such layer", StepsDone: 1, StepsTotal: 2})
		printed, code := finish()
		if code != 0 {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		expectText(t, printed, "Warning: Training job default/fails has failed", "model.py:3: no such layer", "at step 1 of 2", "fail_on_error = true")
		r.expectNoChanges(t, config)
	})
	t.Run("with fail_on_error it is an error, and the next plan replaces the job", func(t *testing.T) {
		name, r := "fails-hard", newTerminal(t)
		config := asAdmin("") + trainingJob(name, "wait_for = \"succeeded\"\n fail_on_error = true"+nowhere)
		r.destroyAtTheEnd(t, name, config)
		_, finish := r.start(t, config, "apply", "-auto-approve")
		untilMade(t, name)
		report(t, name, trainingjob.Status{Phase: trainingjob.PhaseFailed, Message: "model.py:3: no such layer"})
		printed, code := finish()
		if code != 1 {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		expectText(t, printed, "Error: Training job default/fails-hard has failed", "model.py:3: no such layer", "Last events:")
		printed, _ = r.run(t, config, "plan")
		expectText(t, printed, "is tainted, so")
	})
}

func TestAnUpdateWaitsToo(t *testing.T) {
	name, r := "update-waits", newTerminal(t)
	config := func(lines string) string { return asAdmin("") + trainingJob(name, lines+nowhere) }
	r.destroyAtTheEnd(t, name, config(""))
	if printed, code := r.run(t, config(""), "apply", "-auto-approve"); code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	report(t, name, trainingjob.Status{Phase: trainingjob.PhaseSucceeded, StepsDone: 2, StepsTotal: 2})
	if printed, code := r.run(t, config(`wait_for = "succeeded"`), "apply", "-auto-approve"); code != 0 || !strings.Contains(printed, "1 changed") {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	r.expectNoChanges(t, config(`wait_for = "succeeded"`))

	report(t, name, trainingjob.Status{Phase: trainingjob.PhaseWaiting, Message: "fewer workers than the minimum"})
	printed, code := r.run(t, config("wait_for = \"running\"\n timeouts = { update = \"3s\" }"), "apply", "-auto-approve")
	if code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	expectText(t, printed, "Warning: Training job default/update-waits is not running yet", "Its phase is Waiting: fewer workers than the minimum")
}

func TestAReplacementWarnsWhatIsLost(t *testing.T) {
	name, r := "replaced", newTerminal(t)
	config := func(seed int) string {
		return asAdmin("") + trainingJob(name, fmt.Sprintf("training = { minibatch_size = 10, seed = %d }\n workers = { max = 1 }", seed))
	}
	r.destroyAtTheEnd(t, name, config(1))
	if printed, code := r.run(t, config(1), "apply", "-auto-approve"); code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	report(t, name, trainingjob.Status{Phase: trainingjob.PhaseRunning, StepsDone: 3120, StepsTotal: 8000})
	printed, _ := r.run(t, config(2), "plan")
	expectText(t, printed, "must be replaced", "# forces replacement", "Warning: Training job default/replaced will be replaced", "training decides the model that the run ends with",
		"at step 3,120 of 8,000", "this work is lost")
}

func TestAPodThatDoesNotGoIsNamed(t *testing.T) {
	name, r := "stuck", newTerminal(t)
	config := asAdmin("") + trainingJob(name, "timeouts = { delete = \"5s\" }"+nowhere)
	if printed, code := r.run(t, config, "apply", "-auto-approve"); code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	ref := trainingjob.JobRef{Name: name, Namespace: "default", UID: liveJob(t, name).UID}
	pod := trainingjob.WorkerPod(liveWorkers(t, name), ref, 0, true, "127.0.0.1:50001")
	pod.Finalizers = []string{"example.com/hold"}
	pods := adminClient(t).CoreV1().Pods("default")
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pods.Patch(cleanupContext(t), pod.Name, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
		if printed, code := r.run(t, config, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
		nothingLeft(t, name)
	})
	printed, code := r.run(t, config, "destroy", "-auto-approve")
	if code != 1 {
		t.Fatalf("destroy exited with %d:\n%s", code, printed)
	}
	expectText(t, printed, "Error: Training job default/stuck is not deleted yet", "pod stuck-worker-0 is held by finalizer example.com/hold", "kubectl patch pod -n default stuck-worker-0")
}

func TestASuspendedJobIsSuspended(t *testing.T) {
	name, r := "suspended", newTerminal(t)
	config := func(lines string) string {
		return asAdmin("") + trainingJob(name, lines+nowhere) + fmt.Sprintf(`
			data "elastic_training_job" "test" {
			  name       = %q
			  depends_on = [elastic_training_job.test]
			}
			output "phases" {
			  value = "resource ${elastic_training_job.test.phase}, data source ${data.elastic_training_job.test.phase}"
			}`, name)
	}
	r.destroyAtTheEnd(t, name, config(""))
	printed, code := r.run(t, config(""), "apply", "-auto-approve")
	if code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	expectText(t, printed, "resource Pending, data source Pending")
	report(t, name, trainingjob.Status{Phase: trainingjob.PhaseRunning, StepsDone: 1, StepsTotal: 2})
	suspend := func(value bool) {
		_, err := adminClient(t).BatchV1().Jobs("default").Patch(t.Context(), name, types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, value), metav1.PatchOptions{FieldManager: "kubectl-patch"})
		if err != nil {
			t.Fatal(err)
		}
	}
	suspend(true)
	printed, _ = r.run(t, config(""), "apply", "-auto-approve")
	expectText(t, printed, "resource Suspended, data source Suspended", "0 added, 0 changed, 0 destroyed")
	printed, code = r.run(t, config("wait_for = \"running\"\n timeouts = { update = \"2s\" }"), "apply", "-auto-approve")
	if code != 0 {
		t.Errorf("apply exited with %d:\n%s", code, printed)
	}
	expectText(t, printed, "is not running yet", "Its phase is Suspended", "elastic_job_resume", "kubectl patch job -n default "+name)
	suspend(false)
	printed, _ = r.run(t, config(""), "apply", "-auto-approve")
	expectText(t, printed, "resource Running, data source Running")
}

func TestAJobThatTakesTooLongFails(t *testing.T) {
	name, r := "too-long", newTerminal(t)
	config := func(seconds int) string {
		return asAdmin("") + trainingJob(name, fmt.Sprintf("active_deadline_seconds = %d\n wait_for = %q", seconds, map[bool]string{true: "created", false: "succeeded"}[seconds > 60])+nowhere)
	}
	r.destroyAtTheEnd(t, name, config(3600))
	r.apply(t, "created", config(3600))
	live := liveJob(t, name)
	if got := live.Spec.ActiveDeadlineSeconds; got == nil || *got != 3600 {
		t.Errorf("the Job's deadline is %v", got)
	}
	printed, code := r.run(t, config(1), "apply", "-auto-approve")
	if code != 0 {
		t.Errorf("apply exited with %d:\n%s", code, printed)
	}
	expectText(t, printed, "Training job default/too-long has failed", "DeadlineExceeded", "1 changed")
	if again := liveJob(t, name); again.UID != live.UID {
		t.Error("the job was replaced")
	}
}

func TestTheSettingsOfAJobsPodsReachThem(t *testing.T) {
	name, r := "pod-settings", newTerminal(t)
	config := func(user int) string {
		return asAdmin("") + trainingJob(name, fmt.Sprintf(`
			volumes = [{ name = "data", mount_path = "/data", empty_dir = {}, mount_on = "workers" }]
			master  = {
			  node_selector    = { nowhere = "nobody" }
			  security_context = { run_as_user = 1000, read_only_root_filesystem = false, capabilities = { add = ["SYS_NICE", "IPC_LOCK"] } }
			}
			workers = {
			  max              = 2
			  node_selector    = { nowhere = "nobody" }
			  security_context = { run_as_user = %d }
			  init_containers  = [{
			    name = "fetch", image = "example.com/fetch:1", command = ["fetch", "/into"]
			    volume_mounts = [{ name = "data", mount_path = "/into" }]
			  }]
			}`, user))
	}
	r.destroyAtTheEnd(t, name, config(1000))
	r.apply(t, "created", config(1000))
	live := liveJob(t, name)
	spec := live.Spec.Template.Spec
	if user, group := *spec.SecurityContext.RunAsUser, *spec.SecurityContext.RunAsGroup; user != 1000 || group != 65532 {
		t.Errorf("the master runs as user %d of group %d", user, group)
	}
	if s := spec.Containers[0].SecurityContext; *s.ReadOnlyRootFilesystem || fmt.Sprint(s.Capabilities.Add) != "[IPC_LOCK SYS_NICE]" || fmt.Sprint(s.Capabilities.Drop) != "[ALL]" {
		t.Errorf("the security context of the master's container is %v", s)
	}
	workers := func() corev1.PodSpec {
		w, err := trainingjob.DecodeWorkers([]byte(jobConfig(t, name).Data[trainingjob.WorkersKey]))
		if err != nil {
			t.Fatal(err)
		}
		return w.Template.Spec
	}
	if c := workers().InitContainers; len(c) != 1 || c[0].Name != "fetch" || c[0].VolumeMounts[0].MountPath != "/into" || c[0].VolumeMounts[0].ReadOnly || c[0].Resources.Limits.Memory().String() != "4Gi" {
		t.Errorf("the workers' init containers are %v", c)
	}
	r.apply(t, "with another user of the workers", config(1001))
	if user := *workers().SecurityContext.RunAsUser; user != 1001 || liveJob(t, name).UID != live.UID {
		t.Errorf("the workers run as user %d, of Job %s, which was %s", user, liveJob(t, name).UID, live.UID)
	}
}
