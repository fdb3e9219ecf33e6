package task_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	polling "github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

// address is that of the resource in most tests.
const address = "elastic_task.test"

// namespace makes one for the test, and checks in the end that the test's tasks have left nothing there.
func namespace(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(t.Name(), "-"))
	name = fmt.Sprintf("%.40s-%d", strings.TrimPrefix(name, "test"), time.Now().UnixNano()%1_000_000)
	kube := client(t)
	if _, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience.Medium)
		defer cancel()
		nothingLeft(ctx, t, name)
		if err := kube.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return name
}

// nothingLeft checks that no object of a task remains.
func nothingLeft(ctx context.Context, t *testing.T, ns string) {
	t.Helper()
	kube := client(t)
	selected := metav1.ListOptions{LabelSelector: task.LabelTask}
	for kind, list := range map[string]func() (int, error){
		"Job": func() (int, error) { l, err := kube.BatchV1().Jobs(ns).List(ctx, selected); return len(l.Items), err },
		"Pod": func() (int, error) { l, err := kube.CoreV1().Pods(ns).List(ctx, selected); return len(l.Items), err },
		"ConfigMap": func() (int, error) {
			l, err := kube.CoreV1().ConfigMaps(ns).List(ctx, selected)
			return len(l.Items), err
		},
		"Secret": func() (int, error) { l, err := kube.CoreV1().Secrets(ns).List(ctx, selected); return len(l.Items), err },
		"ServiceAccount": func() (int, error) {
			l, err := kube.CoreV1().ServiceAccounts(ns).List(ctx, selected)
			return len(l.Items), err
		},
		"Role": func() (int, error) { l, err := kube.RbacV1().Roles(ns).List(ctx, selected); return len(l.Items), err },
		"RoleBinding": func() (int, error) {
			l, err := kube.RbacV1().RoleBindings(ns).List(ctx, selected)
			return len(l.Items), err
		},
	} {
		if n, err := list(); err != nil || n > 0 {
			t.Errorf("%d %s objects of tasks are left in namespace %s (%v)", n, kind, ns, err)
		}
	}
}

// block is a resource block: the smallest task, with lines that override it or add to it.
func block(ns, name, lines string) string {
	attributes := map[string]string{"run": `"sleep 600"`, "image": `"debian"`}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		if !regexp.MustCompile(`(?m)^\s*(yaml|` + key + `)\s*=`).MatchString(lines) {
			fmt.Fprintf(&b, "  %s = %s\n", key, attributes[key])
		}
	}
	return asAdmin(fmt.Sprintf("resource \"elastic_task\" \"test\" {\n  name = %q\n  namespace = %q\n  timeouts = { create = \"60s\", update = \"60s\", delete = \"60s\" }\n%s%s\n}\n", name, ns, b.String(), lines))
}

// planned checks the action, and that nothing is left to do after it.
func planned(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{
		PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, action)},
		PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
	}
}

func state(attribute string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New(attribute), value)
}

func text(s string) knownvalue.Check { return knownvalue.StringExact(s) }

func job(t *testing.T, ns, name string) *batchv1.Job {
	t.Helper()
	live, err := client(t).BatchV1().Jobs(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// await polls until the condition holds, and fails with what it found last.
func await(t *testing.T, what string, condition func(context.Context) (found string, done bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience.Medium)
	defer cancel()
	err := polling.Until(ctx, what, 100*time.Millisecond, func(ctx context.Context) error {
		if found, done := condition(ctx); !done {
			return errors.New(found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func pods(ctx context.Context, t *testing.T, ns, name string) []corev1.Pod {
	t.Helper()
	list, err := client(t).CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: task.LabelTask + "=" + name})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func logOf(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	printed, err := client(t).CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: task.ContainerName}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(printed)
}

func TestATaskRunsToItsEnd(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	steps(t, resource.TestStep{
		Config: block(ns, "hello", `
			setup    = "echo prepared > state"
			run      = "cat state; echo \"hi, $WHO on $SKYPILOT_NODE_RANK of $SKYPILOT_NUM_NODES\"; cat data/words"
			env     = { WHO = "you" }
			workdir  = { "data/words" = "from the workdir\n" }
			wait_for = "succeeded"`),
		ConfigPlanChecks: planned(plancheck.ResourceActionCreate),
		ConfigStateChecks: []statecheck.StateCheck{
			state("phase", text("Succeeded")), state("reason", knownvalue.Null()), state("restarts", knownvalue.Int64Exact(0)),
			state("preemptions", knownvalue.Int64Exact(0)), state("workload", knownvalue.Null()),
			state("logs", text("kubectl logs -n "+ns+" job/hello -c task")), state("uid", knownvalue.StringRegexp(regexp.MustCompile(`^[0-9a-f-]{36}$`))),
		},
		Check: func(*terraform.State) error {
			found := pods(t.Context(), t, ns, "hello")
			if len(found) != 1 {
				t.Fatalf("%d pods", len(found))
			}
			printed := logOf(t, &found[0])
			for _, want := range []string{"prepared\n", "hi, you on 0 of 1\n", "from the workdir\n"} {
				if !strings.Contains(printed, want) {
					t.Errorf("the log does not have %q:\n%s", want, printed)
				}
			}
			return nil
		},
	})
}

func TestTaskLife(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	var uid string
	same := func(*terraform.State) error {
		if live := job(t, ns, "life"); string(live.UID) != uid {
			t.Errorf("the task was replaced: UID %s, was %s", live.UID, uid)
		}
		return nil
	}
	steps(t,
		resource.TestStep{
			Config:           block(ns, "life", ""),
			ConfigPlanChecks: planned(plancheck.ResourceActionCreate),
			ConfigStateChecks: []statecheck.StateCheck{
				state("namespace", text(ns)), state("wait_for", text("created")), state("on_finished", text("keep")), state("phase", text("Starting")),
				state("num_nodes", knownvalue.Int64Exact(1)), state("labels", knownvalue.MapSizeExact(0)),
			},
			Check: func(*terraform.State) error {
				live := job(t, ns, "life")
				uid = string(live.UID)
				if live.Spec.Suspend == nil || *live.Spec.Suspend {
					t.Error("the task is complete, but still suspended")
				}
				return nil
			},
		},
		resource.TestStep{ // update right after create, in place
			Config: block(ns, "life", `
				labels      = { team = "vision" }
				annotations = { "example.com/note" = "A note." }
				recovery    = { max_restarts_on_errors = 3 }
				ttl_seconds_after_finished = 3600
				wait_for    = "running"`),
			ConfigPlanChecks:  planned(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{state("phase", text("Running"))},
			Check: resource.ComposeTestCheckFunc(same, func(*terraform.State) error {
				live := job(t, ns, "life")
				if live.Labels["team"] != "vision" || live.Annotations["example.com/note"] != "A note." || *live.Spec.BackoffLimit != 3 || *live.Spec.TTLSecondsAfterFinished != 3600 {
					t.Errorf("the Job: %v %v %+v", live.Labels, live.Annotations, live.Spec)
				}
				cm, err := client(t).CoreV1().ConfigMaps(ns).Get(t.Context(), task.ConfigMapName("life"), metav1.GetOptions{})
				if err != nil || cm.Labels["team"] != "vision" {
					t.Errorf("the ConfigMap: %v %v", cm.Labels, err)
				}
				return nil
			}),
		},
		resource.TestStep{ // attributes are removed
			Config:            block(ns, "life", ""),
			ConfigPlanChecks:  planned(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{state("labels", knownvalue.MapSizeExact(0)), state("ttl_seconds_after_finished", knownvalue.Null())},
			Check: resource.ComposeTestCheckFunc(same, func(*terraform.State) error {
				live := job(t, ns, "life")
				if _, there := live.Labels["team"]; there || live.Annotations["example.com/note"] != "" || *live.Spec.BackoffLimit != 0 || live.Spec.TTLSecondsAfterFinished != nil {
					t.Errorf("the Job: %v %v %+v", live.Labels, live.Annotations, live.Spec)
				}
				return nil
			}),
		},
		resource.TestStep{ // import reads the attributes
			ResourceName: address, ImportState: true, ImportStateId: ns + "/life", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			ImportStateVerifyIgnore: []string{"timeouts"},
		},
		resource.TestStep{ // what the pods run replaces the task
			Config:           block(ns, "life", `run = "sleep 601"`),
			ConfigPlanChecks: planned(plancheck.ResourceActionReplace),
			Check: func(*terraform.State) error {
				if live := job(t, ns, "life"); string(live.UID) == uid {
					t.Error("the task was not replaced")
				}
				return nil
			},
		},
	)
}

func TestATaskFromAFile(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	yaml := func(lines string) string {
		return "yaml = <<-EOT\n" + lines + "\nEOT\n"
	}
	steps(t,
		resource.TestStep{
			Config: block(ns, "from-file", yaml("name: other\nnum_nodes: 1\nenvs:\n  A: b\nresources:\n  accelerators: T4:4\n  cpus: 2+\n  labels:\n    team: vision\nrun: |\n  echo \"$A $SKYPILOT_NUM_GPUS_PER_NODE\"\n  sleep 600")+
				`image = "debian"
				labels = { more = "yes" }
				wait_for = "running"`),
			ConfigPlanChecks:  planned(plancheck.ResourceActionCreate),
			ConfigStateChecks: []statecheck.StateCheck{state("accelerators", knownvalue.Null()), state("run", knownvalue.Null()), state("phase", text("Running"))},
			Check: func(*terraform.State) error {
				found := pods(t.Context(), t, ns, "from-file")
				if len(found) != 1 || !strings.HasPrefix(found[0].Spec.NodeName, "t4-") {
					t.Fatalf("pods %v", found)
				}
				if gpus := found[0].Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]; gpus.String() != "4" {
					t.Errorf("%s GPUs", gpus.String())
				}
				if live := job(t, ns, "from-file"); live.Labels["team"] != "vision" || live.Labels["more"] != "yes" {
					t.Errorf("labels %v", live.Labels)
				}
				await(t, "the log", func(context.Context) (string, bool) {
					printed := logOf(t, &found[0])
					return printed, strings.Contains(printed, "b 4\n")
				})
				return nil
			},
		},
		resource.TestStep{ // the same by attributes is no other task
			Config: block(ns, "from-file", `
				env = { A = "b" }
				accelerators = "T4:4"
				cpus = "2+"
				labels = { team = "vision", more = "yes" }
				run = "echo \"$A $SKYPILOT_NUM_GPUS_PER_NODE\"\nsleep 600\n"
				image = "debian"`),
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
		},
	)
}

func TestWhatCannotRunIsRefusedWhenItIsPlanned(t *testing.T) {
	t.Parallel()
	file := func(lines string) string { return "yaml = <<-EOT\n" + lines + "\nEOT\n" }
	for refusal, c := range map[string]struct{ lines, wantText string }{
		"a key that is none":                  {file("run: echo\nrun_: x"), "yaml:2: unknown key run_; did you mean run?"},
		"an attribute that the file sets too": {file("run: echo\nresources:\n  cpus: 2") + `cpus = "4"`, "cpus is also set by the task file"},
		"a variable that is too":              {file("run: echo\nenvs:\n  A: b") + `env = { A = "c" }`, `env["A"] is also set by the task file`},
		"a secret's value":                    {file("run: echo\nsecrets:\n  TOKEN: abc"), "secrets.TOKEN has its value in the file"},
		"a file without run":                  {file("setup: echo"), "run is empty; say what the task runs"},
		"an unknown accelerator":              {`accelerators = "T5:4"`, `accelerator "T5" is unknown; the nearest names are T4`},
		"alternatives that differ":            {`accelerators = ["T4:4", "H100:8"]`, "a pod has one request"},
		"accelerators of a number":            {`accelerators = 4`, "neither text nor a list of texts"},
		"an amount that is none":              {`memory = "lots"`, "memory"},
		"an exit code that is none":           {`recovery = { recover_on_exit_codes = [137] }`, "used too much memory or was killed"},
		"a name of a pod's variable":          {`env = { SKYPILOT_NODE_RANK = "1" }`, "which the task sets itself"},
		"Kueue's label":                       {`labels = { "kueue.x-k8s.io/queue-name" = "q" }`, "say it by queue"},
		"values without a version":            {`secrets_wo = { A = "b" }`, "secrets_wo_version"},
	} {
		t.Run(refusal, func(t *testing.T) {
			t.Parallel()
			steps(t, resource.TestStep{Config: block("default", "refused", c.lines), PlanOnly: true, ExpectError: providertest.ErrorText(c.wantText)})
		})
	}
}

func TestAFailedTaskReportsTheReason(t *testing.T) {
	t.Parallel()
	t.Run("as a warning", func(t *testing.T) {
		t.Parallel()
		ns, r := namespace(t), providertest.NewTerminal(t)
		config := block(ns, "fails", `
			run      = "echo the data is missing >&2; exit 3"
			wait_for = "succeeded"`)
		t.Cleanup(func() { r.Run(t, config, "destroy", "-auto-approve") })
		printed, code := r.Run(t, config, "apply", "-auto-approve")
		if code != 0 {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		providertest.ExpectText(t, printed, "Warning: Task "+ns+"/fails has failed", "Its phase is Failed: BackoffLimitExceeded", "Pods:", "container task exited with code 3",
			"the data is missing", "Last events:", "Last lines of pod", "the data is missing", "set fail_on_error = true")
		r.ExpectNoChanges(t, config)
	})
	t.Run("as an error, and the next plan replaces the task", func(t *testing.T) {
		t.Parallel()
		ns, r := namespace(t), providertest.NewTerminal(t)
		config := block(ns, "fails", `
			run           = "exit 3"
			wait_for      = "succeeded"
			fail_on_error = true`)
		t.Cleanup(func() { r.Run(t, config, "destroy", "-auto-approve") })
		printed, code := r.Run(t, config, "apply", "-auto-approve")
		if code != 1 {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		providertest.ExpectText(t, printed, "Error: Task "+ns+"/fails has failed", "exited with code 3")
		printed, _ = r.Run(t, config, "plan")
		providertest.ExpectText(t, printed, "is tainted, so")
	})
}

func TestATaskIsRestartedByItsRecoverySettings(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	enforce(t, ns, "privileged") // host_path
	// The host's directory outlives the pods of the task.
	dir := t.TempDir()
	steps(t, resource.TestStep{
		Config: block(ns, "recovers", fmt.Sprintf(`
			run = <<-EOT
			  echo x >> %[1]s/runs
			  case $(wc -l < %[1]s/runs) in
			    1) exit 33 ;;
			    2) exit 1 ;;
			  esac
			  echo done
			EOT
			recovery = { max_restarts_on_errors = 1, recover_on_exit_codes = [33] }
			volumes  = [{ name = "runs", mount_path = %[1]q, host_path = %[1]q }]
			wait_for = "succeeded"`, dir)),
		ConfigPlanChecks:  planned(plancheck.ResourceActionCreate),
		ConfigStateChecks: []statecheck.StateCheck{state("phase", text("Succeeded")), state("restarts", knownvalue.Int64Exact(1))},
	})
}

func TestATaskThatIsGoneIsMadeAgainAndOneThatHasEndedIsNot(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	remove := func(name string) func() {
		return func() {
			if err := client(t).BatchV1().Jobs(ns).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}); err != nil {
				t.Fatal(err)
			}
			await(t, "the Job's end", func(ctx context.Context) (string, bool) {
				_, err := client(t).BatchV1().Jobs(ns).Get(ctx, name, metav1.GetOptions{})
				return "it is there", apierrors.IsNotFound(err)
			})
		}
	}
	t.Run("while it runs", func(t *testing.T) {
		steps(t,
			resource.TestStep{Config: block(ns, "gone", ""), ConfigPlanChecks: planned(plancheck.ResourceActionCreate)},
			resource.TestStep{PreConfig: remove("gone"), Config: block(ns, "gone", ""), ConfigPlanChecks: planned(plancheck.ResourceActionCreate)},
		)
	})
	t.Run("when it has ended", func(t *testing.T) {
		ended := block(ns, "ended", "run = \"true\"\n wait_for = \"succeeded\"")
		steps(t,
			resource.TestStep{Config: ended, ConfigPlanChecks: planned(plancheck.ResourceActionCreate)},
			resource.TestStep{
				PreConfig: remove("ended"), Config: ended, ConfigPlanChecks: planned(plancheck.ResourceActionNoop),
				ConfigStateChecks: []statecheck.StateCheck{state("phase", text("Succeeded"))},
			},
			resource.TestStep{
				Config:             block(ns, "ended", "run = \"true\"\n wait_for = \"succeeded\"\n on_finished = \"recreate\""),
				ConfigPlanChecks:   resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionReplace)}},
				ExpectNonEmptyPlan: true, // it has ended again
			},
		)
	})
}

func TestOthersChangesAreSeenWhereTheyAreTheTasks(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	config := block(ns, "drift", "labels = { team = \"vision\" }\n recovery = { max_restarts_on_errors = 2 }")
	patch := func(body string) func() {
		return func() {
			_, err := client(t).BatchV1().Jobs(ns).Patch(t.Context(), "drift", "application/merge-patch+json", []byte(body), metav1.PatchOptions{FieldManager: "somebody"})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	steps(t,
		resource.TestStep{Config: config, ConfigPlanChecks: planned(plancheck.ResourceActionCreate)},
		resource.TestStep{ // another's label, and what Kueue does to a Job while it is admitted
			PreConfig: patch(`{"metadata":{"labels":{"theirs":"x"},"annotations":{"theirs":"x"}}}`), Config: config, ConfigPlanChecks: planned(plancheck.ResourceActionNoop),
		},
		resource.TestStep{
			PreConfig: patch(`{"metadata":{"labels":{"team":"audio"}},"spec":{"backoffLimit":9}}`), Config: config, ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: func(*terraform.State) error {
				if live := job(t, ns, "drift"); live.Labels["team"] != "vision" || *live.Spec.BackoffLimit != 2 || live.Labels["theirs"] != "x" {
					t.Errorf("%v %d", live.Labels, *live.Spec.BackoffLimit)
				}
				return nil
			},
		},
	)
}
