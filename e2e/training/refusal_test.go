package training_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

func TestAJobWhoseWorkersCannotReadTheDataFailsWithTheReason(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if printed, err := exec.CommandContext(t.Context(), trainer, "data", "synth", "--output", data, "--records", "200").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	d := define(t, referenceModel)
	d.Job.Data.Training = "/only-here/data"
	d.Job.Namespace = cluster.Namespace(t)
	enforce(t, d.Job.Namespace, "privileged") // a host path
	d.Volumes = []trainingjob.Volume{{Name: "data", MountPath: "/only-here/data", HostPath: data, Mount: trainingjob.MountMaster}}
	j := start(t, d)
	s := j.awaitStatus("failure", func(s trainingjob.Status) bool { return s.Phase == trainingjob.PhaseFailed })
	if !has(s.Message, "workers failed one after the other", "/only-here/data") {
		t.Errorf("the reason: %s", s.Message)
	}
	j.await("the Job's failure", func(ctx context.Context) (string, bool, error) { return j.condition(ctx, batchv1.JobFailed) })
	masters, err := j.pods(t.Context(), trainingjob.RoleMaster)
	if err != nil || len(masters) != 1 || masters[0].Status.ContainerStatuses[0].State.Terminated == nil ||
		masters[0].Status.ContainerStatuses[0].State.Terminated.ExitCode != trainingjob.ExitJobFailed {
		t.Errorf("the master: %s %v", names(masters), err)
	}
}

func TestASecondMasterIsRefusedWithTheNameOfTheFirst(t *testing.T) {
	t.Parallel()
	j := start(t, paced(define(t, referenceModel), 200*time.Millisecond))
	j.awaitStep(1)
	masters, err := j.pods(t.Context(), trainingjob.RoleMaster)
	if err != nil || len(masters) != 1 {
		t.Fatalf("%s %v", names(masters), err)
	}
	// The same pod without the Job's and the Service's labels.
	second := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "second"}, Spec: j.objects.Job.Spec.Template.Spec}
	j.made(j.client.CoreV1().Pods(j.ns).Create(t.Context(), second, metav1.CreateOptions{}))
	j.awaitLog("second", "already has a master", masters[0].Name)
	j.await("the second master's end", func(ctx context.Context) (string, bool, error) {
		pod, err := j.client.CoreV1().Pods(j.ns).Get(ctx, "second", metav1.GetOptions{})
		if err != nil {
			return "", false, err
		}
		return string(pod.Status.Phase), pod.Status.Phase == corev1.PodFailed, nil
	})
	if s := j.awaitStatus("success", func(s trainingjob.Status) bool { return s.Phase == trainingjob.PhaseSucceeded }); s.Generation != 1 {
		t.Errorf("the second master took generation %d", s.Generation)
	}
}

func TestAMasterThatMayNotCreatePodsReportsIt(t *testing.T) {
	t.Parallel()
	j := create(t, define(t, referenceModel))
	role := j.objects.Role.DeepCopy()
	for i := range role.Rules {
		if slices.Contains(role.Rules[i].Resources, "pods") {
			role.Rules[i].Verbs = slices.DeleteFunc(role.Rules[i].Verbs, func(verb string) bool { return verb == "create" })
		}
	}
	j.made(j.client.RbacV1().Roles(j.ns).Update(t.Context(), role, metav1.UpdateOptions{}))
	j.resume()
	j.awaitStatus("what is forbidden", func(s trainingjob.Status) bool {
		return s.Phase == trainingjob.PhaseWaiting && has(s.Message, "pods is forbidden", "cannot create resource", trainingjob.ServiceAccountName(j.name))
	})
	// When it is allowed after all the job continues by itself.
	j.made(j.client.RbacV1().Roles(j.ns).Update(t.Context(), j.objects.Role, metav1.UpdateOptions{}))
	j.awaitSuccess()
}

func TestAWorkerWithAWrongTokenIsRefusedAndLogged(t *testing.T) {
	t.Parallel()
	j := start(t, paced(define(t, referenceModel), 200*time.Millisecond))
	j.awaitStep(1)
	masters, err := j.pods(t.Context(), trainingjob.RoleMaster)
	if err != nil || len(masters) != 1 {
		t.Fatalf("%s %v", names(masters), err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		trainingjob.TLSCertificateKey: j.objects.Credentials.Data[trainingjob.TLSCertificateKey], trainingjob.TokenKey: []byte(strings.Repeat("0", 64)),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	printed, err := exec.CommandContext(t.Context(), trainer, "worker", "--master", masters[0].Status.PodIP+":50001", "--id", "77", "--credentials", dir).CombinedOutput()
	if err == nil || !has(string(printed), "the master rejected this worker", "the token is not this job's") {
		t.Errorf("%v\n%s", err, printed)
	}
	j.awaitLog(masters[0].Name, "rejected a worker with a wrong token")
	text, err := j.log(t.Context(), masters[0].Name)
	if token := string(j.objects.Credentials.Data[trainingjob.TokenKey]); err != nil || strings.Contains(text, token) {
		t.Errorf("the token is in the master's log, or there is none: %v", err)
	}
}
