package training_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

func TestAJobGivesTheModelOfALocalRun(t *testing.T) {
	for name, model := range map[string]string{"the reference model": referenceModel, "the tutorial's model": tutorialModel} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := start(t, define(t, model))
			hash := j.awaitSuccess()
			if want := local(t, model); hash != want {
				t.Errorf("hash %s, and on one machine %s", hash, want)
			}
			kept, err := j.client.CoreV1().ConfigMaps(j.ns).Get(t.Context(), trainingjob.ModelName(j.name), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if sum := sha256.Sum256(kept.BinaryData["model.safetensors"]); hex.EncodeToString(sum[:]) != hash {
				t.Errorf("the model in the ConfigMap has hash %x, and the status says %s", sum, hash)
			}
			for _, p := range j.awaitWorkers("the workers' ends", func(pods []corev1.Pod) bool { return len(living(pods)) == 0 }) {
				if p.Status.Phase != corev1.PodSucceeded {
					t.Errorf("worker pod %s of a finished job is %s", p.Name, p.Status.Phase)
				}
			}
			lease, err := j.client.CoordinationV1().Leases(j.ns).Get(t.Context(), trainingjob.MasterName(j.name), metav1.GetOptions{})
			if err != nil || lease.Spec.HolderIdentity != nil || *lease.Spec.LeaseTransitions != 1 {
				t.Errorf("the Lease afterwards: %+v %v", lease.Spec, err)
			}
		})
	}
}

func TestTheTutorialsCommandListsMasterAndWorkers(t *testing.T) {
	t.Parallel()
	j := start(t, paced(define(t, referenceModel), 100*time.Millisecond))
	j.awaitStatus("two ready workers", twoReady)
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("this test needs kubectl in PATH")
	}
	command := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", cluster.Kubeconfig, "-n", j.ns, "get", "pods", "-l", "elasticdl_job_name="+j.name)
	printed, err := command.CombinedOutput()
	if err != nil || len(strings.Split(strings.TrimSpace(string(printed)), "\n")) != 4 || !has(string(printed), j.name+"-worker-0", j.name+"-worker-1") {
		t.Errorf("%v:\n%s", err, printed)
	}
	// The owner is for garbage collection alone: the Job controller neither takes nor strips what is not its own.
	pods, err := j.pods(t.Context(), trainingjob.RoleWorker)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if len(p.OwnerReferences) != 1 || p.OwnerReferences[0].UID != j.uid || p.OwnerReferences[0].Controller != nil || p.OwnerReferences[0].BlockOwnerDeletion != nil {
			t.Errorf("pod %s is owned by %+v", p.Name, p.OwnerReferences)
		}
		for _, label := range []string{"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"} {
			if value, ok := p.Labels[label]; ok {
				t.Errorf("pod %s carries the Job's selector label %s=%s", p.Name, label, value)
			}
		}
	}
	j.awaitSuccess()
	live, err := j.client.BatchV1().Jobs(j.ns).Get(t.Context(), j.name, metav1.GetOptions{})
	if err != nil || live.Status.Succeeded != 1 || live.Status.Failed != 0 {
		t.Errorf("the Job counts others than its master: %+v %v", live.Status, err)
	}
}

func twoReady(s trainingjob.Status) bool {
	ready := 0
	for _, w := range s.Workers {
		if w.State == "ready" {
			ready++
		}
	}
	return ready == 2 && s.StepsDone > 0
}

func TestALostWorkerIsReplacedByTheNextNumberAndTheModelIsTheSame(t *testing.T) {
	for name, lose := range map[string]func(*job){
		"its pod is deleted": func(j *job) {
			if err := j.client.CoreV1().Pods(j.ns).Delete(j.Context(), trainingjob.WorkerName(j.name, 1), metav1.DeleteOptions{}); err != nil {
				j.Fatal(err)
			}
		},
		"its process is killed": func(j *job) {
			if err := syscall.Kill(j.worker(1), syscall.SIGKILL); err != nil {
				j.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := start(t, paced(define(t, referenceModel), 200*time.Millisecond))
			j.awaitStatus("two ready workers", twoReady)
			lose(j)
			j.awaitStatus("worker 2 in worker 1's place", func(s trainingjob.Status) bool {
				return len(s.Workers) == 2 && s.Workers[1].ID == 2 && s.Workers[1].State == "ready"
			})
			if hash, want := j.awaitSuccess(), local(t, referenceModel); hash != want {
				t.Errorf("hash %s, and undisturbed %s", hash, want)
			}
			live, err := j.client.BatchV1().Jobs(j.ns).Get(t.Context(), j.name, metav1.GetOptions{})
			if err != nil || live.Annotations[trainingjob.AnnotationLastWorkerID] != "2" {
				t.Errorf("the highest number on the Job: %v %v", live.Annotations, err)
			}
		})
	}
}

func TestAPausedWorkerIsReplacedInTheDealAndComesBack(t *testing.T) {
	t.Parallel()
	j := start(t, paced(define(t, referenceModel), 200*time.Millisecond))
	j.awaitStatus("two ready workers", twoReady)
	pid := j.worker(1)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	paused := j.awaitStatus("the suspicion", func(s trainingjob.Status) bool { return s.WorkersRunning == 1 })
	j.awaitStep(paused.StepsDone + 2)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	j.awaitStatus("worker 1 at work again", func(s trainingjob.Status) bool {
		return len(s.Workers) == 2 && s.Workers[1].ID == 1 && s.Workers[1].State == "ready" && s.Workers[1].Gradients > 0
	})
	if hash, want := j.awaitSuccess(), local(t, referenceModel); hash != want {
		t.Errorf("hash %s, and undisturbed %s", hash, want)
	}
}

func TestAMasterThatIsPausedDropsNobody(t *testing.T) {
	t.Parallel()
	j := start(t, paced(define(t, referenceModel), 100*time.Millisecond))
	j.awaitStatus("two ready workers", twoReady)
	pid := j.master()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	j.await("three seconds without a renewal of the Lease", func(ctx context.Context) (string, bool, error) {
		lease, err := j.client.CoordinationV1().Leases(j.ns).Get(ctx, trainingjob.MasterName(j.name), metav1.GetOptions{})
		if err != nil {
			return "", false, err
		}
		return lease.Spec.RenewTime.String(), time.Since(lease.Spec.RenewTime.Time) > 3*time.Second, nil
	})
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if hash, want := j.awaitSuccess(), local(t, referenceModel); hash != want {
		t.Errorf("hash %s, and undisturbed %s", hash, want)
	}
	events, err := j.client.CoreV1().Events(j.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.Reason == "WorkerLeft" {
			t.Errorf("Event: %s", e.Message)
		}
	}
}

func TestAMasterThatIsDeletedStopsInOrderAndTheNextOneTakesItsPlace(t *testing.T) {
	t.Parallel()
	j := start(t, paced(define(t, referenceModel), 100*time.Millisecond))
	j.awaitStep(2)
	masters, err := j.pods(t.Context(), trainingjob.RoleMaster)
	if err != nil || len(masters) != 1 {
		t.Fatalf("%s %v", names(masters), err)
	}
	watch, err := j.client.CoreV1().Pods(j.ns).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + masters[0].Name})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if err := j.client.CoreV1().Pods(j.ns).Delete(t.Context(), masters[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	code := int32(-1)
	j.await("the first master's exit", func(ctx context.Context) (string, bool, error) {
		select {
		case e := <-watch.ResultChan():
			if pod, ok := e.Object.(*corev1.Pod); ok && len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Terminated != nil {
				code = pod.Status.ContainerStatuses[0].State.Terminated.ExitCode
				return "", true, nil
			}
		case <-ctx.Done():
		}
		return "no end of its container", false, nil
	})
	if code != trainingjob.ExitStopped {
		t.Errorf("the first master exited with %d", code)
	}
	live, err := j.client.BatchV1().Jobs(j.ns).Get(t.Context(), j.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if at, err := time.Parse(time.RFC3339, live.Annotations[trainingjob.AnnotationLastCheckpoint]); err != nil || time.Since(at) > 5*time.Minute {
		t.Errorf("the checkpoint that it wrote is not reported on the Job: %v, %v", live.Annotations, err)
	}
	j.awaitStatus("the second generation", func(s trainingjob.Status) bool { return s.Generation == 2 && s.StepsDone > 0 })
	if hash, want := j.awaitSuccess(), local(t, referenceModel); hash != want {
		t.Errorf("hash %s, and undisturbed %s", hash, want)
	}
}

// This test runs alone: without the API server the others could not look at their jobs.
func TestTrainingGoesOnWithoutTheAPIServer(t *testing.T) {
	j := start(t, paced(define(t, referenceModel), 100*time.Millisecond))
	j.awaitStep(2)
	for range 2 {
		if err := cluster.KillComponent(t.Context(), controlplane.APIServer); err != nil {
			t.Fatal(err)
		}
	}
	if err := cluster.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if hash, want := j.awaitSuccess(), local(t, referenceModel); hash != want {
		t.Errorf("hash %s, and undisturbed %s", hash, want)
	}
	s, err := j.status(t.Context())
	if err != nil || s.Generation != 1 {
		t.Errorf("another master took over: %+v %v", s, err)
	}
}

func TestAJobGoesOnWithoutALostNode(t *testing.T) {
	t.Parallel()
	d := paced(define(t, referenceModel), 100*time.Millisecond)
	d.Workers.NodeSelector = map[string]string{nodeKind: volatile}
	// A node takes one of them.
	d.Workers.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("10")
	j := start(t, d)
	j.awaitStatus("two ready workers", twoReady)
	lost, err := j.client.CoreV1().Pods(j.ns).Get(t.Context(), trainingjob.WorkerName(j.name, 1), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.StopNode(t.Context(), lost.Spec.NodeName, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience.Medium)
		defer cancel()
		if err := cluster.StartNode(ctx, lost.Spec.NodeName); err != nil {
			t.Error(err)
		}
	})
	if hash, want := j.awaitSuccess(), local(t, referenceModel); hash != want {
		t.Errorf("hash %s, and undisturbed %s", hash, want)
	}
}
