package tutorial_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/migrate/elasticdl"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

// user types commands in a directory, with the kubeconfig of the cluster's administrator.
type user struct {
	*testing.T
	dir string
}

func newUser(t *testing.T) user {
	t.Helper()
	dir := t.TempDir()
	if err := checkout("../..", dir); err != nil {
		t.Fatal(err)
	}
	return user{t, dir}
}

// types runs the trainer, and returns what it printed to both streams; a failure ends the test.
func (u user) types(args ...string) (out, notes string) {
	u.Helper()
	out, notes, err := u.tries(args...)
	if err != nil {
		u.Fatalf("elastic-trainer %s: %v\n%s%s", strings.Join(args, " "), err, out, notes)
	}
	return out, notes
}

func (u user) tries(args ...string) (out, notes string, err error) {
	u.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(u.Context(), trainer, args...)
	command.Dir, command.Env = u.dir, append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig)
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	return stdout.String(), stderr.String(), err
}

// flags are those of a command of the tutorial, as a shell passes them.
func (u user) flags(command string) []string {
	u.Helper()
	words, err := elasticdl.Words(command)
	if err != nil {
		u.Fatal(err)
	}
	return words[2:] // without "python …/client.py"
}

// seen is what `status --json` prints.
type seen struct {
	Phase  trainingjob.Phase  `json:"phase"`
	Status trainingjob.Status `json:"status"`
	Pods   []struct {
		Name   string          `json:"name"`
		Phase  corev1.PodPhase `json:"phase"`
		Reason string          `json:"reason"`
	} `json:"pods"`
}

// waits asks for the status of the job of low priority until it is as it should be.
func (u user) waits(what string, is func(seen) bool) seen {
	u.Helper()
	ctx, cancel := context.WithTimeout(u.Context(), patience.Long)
	defer cancel()
	var last seen
	err := await.Until(ctx, lowJob+": "+what, 200*time.Millisecond, func(context.Context) error {
		out, notes, err := u.tries("status", "--json", lowJob)
		if err != nil {
			return fmt.Errorf("%w: %s", err, notes)
		}
		last = seen{}
		if err := json.Unmarshal([]byte(out), &last); err != nil {
			return err
		}
		if !is(last) {
			return errors.New(out)
		}
		return nil
	})
	if err != nil {
		u.Fatal(err)
	}
	return last
}

func TestTheTutorialsCommandsTypedIntoSubmitPreemptAWorkerAndBothJobsFinish(t *testing.T) {
	u := newUser(t)
	t.Cleanup(func() { u.remove(lowJob, highJob) })
	out, notes := u.types(append([]string{"submit"}, u.flags(command(t, "low"))...)...)
	if !strings.Contains(out, "training job default/low-prio-job created") || !strings.Contains(notes, "is replaced by image "+trainingjob.ImageRepository) {
		t.Errorf("submit printed %q and %q", out, notes)
	}
	u.waits("two workers train", func(s seen) bool { return s.Status.WorkersRunning == 2 && s.Status.StepsDone > 0 })

	u.types(append([]string{"submit"}, u.flags(command(t, "high"))...)...)
	u.waits("a worker is preempted, and its replacement is Pending", func(s seen) bool {
		pending := false
		for _, pod := range s.Pods {
			pending = pending || pod.Phase == corev1.PodPending && strings.Contains(pod.Reason, "Insufficient cpu")
		}
		return pending && s.Status.Preemptions == 1 && s.Status.WorkersRunning == 1
	})
	u.waits("the audit of the preemption", func(s seen) bool {
		d := s.Status.Disruptions
		if d == nil || d.Count != 1 || len(d.Newest) != 1 {
			return false
		}
		one := d.Newest[0]
		return strings.HasPrefix(one.Pod, lowJob+"-worker-") && one.Role == trainingjob.RoleWorker && one.Kind == trainingjob.DisruptionPreempted &&
			one.Reason == corev1.PodReasonPreemptionByScheduler && strings.HasPrefix(one.By, "pod default/"+highJob+"-") && one.Workers == 2 &&
			one.Recovered != nil
	})
	for _, job := range []string{highJob, lowJob} {
		if out, notes, err := u.tries("status", "--follow", job); err != nil || !strings.Contains(out, "Succeeded") {
			t.Fatalf("status --follow %s: %v\n%s%s", job, err, out, notes)
		}
	}
	done := u.waits("it is Succeeded", func(s seen) bool { return s.Phase == trainingjob.PhaseSucceeded })
	if s := done.Status; s.StepsTotal != records/10/2 || s.StepsDone != s.StepsTotal || s.ModelSHA256 == "" || s.Preemptions < 1 {
		t.Errorf("the first job ended with %+v", s)
	}
	t.Logf("the audit at the end is %+v", done.Status.Disruptions)
	u.saysThatItRecovered(lowJob)
	if printed := u.audit(); !strings.Contains(printed, "default/low-prio-job") || !strings.Contains(printed, "PreemptionByScheduler  default/"+highJob+"-") {
		t.Errorf("elastic-sim audit printed\n%s", printed)
	}
	if log, _ := u.types("logs", lowJob); !strings.Contains(log, "was preempted") {
		t.Errorf("the master's log does not say that a worker was preempted:\n%s", log)
	}
	if printed, _ := u.types("status", lowJob); !strings.Contains(printed, "Succeeded") || !strings.Contains(printed, done.Status.ModelSHA256) ||
		!strings.Contains(printed, "PreemptionByScheduler  pod default/"+highJob) || !strings.Contains(printed, ", computing ") {
		t.Errorf("status printed\n%s", printed)
	}

	u.types("delete", lowJob, highJob)
	u.nothingIsLeft()
	if _, notes, err := u.tries("status", lowJob); err == nil || !strings.Contains(notes, "there is no training job low-prio-job") {
		t.Errorf("status of a job that is deleted: %v\n%s", err, notes)
	}
}

// saysThatItRecovered reads the Event of the audit.
func (u user) saysThatItRecovered(job string) {
	u.Helper()
	client, err := cluster.Client()
	if err != nil {
		u.Fatal(err)
	}
	events, err := client.CoreV1().Events(corev1.NamespaceDefault).List(u.Context(), metav1.ListOptions{FieldSelector: "reason=Recovered,involvedObject.kind=Job,involvedObject.name=" + job})
	if err != nil {
		u.Fatal(err)
	}
	if len(events.Items) != 1 || !strings.Contains(events.Items[0].Message, " was preempted at step ") {
		u.Errorf("the Events are %+v", events.Items)
	}
}

// audit is what `elastic-sim audit` prints.
func (u user) audit() string {
	u.Helper()
	simulator, err := program.Simulator(u.Context(), u.dir)
	if err != nil {
		u.Fatal(err)
	}
	command := exec.CommandContext(u.Context(), simulator, "audit")
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig)
	printed, err := command.CombinedOutput()
	if err != nil {
		u.Fatalf("%v\n%s", err, printed)
	}
	return string(printed)
}

// remove deletes jobs, whether or not they are there.
func (u user) remove(jobs ...string) {
	for _, job := range jobs {
		command := exec.Command(trainer, "delete", job)
		command.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig)
		_ = command.Run() // of a job that is not there
	}
}

// nothingIsLeft checks that no object has the label of a job.
func (u user) nothingIsLeft() {
	u.Helper()
	client, err := cluster.Client()
	if err != nil {
		u.Fatal(err)
	}
	of := metav1.ListOptions{LabelSelector: trainingjob.LabelJobName}
	configMaps, err := client.CoreV1().ConfigMaps("default").List(u.Context(), of)
	if err != nil || len(configMaps.Items) > 0 {
		u.Errorf("%d ConfigMaps are left (%v)", len(configMaps.Items), err)
	}
	secrets, err := client.CoreV1().Secrets("default").List(u.Context(), of)
	if err != nil || len(secrets.Items) > 0 {
		u.Errorf("%d Secrets are left (%v)", len(secrets.Items), err)
	}
	roles, err := client.RbacV1().Roles("default").List(u.Context(), of)
	if err != nil || len(roles.Items) > 0 {
		u.Errorf("%d Roles are left (%v)", len(roles.Items), err)
	}
}

func TestSubmitLeavesNothingOfAJobThatItCannotMakeWhole(t *testing.T) {
	u := newUser(t)
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"submit", "--job-name=taken", "--model=mnist", "--train-data-dir=synthetic://digits"}
	if _, notes, err := u.tries(append(args, "--worker_pod_priority=nobodys")...); err == nil || !strings.Contains(notes, "--worker-pod-priority=nobodys: this PriorityClass does not exist") {
		t.Errorf("a class that does not exist: %v\n%s", err, notes)
	}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: trainingjob.StatusName("taken")}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		//nolint:errcheck // the cluster ends with the tests
		_ = client.CoreV1().ConfigMaps("default").Delete(context.WithoutCancel(t.Context()), theirs.Name, metav1.DeleteOptions{})
	})
	if _, notes, err := u.tries(args...); err == nil || !strings.Contains(notes, "taken-status") {
		t.Errorf("a name that is taken: %v\n%s", err, notes)
	}
	u.nothingIsLeft()
	if _, err := client.BatchV1().Jobs("default").Get(t.Context(), "taken", metav1.GetOptions{}); err == nil {
		t.Error("the Job is left")
	}
}

func TestTheObjectsOfADryRunAreThoseThatSubmitCreates(t *testing.T) {
	u := newUser(t)
	t.Cleanup(func() { u.remove(lowJob) })
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	printed, _ := u.types(append([]string{"submit", "--dry-run", "-o", "json"}, u.flags(command(t, "low"))...)...)
	var list struct {
		Kind  string `json:"kind"`
		Items []struct {
			Kind     string            `json:"kind"`
			Metadata metav1.ObjectMeta `json:"metadata"`
			Data     map[string]string `json:"data"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(printed), &list); err != nil || list.Kind != "List" {
		t.Fatalf("%v:\n%s", err, printed)
	}
	u.types(append([]string{"submit"}, u.flags(command(t, "low"))...)...)
	for _, item := range list.Items {
		if item.Kind != "ConfigMap" || item.Metadata.Name != trainingjob.ConfigMapName(lowJob) {
			continue
		}
		live, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), item.Metadata.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for key, text := range item.Data {
			if key != trainingjob.SignatureKey && live.Data[key] != text { // each job has a key of its own
				t.Errorf("%s: printed is\n%s\nin the cluster is\n%s", key, text, live.Data[key])
			}
		}
		return
	}
	t.Errorf("the ConfigMap is not printed:\n%s", printed)
}
