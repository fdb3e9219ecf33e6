package forecast_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
)

func simulator(t *testing.T) string {
	t.Helper()
	path, err := program.Simulator(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTheExitCodeOfAForecastIsItsOutcome forecasts jobs for nodes with hardly any room.
func TestTheExitCodeOfAForecastIsItsOutcome(t *testing.T) {
	sim := simulator(t)
	makeClasses(t)
	pods := client(t).CoreV1().Pods("default")
	for i := range 3 {
		name := fmt.Sprintf("occupant-%d", i)
		_, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"lane": laneName(0)}, Tolerations: []corev1.Toleration{{Key: "lane", Operator: corev1.TolerationOpExists}},
			PriorityClassName: "p100", TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{
				Name: "main", Image: "host", Command: []string{"sleep", "100000"},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3500m")}},
			}},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := pods.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
		eventually(t, name, func(ctx context.Context) (string, bool) {
			pod, err := pods.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err.Error(), false
			}
			return string(pod.Status.Phase), running(pod)
		})
	}
	ask := func(cpu, class string) string {
		path := filepath.Join(t.TempDir(), "job.yaml")
		text := fmt.Sprintf("name: asked\npods:\n- name: pod\n  requests: {cpu: %q}\n  priority_class_name: %s\n  node_selector: {lane: %s}\n  tolerations: [{key: lane, operator: Exists}]\n", cpu, class, laneName(0))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for outcome, c := range map[string]struct {
		file string
		code int
		more []string
	}{
		"it fits":                          {ask("100m", "p10"), 0, nil},
		"it preempts":                      {ask("2", "p1000"), 10, nil},
		"it waits":                         {ask("2", "p100"), 11, nil},
		"it can never run":                 {ask("5", "p1000"), 12, nil},
		"there is no such file":            {"nowhere.yaml", 1, nil},
		"there is no such context":         {ask("1", "p10"), 1, []string{"--context", "nobodys"}},
		"an argument that is no flag":      {ask("1", "p10"), 2, []string{"again"}},
		"the same as data":                 {ask("2", "p1000"), 10, []string{"--json"}},
		"with a timeout that is too short": {ask("1", "p10"), 1, []string{"--timeout", "1ns"}},
	} {
		command := exec.CommandContext(t.Context(), sim, append([]string{"forecast", "-f", c.file, "--kubeconfig", cluster.Kubeconfig}, c.more...)...)
		output, err := command.CombinedOutput()
		if code := command.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%s: exit code %d, want %d (%v):\n%s", outcome, code, c.code, err, output)
		}
	}
}
