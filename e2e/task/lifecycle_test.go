package task_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
)

func makeSecret(t *testing.T, ns, name, key, value string) {
	t.Helper()
	_, err := client(t).CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{key: value}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestValuesThatAreKnownOnlyWhenApplied(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	config := func(seconds int, file string) string {
		return fmt.Sprintf("resource \"terraform_data\" \"x\" {\n  input = { run = \"sleep %d\", gpus = \"T4:1\", env = \"b\", nodes = 1, file = \"run: sleep %[1]d\\n\" }\n}\n", seconds) + file
	}
	attributes := block(ns, "unknown", `
		run          = terraform_data.x.output.run
		accelerators = terraform_data.x.output.gpus
		env         = { A = terraform_data.x.output.env }
		num_nodes    = terraform_data.x.output.nodes`)
	steps(t,
		resource.TestStep{
			Config: config(600, attributes), ConfigPlanChecks: planned(plancheck.ResourceActionCreate),
			ConfigStateChecks: []statecheck.StateCheck{state("accelerators", text("T4:1")), state("num_nodes", knownvalue.Int64Exact(1))},
		},
		resource.TestStep{Config: config(601, attributes), ConfigPlanChecks: planned(plancheck.ResourceActionReplace)},
		resource.TestStep{
			Config: config(602, block(ns, "unknown", `yaml = terraform_data.x.output.file`+"\n image = \"debian\"")), ConfigPlanChecks: planned(plancheck.ResourceActionReplace),
			ConfigStateChecks: []statecheck.StateCheck{state("run", knownvalue.Null())},
		},
	)
}

func TestImportAndThenARemoval(t *testing.T) {
	t.Parallel()
	ns, r := namespace(t), providertest.NewTerminal(t)
	with := block(ns, "imported", `
		labels      = { team = "vision", more = "yes" }
		annotations = { "example.com/note" = "x" }
		accelerators = ["T4:2", "L4:2"]
		recovery    = { max_restarts_on_errors = 2, recover_on_exit_codes = [33] }
		secrets     = { TOKEN = { secret_name = "tokens", key = "hub" } }
		workdir     = { "a.py" = "pass\n" }`)
	makeSecret(t, ns, "tokens", "hub", "x")
	if printed, code := r.Run(t, with, "apply", "-auto-approve"); code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	uid := job(t, ns, "imported").UID

	other := providertest.NewTerminal(t)
	t.Cleanup(func() {
		if printed, code := other.Run(t, with, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
	})
	if printed, code := other.Run(t, with, "import", address, ns+"/imported"); code != 0 {
		t.Fatalf("import exited with %d:\n%s", code, printed)
	}
	printed, code := other.Run(t, with, "plan", "-detailed-exitcode")
	if code == 1 || strings.Contains(printed, "must be replaced") {
		t.Fatalf("the plan after an import exited with %d:\n%s", code, printed)
	}
	less := strings.Replace(strings.Replace(with, `, more = "yes"`, "", 1), `annotations = { "example.com/note" = "x" }`, "", 1)
	if printed, code := other.Run(t, less, "apply", "-auto-approve"); code != 0 || !strings.Contains(printed, "1 changed") {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	live := job(t, ns, "imported")
	if live.UID != uid || live.Labels["team"] != "vision" || live.Labels["more"] != "" || live.Annotations["example.com/note"] != "" {
		t.Errorf("the Job after a removal: %v %v", live.Labels, live.Annotations)
	}
	other.ExpectNoChanges(t, less)

	if printed, code := other.Run(t, less, "import", address, ns+"/imported"); code == 0 {
		t.Errorf("a second import was accepted:\n%s", printed)
	}
	foreign := providertest.NewTerminal(t)
	_, err := client(t).BatchV1().Jobs(ns).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "foreign"},
		Spec: batchv1.JobSpec{Suspend: new(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	printed, code = foreign.Run(t, block(ns, "foreign", ""), "import", address, ns+"/foreign")
	if code == 0 {
		t.Errorf("a Job of another client was imported:\n%s", printed)
	}
	providertest.ExpectText(t, printed, "Job "+ns+"/foreign is not a task", "Other Jobs cannot be imported")
	printed, _ = foreign.Run(t, block(ns, "foreign", ""), "import", address, "foreign")
	providertest.ExpectText(t, printed, "it must be NAMESPACE/NAME", "such as default/low")
}

func TestWhatIsThereIsNotTakenOver(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	if _, err := client(t).CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: task.ConfigMapName("taken")}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	steps(t,
		resource.TestStep{Config: block(ns, "first", ""), ConfigPlanChecks: planned(plancheck.ResourceActionCreate)},
		resource.TestStep{
			Config:      strings.Replace(block(ns, "first", ""), `"elastic_task" "test"`, `"elastic_task" "second"`, 1) + strings.SplitN(block(ns, "first", ""), "}\n", 2)[1],
			ExpectError: providertest.ErrorText("Cannot create Job "+ns+"/first", "exists already", "terraform import elastic_task.ADDRESS "+ns+"/first"),
		},
		resource.TestStep{
			Config:      block(ns, "taken", ""),
			ExpectError: providertest.ErrorText("Cannot create ConfigMap "+ns+"/taken-task", "Task "+ns+"/taken needs an object with this name"),
		},
		resource.TestStep{
			Config:      block("no-such-namespace", "lost", ""),
			ExpectError: providertest.ErrorText("Cannot create Job no-such-namespace/lost", `namespaces "no-such-namespace" not found`),
		},
		resource.TestStep{
			Config:      block(ns, "refused", `pod_overrides = jsonencode({ spec = { dnsPolicy = "Nonsense" } })`),
			ExpectError: providertest.ErrorText("Cannot create Job "+ns+"/refused", "The API server refused the request", "dnsPolicy"),
		},
		resource.TestStep{
			Config:      block(ns, "classless", `priority_class_name = "nobodys"`),
			ExpectError: providertest.ErrorText("PriorityClass not found", `PriorityClass "nobodys" does not exist`),
		},
	)
}

func TestAWaitThatIsInterruptedIsAWarning(t *testing.T) {
	t.Parallel()
	ns, r := namespace(t), providertest.NewTerminal(t)
	config := block(ns, "interrupted", `wait_for = "succeeded"`)
	t.Cleanup(func() {
		if printed, code := r.Run(t, config, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
	})
	command, finish := r.Start(t, config, "apply", "-auto-approve")
	await(t, "the task's start", func(ctx context.Context) (string, bool) {
		live, err := client(t).BatchV1().Jobs(ns).Get(ctx, "interrupted", metav1.GetOptions{})
		return fmt.Sprint(err), err == nil && live.Status.Ready != nil && *live.Status.Ready == 1
	})
	uid := job(t, ns, "interrupted").UID
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	printed, _ := finish()
	providertest.ExpectText(t, printed, "Task "+ns+"/interrupted has not succeeded yet", "it was interrupted", "Its phase is Running")
	r.ExpectNoChanges(t, config)
	if job(t, ns, "interrupted").UID != uid {
		t.Error("the task was replaced")
	}
}

func TestAPodThatDoesNotGoIsNamed(t *testing.T) {
	t.Parallel()
	ns, r := namespace(t), providertest.NewTerminal(t)
	config := strings.Replace(block(ns, "stuck", `wait_for = "running"`), `delete = "60s"`, `delete = "4s"`, 1)
	if printed, code := r.Run(t, config, "apply", "-auto-approve"); code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	hold := func(ctx context.Context, finalizers string) {
		t.Helper()
		for _, pod := range pods(ctx, t, ns, "stuck") {
			_, err := client(t).CoreV1().Pods(ns).Patch(ctx, pod.Name, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{})
			if err != nil {
				t.Error(err)
			}
		}
	}
	hold(t.Context(), `["batch.kubernetes.io/job-tracking","example.com/hold"]`)
	t.Cleanup(func() {
		hold(context.Background(), "null")
		if printed, code := r.Run(t, config, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
	})
	printed, code := r.Run(t, config, "destroy", "-auto-approve")
	if code != 1 {
		t.Fatalf("destroy exited with %d:\n%s", code, printed)
	}
	providertest.ExpectText(t, printed, "Error: Task "+ns+"/stuck is not deleted yet", "is held by finalizer example.com/hold")
}

func TestTheDefaultQueueOfANamespaceIsNoDrift(t *testing.T) {
	t.Parallel()
	ns, r := namespace(t), providertest.NewTerminal(t)
	queued := strings.NewReplacer(`"user-queue"`, `"default"`).Replace(queue(ns, 4))
	config := block(ns, "unlabelled", "cpus = \"1\"\n wait_for = \"running\"\n depends_on = [elastic_local_queue.user]\n") + queued
	t.Cleanup(func() {
		if printed, code := r.Run(t, config, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
	})
	if printed, code := r.Run(t, asAdmin(queued), "apply", "-auto-approve"); code != 0 {
		t.Fatalf("apply of the queue exited with %d:\n%s", code, printed)
	}
	awaitDefaultQueue(t, ns)
	printed, code := r.Run(t, config, "apply", "-auto-approve")
	if code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	providertest.ExpectText(t, printed, "Warning: Task will be queued by default", `queue = { name = "default" }`)
	if live := job(t, ns, "unlabelled"); live.Labels[controllerconstants.QueueLabel] != "default" {
		t.Errorf("Kueue has not queued it: %v", live.Labels)
	}
	r.ExpectNoChanges(t, config)
}

// awaitDefaultQueue waits until a Job without a queue gets the default one: the API server calls the webhook for a
// namespace some time after its LocalQueue was created.
func awaitDefaultQueue(t *testing.T, ns string) {
	t.Helper()
	probe := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "host"}},
		}}},
	}
	await(t, "a Job without a queue gets the default one", func(ctx context.Context) (string, bool) {
		made, err := client(t).BatchV1().Jobs(ns).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprint(made.Labels), made.Labels[controllerconstants.QueueLabel] == "default"
	})
}

func TestTheQueuesNeedPermissionToReadThem(t *testing.T) {
	t.Parallel()
	user := fmt.Sprintf("provider \"elastic\" {\n  config_path = %q\n}\n", cluster.UserKubeconfig)
	for data, wantText := range map[string]string{
		`data "elastic_workloads" "x" {}`:                            "may not list workloads.kueue.x-k8s.io in the whole cluster",
		"data \"elastic_workloads\" \"x\" {\n namespace = \"ns\"\n}": "may not list workloads.kueue.x-k8s.io in namespace ns",
		`data "elastic_cluster_capacity" "x" {}`:                     "may not list nodes in the whole cluster",
	} {
		t.Run(wantText, func(t *testing.T) {
			t.Parallel()
			steps(t, resource.TestStep{Config: user + data, ExpectError: providertest.ErrorText(wantText, "kubectl create")})
		})
	}
}

func TestPlacesInTheQueueAreKnownWhenAllNamespacesAreRead(t *testing.T) {
	t.Parallel()
	ns, r := namespace(t), providertest.NewTerminal(t)
	config := asAdmin(queue(ns, 1) + queuedTask("holds", "high", ns, 1, "run = \"sleep 600\"\n wait_for = \"running\"") +
		queuedTask("second", "low", ns, 1, "run = \"sleep 600\"\n depends_on = [elastic_task.holds]") + queuedTask("first", "high", ns, 1, "run = \"sleep 600\"\n depends_on = [elastic_task.second]"))
	t.Cleanup(func() {
		if printed, code := r.Run(t, config, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
	})
	if printed, code := r.Run(t, config, "apply", "-auto-approve"); code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	await(t, "both to be considered", func(ctx context.Context) (string, bool) {
		first, second := workloadOf(ctx, t, ns, "first"), workloadOf(ctx, t, ns, "second")
		return "not yet", first != nil && second != nil
	})
	steps(t, resource.TestStep{
		Config: asAdmin(fmt.Sprintf("data \"elastic_workloads\" \"all\" {\n  queue = \"user-queue\"\n}\noutput \"places\" {\n  value = { for w in data.elastic_workloads.all.workloads : w.owner.name => w.position if w.namespace == %q }\n}\n", ns)),
		ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownOutputValue("places", knownvalue.MapExact(map[string]knownvalue.Check{
			"holds": knownvalue.Null(), "first": knownvalue.Int64Exact(1), "second": knownvalue.Int64Exact(2),
		}))},
	})
}
