package task_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// Of the guide "Least privilege".
const restricted = `
		security_context = { run_as_user = 1000 }`

// enforce sets the Pod Security Standard of a namespace; that of the cluster is baseline.
func enforce(t *testing.T, ns, standard string) {
	t.Helper()
	podSecurity(t, ns, "enforce", standard)
}

func podSecurity(t *testing.T, ns, mode, standard string) {
	t.Helper()
	label := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/` + mode + `":"` + standard + `"}}}`)
	if _, err := client(t).CoreV1().Namespaces().Patch(t.Context(), ns, types.StrategicMergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestATaskWithTheSettingsIsAdmittedWhereRestrictedIsEnforced(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	enforce(t, ns, "restricted")
	steps(t, resource.TestStep{
		Config:            block(ns, "gang", "num_nodes = 2\n supervisor_image = \"elastic-trainer\"\n run = \"true\"\n wait_for = \"succeeded\"\n"+restricted),
		ConfigPlanChecks:  planned(plancheck.ResourceActionCreate),
		ConfigStateChecks: []statecheck.StateCheck{state("phase", text("Succeeded"))},
	})
}

func TestATaskNeedsNothingWhereBaselineIsEnforcedAndGetsNoNode(t *testing.T) {
	t.Parallel()
	ns, r := namespace(t), providertest.NewTerminal(t)
	enforce(t, ns, "baseline")
	steps(t, resource.TestStep{Config: block(ns, "plain", "run = \"true\"\n wait_for = \"succeeded\""), ConfigStateChecks: []statecheck.StateCheck{state("phase", text("Succeeded"))}})
	grabbing := block(ns, "grabs", "run = \"cat /node/etc/shadow\"\n wait_for = \"succeeded\"\n volumes = [{ name = \"node\", mount_path = \"/node\", host_path = \"/\" }]")
	grabbing = strings.Replace(grabbing, `create = "60s"`, `create = "10s"`, 1)
	printed, _ := r.Run(t, grabbing, "apply", "-auto-approve")
	if printed = strings.Join(strings.Fields(strings.ReplaceAll(printed, "│", " ")), " "); !strings.Contains(printed, `violates PodSecurity "baseline:latest": hostPath volumes`) {
		t.Errorf("apply reports:\n%s", printed)
	}
	if printed, code := r.Run(t, grabbing, "destroy", "-auto-approve"); code != 0 {
		t.Errorf("destroy exited with %d:\n%s", code, printed)
	}
}

func TestAWarningOfTheAPIServerIsAWarningOfApply(t *testing.T) {
	t.Parallel()
	ns, r := namespace(t), providertest.NewTerminal(t)
	podSecurity(t, ns, "warn", "restricted")
	config := block(ns, "plain", `run = "true"`)
	printed, code := r.Run(t, config, "apply", "-auto-approve")
	words := strings.Join(strings.Fields(strings.ReplaceAll(printed, "│", " ")), " ")
	if code != 0 || !strings.Contains(words, `Warning: Warning from the API server`) || strings.Count(words, `would violate PodSecurity "restricted:latest"`) != 1 {
		t.Errorf("apply exited with %d:\n%s", code, printed)
	}
	if printed, code := r.Run(t, config, "destroy", "-auto-approve"); code != 0 {
		t.Errorf("destroy exited with %d:\n%s", code, printed)
	}
}

// TestTheExamplesNamespaceRejectsTheDocumentedPods creates the namespace of examples/rbac, and pods in it that request too
// much.
func TestTheExamplesNamespaceRejectsTheDocumentedPods(t *testing.T) {
	t.Parallel()
	const ns = "team-a"
	kubectl := func(arguments ...string) {
		t.Helper()
		command := exec.CommandContext(context.WithoutCancel(t.Context()), "kubectl", append(arguments, "--kubeconfig="+cluster.Kubeconfig)...)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	example := func(name string) string { return filepath.Join("..", "..", "examples", "rbac", name) }
	kubectl("apply", "-f", example("namespace.yaml"))
	t.Cleanup(func() { kubectl("delete", "namespace", ns, "--wait=false") })
	kubectl("apply", "--namespace="+ns, "-f", example("network-policy.yaml"))
	await(t, "the namespace's account", func(ctx context.Context) (string, bool) {
		_, err := client(t).CoreV1().ServiceAccounts(ns).Get(ctx, "default", metav1.GetOptions{})
		return "none yet", err == nil
	})
	pod := func(change func(*corev1.PodSpec)) error {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "c", Image: "debian", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}}},
		}}
		change(&p.Spec)
		_, err := client(t).CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := pod(func(*corev1.PodSpec) {}); err != nil {
		t.Errorf("a pod that wants nothing: %v", err)
	}
	for words, change := range map[string]func(*corev1.PodSpec){
		"exceeded quota: no-system-priority": func(s *corev1.PodSpec) { s.PriorityClassName = "system-node-critical" },
		"runAsNonRoot != true":               func(s *corev1.PodSpec) { s.SecurityContext.RunAsNonRoot = nil },
		"host namespaces":                    func(s *corev1.PodSpec) { s.HostNetwork = true },
		"hostPath": func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		},
	} {
		if err := pod(change); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
}

func TestPodLogsAreShownUnlessTheyAreNotToBe(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	failing := block(ns, "failing", `
		run           = "printf 'my key is \\033[2Jhunter2\\033[0m\\n'; exit 3"
		fail_on_error = true
		wait_for      = "succeeded"`)
	for name, c := range map[string]struct {
		config string
		shown  bool
	}{
		"by default":            {failing, true},
		"show_pod_logs = false": {strings.Replace(failing, "config_path", "show_pod_logs = false\n  config_path", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := providertest.NewTerminal(t)
			printed, code := r.Run(t, c.config, "apply", "-auto-approve")
			if code != 1 || strings.Contains(printed, "\x1b") || strings.Contains(printed, "my key is hunter2") != c.shown {
				t.Errorf("apply exited with %d:\n%q", code, printed)
			}
			if !c.shown && !strings.Contains(printed, "show_pod_logs = false") {
				t.Errorf("the reason for the missing log is missing:\n%s", printed)
			}
			if printed, code := r.Run(t, c.config, "destroy", "-auto-approve"); code != 0 {
				t.Errorf("destroy exited with %d:\n%s", code, printed)
			}
		})
	}
}
