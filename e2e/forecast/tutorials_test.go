package forecast_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// tutorial is a copy of one of the examples, in which terraform is run.
func tutorial(t *testing.T, name string) *providertest.Terminal {
	t.Helper()
	terminal := providertest.NewTerminal(t)
	if err := os.CopyFS(terminal.Directory, os.DirFS("../../examples")); err != nil { // whole: some read files of their neighbours
		t.Fatal(err)
	}
	terminal.Directory = filepath.Join(terminal.Directory, "tutorials", name)
	return terminal
}

// apply applies the tutorial with variables, and returns what was printed.
func apply(t *testing.T, terminal *providertest.Terminal, command string, variables ...string) string {
	t.Helper()
	config, err := os.ReadFile(filepath.Join(terminal.Directory, "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	arguments := []string{command, "-auto-approve", "-var=config_path=" + cluster.Kubeconfig}
	for _, v := range variables {
		arguments = append(arguments, "-var="+v)
	}
	printed, code := terminal.Run(t, string(config), arguments...)
	if code != 0 {
		t.Fatalf("terraform %v exited with %d:\n%s", arguments, code, printed)
	}
	return printed
}

// TestTheFirstTutorialsPlanNamesTheEvictedWorker is ElasticDL's: two low workers, of which the second starts two
// seconds after the first, and a high job that needs the room of one.
func TestTheFirstTutorialsPlanNamesTheEvictedWorker(t *testing.T) {
	terminal := tutorial(t, "elastic-scheduling")
	variables := func(more ...string) []string {
		return append([]string{"image=elastic-trainer:test", "low_epochs=100000", "high_epochs=100000"}, more...)
	}
	t.Cleanup(func() { apply(t, terminal, "destroy", variables()...) })
	apply(t, terminal, "apply", variables("submit_high=false", "low_workers=1")...)
	eventually(t, "the first worker", func(ctx context.Context) (string, bool) {
		pods, err := client(t).CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "elasticdl_job_name=low-prio-job"})
		if err != nil {
			return err.Error(), false
		}
		started := slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool {
			return pod.Name == "low-prio-job-worker-0" && running(&pod) && time.Since(pod.Status.StartTime.Time) > 3*time.Second
		})
		return fmt.Sprintf("%d pods", len(pods.Items)), started
	})
	apply(t, terminal, "apply", variables("submit_high=false", "low_workers=2")...)
	eventually(t, "the second worker", func(ctx context.Context) (string, bool) {
		pod, err := client(t).CoreV1().Pods("default").Get(ctx, "low-prio-job-worker-1", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return string(pod.Status.Phase), running(pod)
	})
	before := places(t, "low-prio-job")

	f := parsePrinted(t, apply(t, terminal, "apply", variables("submit_high=true")...), "high-prio-job")
	if want := []string{"default/low-prio-job-worker-1"}; !slices.Equal(f.certain, want) || len(f.either) > 0 {
		t.Errorf("the plan names %v and %v, not %v:\n%s", f.certain, f.either, want, f.text)
	}
	providertest.ExpectText(t, f.text, "job low-prio-job continues with 1 of 2 workers", "worker 0 on "+before["worker 1"]+" after its victim has terminated (grace period 30s)")
	after := places(t, "high-prio-job")
	var evicted []string
	low := places(t, "low-prio-job")
	for role := range before {
		if low[role] == "" {
			evicted = append(evicted, "default/low-prio-job-"+strings.ReplaceAll(role, " ", "-"))
		}
	}
	if wrong := f.differs(evicted, after); wrong != "" {
		t.Errorf("%s\n%s", f.text, wrong)
	}
}

// places are the nodes of a training job's pods that run, by role.
func places(t *testing.T, job string) map[string]string {
	t.Helper()
	pods, err := client(t).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "elasticdl_job_name=" + job})
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]string{}
	for i := range pods.Items {
		if pod := &pods.Items[i]; running(pod) && pod.DeletionTimestamp == nil {
			nodes[roleOf(pod)] = pod.Spec.NodeName
		}
	}
	return nodes
}

// TestTheSecondTutorialsPlanNamesTheEvictedWorkload is Trainy's: a low task with all GPUs of the queue, and a high
// one.
func TestTheSecondTutorialsPlanNamesTheEvictedWorkload(t *testing.T) {
	terminal := tutorial(t, "queue-priorities")
	variables := func(more ...string) []string { return append([]string{"image=host"}, more...) }
	t.Cleanup(func() { apply(t, terminal, "destroy", variables()...) })
	printed := apply(t, terminal, "apply", variables("submit_low=true", "submit_high=false")...)
	providertest.ExpectText(t, printed, "Warning: low will start without evicting any pods", "admitted by ClusterQueue team with quota of t4", "the pod on gpu-1 immediately")
	low := workloadOf(t, "low")

	f := parsePrinted(t, apply(t, terminal, "apply", variables("submit_low=true", "submit_high=true")...), "high")
	if want := []string{"workload default/" + low.Name}; !slices.Equal(f.certain, want) || len(f.either) > 0 {
		t.Errorf("the plan names %v and %v, not %v:\n%s", f.certain, f.either, want, f.text)
	}
	providertest.ExpectText(t, f.text, "task low is queued again, first in line", "the pod on gpu-1 after")
	if now := workloadOf(t, "low"); !meta.IsStatusConditionTrue(now.Status.Conditions, kueue.WorkloadEvicted) {
		t.Errorf("low was not evicted: %+v", now.Status.Conditions)
	}
	if now := workloadOf(t, "high"); !meta.IsStatusConditionTrue(now.Status.Conditions, kueue.WorkloadAdmitted) {
		t.Errorf("high was not admitted: %+v", now.Status.Conditions)
	}
}

// workloadOf is the Workload of a Job.
func workloadOf(t *testing.T, job string) *kueue.Workload {
	t.Helper()
	list, err := queues(t).Workloads("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if w := &list.Items[i]; slices.ContainsFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Name == job }) {
			return w
		}
	}
	t.Fatalf("Job %s has no Workload", job)
	return nil
}
