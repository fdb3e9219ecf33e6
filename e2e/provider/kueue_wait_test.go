package provider_test

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"
)

// report writes the condition Active, as the controller of an admission check does, for the object's first generation.
func (k kueueKind) report(t *testing.T, name string) {
	t.Helper()
	k.patch(t, name, "controller", `{"status":{"conditions":[{"type":"Active","status":"True","reason":"Active","message":"","observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status")
}

// until waits until an object is as ready says.
func (k kueueKind) until(t *testing.T, name string, ready func(*unstructured.Unstructured) bool) {
	t.Helper()
	until(t, k.ref(name)+" is as expected", func() (found string, done bool) {
		live, err := k.in(t).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprint(live.Object), ready(live)
	})
}

// untilGone waits until an object is not there any more.
func (k kueueKind) untilGone(t *testing.T, name string) {
	t.Helper()
	until(t, k.ref(name)+" is gone", func() (found string, done bool) {
		live, err := k.in(t).Get(t.Context(), name, metav1.GetOptions{})
		return fmt.Sprint(live, err), apierrors.IsNotFound(err)
	})
}

// hasCondition is true of an object with a condition of this status.
func hasCondition(kind, status string) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool { return conditionOf(object, kind)["status"] == status }
}

// isObserved is true of an object whose condition Active is of its present generation.
func isObserved(object *unstructured.Unstructured) bool {
	return conditionOf(object, "Active")["observedGeneration"] == object.GetGeneration()
}

// conditionOf is an object's condition; nil if it has none.
func conditionOf(object *unstructured.Unstructured, kind string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, _ := c.(map[string]any); condition["type"] == kind {
			return condition
		}
	}
	return nil
}

// inUse is Kueue's finalizer. A controller adds it to an object that it has in its cache.
const inUse = "kueue.x-k8s.io/resource-in-use"

func isHeld(object *unstructured.Unstructured) bool {
	return slices.Contains(object.GetFinalizers(), inUse)
}

func TestWaitForActiveWaitsForTheConditionActive(t *testing.T) {
	const name = "waits"
	for of, becomesActive := range map[string]func(t *testing.T){
		"elastic_cluster_queue": func(t *testing.T) {
			kindOf(t, "elastic_resource_flavor").create(t, "spot", "somebody", `{"nodeLabels":{"a":"b"}}`)
		},
		"elastic_local_queue":     func(t *testing.T) { kindOf(t, "elastic_cluster_queue").create(t, "research", "somebody", `{}`) },
		"elastic_admission_check": func(t *testing.T) { kindOf(t, "elastic_admission_check").report(t, name) },
	} {
		t.Run(of, func(t *testing.T) {
			k, r := kindOf(t, of), newTerminal(t)
			config := asAdmin("") + k.block("test", name, k.created+"\n wait_for = \"active\"")
			t.Cleanup(func() { r.run(t, config, "destroy", "-auto-approve") })

			_, finish := r.start(t, config, "apply", "-auto-approve")
			inactive := hasCondition("Active", "False")
			if of == "elastic_admission_check" { // nobody but its controller says anything of it
				inactive = func(*unstructured.Unstructured) bool { return true }
			}
			k.until(t, name, inactive)
			becomesActive(t)
			if printed, code := finish(); code != 0 || strings.Contains(printed, "Warning: "+k.ref(name)) {
				t.Fatalf("apply exited with %d:\n%s", code, printed)
			}
			r.expectNoChanges(t, config)

			t.Log("after a change the condition of the generation before does not count")
			changed := asAdmin("") + k.block("test", name, k.updated+"\n wait_for = \"active\"\n timeouts = { update = \"2s\" }")
			printed, code := r.run(t, changed, "apply", "-auto-approve")
			if code != 0 {
				t.Fatalf("apply exited with %d:\n%s", code, printed)
			}
			expectText(t, printed, "Warning: "+k.ref(name)+" is not active yet", "Waited 2s for its condition Active to be True", "the time limit was reached")
			r.expectNoChanges(t, changed)
		})
	}
}

func TestAWaitThatEndsWithoutActiveIsAWarning(t *testing.T) {
	const name = "inactive"
	k, r := kindOf(t, "elastic_cluster_queue"), newTerminal(t)
	config := asAdmin("") + k.block("test", name, k.created+"\n wait_for = \"active\"\n timeouts = { create = \"2s\" }")
	t.Cleanup(func() { r.run(t, config, "destroy", "-auto-approve") })
	printed, code := r.run(t, config, "apply", "-auto-approve")
	if code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	expectText(t, printed, "Warning: ClusterQueue inactive is not active yet", "the time limit was reached", "The ClusterQueue exists",
		"Its condition Active is False, reason FlavorNotFound: Can't admit new workloads: references missing ResourceFlavor(s): spot.")
	if strings.Contains(printed, "tainted") {
		t.Errorf("it is tainted:\n%s", printed)
	}
	r.expectNoChanges(t, config)
}

func TestWhatHoldsADeletionIsNamed(t *testing.T) {
	const name = "held"
	holder := func(resource, fields string) func(t *testing.T) (release func()) {
		return func(t *testing.T) func() {
			k := kindOf(t, resource)
			k.create(t, "holder", "somebody", fields)
			k.until(t, "holder", isHeld)
			return func() { k.remove(t, "holder") }
		}
	}
	for behaviour, c := range map[string]struct {
		resource, attributes string
		holder               func(t *testing.T) (release func())
		wantText             []string
	}{
		"a flavor by a queue": {
			"elastic_resource_flavor", "", holder("elastic_cluster_queue", `{"resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"held","resources":[{"name":"cpu","nominalQuota":1}]}]}]}`),
			[]string{"ClusterQueue holder", "Take the flavor out of their resource_groups"},
		},
		"a check by a queue": {
			"elastic_admission_check", "", holder("elastic_cluster_queue", `{"admissionChecksStrategy":{"admissionChecks":[{"name":"held"}]}}`),
			[]string{"ClusterQueue holder", "Take the check out of their admission_checks_strategy"},
		},
		"a topology by a flavor": {
			"elastic_topology", "", holder("elastic_resource_flavor", `{"nodeLabels":{"a":"b"},"topologyName":"held"}`),
			[]string{"ResourceFlavor holder", "Delete these flavors"},
		},
		"a queue by workloads": {
			"elastic_cluster_queue", `
				namespace_selector = {}
				resource_groups = [{
				  covered_resources = ["cpu"]
				  flavors           = [{ name = "holder", resources = [{ name = "cpu", nominal_quota = "4" }] }]
				}]`,
			admittedWorkloads,
			[]string{"Workload default/job-holder-", "(is admitted, of Job holder)", `set stop_policy = "HoldAndDrain"`},
		},
		"a flavor while Kueue does not answer": {"elastic_resource_flavor", "", pausedKueue, []string{
			"No workload or queue that uses it was found", "kubectl get pods -n kueue-system", "kubectl patch resourceflavor.kueue.x-k8s.io held",
		}},
	} {
		t.Run(behaviour, func(t *testing.T) {
			k, r := kindOf(t, c.resource), newTerminal(t)
			t.Cleanup(func() { k.remove(t, name) })
			config := asAdmin("") + k.block("test", name, cmp.Or(c.attributes, k.reduced)+"\n timeouts = { delete = \"3s\" }")
			r.apply(t, "created", config)
			k.until(t, name, isHeld)
			release := c.holder(t)
			printed, code := r.run(t, config, "destroy", "-auto-approve")
			if code == 0 {
				t.Errorf("destroy did not fail:\n%s", printed)
			}
			expectText(t, printed, append([]string{k.ref(name) + " is not deleted yet", "held by finalizers: " + inUse}, c.wantText...)...)
			if strings.Contains(printed, "holder-finished") {
				t.Errorf("what has finished holds nothing:\n%s", printed)
			}
			printed, _ = r.run(t, config, "plan")
			expectText(t, printed, "No changes.", k.ref(name)+" is being deleted", "held by finalizers: "+inUse)
			release()
			k.untilGone(t, name)
			if printed, code := r.run(t, config, "destroy", "-auto-approve"); code != 0 {
				t.Errorf("destroy exited with %d:\n%s", code, printed)
			}
		})
	}
}

// pausedKueue stops Kueue's process until it is released.
func pausedKueue(t *testing.T) (release func()) {
	if cluster == nil {
		t.Skip("the cluster is not of this test")
	}
	status, err := cluster.Status()
	if err != nil {
		t.Fatal(err)
	}
	manager, err := status.Component("kueue")
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(manager.PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		if err := process.Signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(release)
	return release
}

// admittedWorkloads makes a Job that ClusterQueue "held" admits, and a Workload of it that has ended.
func admittedWorkloads(t *testing.T) (release func()) {
	workloads := kueueKind{resource: "elastic_workload", namespaced: true}
	kindOf(t, "elastic_resource_flavor").create(t, "holder", "somebody", `{}`)
	kindOf(t, "elastic_local_queue").create(t, "holder", "somebody", `{"clusterQueue":"held"}`)
	release = queuedJob(t, map[string]string{controllerconstants.QueueLabel: "holder"})
	ended := workloads.create(t, "holder-finished", "somebody", `{"queueName":"holder","podSets":[{"name":"main","count":1,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}]}`)
	workloads.until(t, ended.GetName(), hasCondition("QuotaReserved", "True"))
	workloads.patch(t, ended.GetName(), "somebody", `{"status":{"conditions":[{"type":"Finished","status":"True","reason":"Succeeded","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status")
	kueueKind{resource: "elastic_cluster_queue"}.until(t, "held", admits(1)) // the one that has ended is not counted any more
	return release
}

// admits is true of a ClusterQueue that has admitted so many workloads.
func admits(count int64) func(*unstructured.Unstructured) bool {
	return func(queue *unstructured.Unstructured) bool {
		admitted, found, _ := unstructured.NestedInt64(queue.Object, "status", "admittedWorkloads")
		return found && admitted == count
	}
}

// queuedJob makes Job "holder", which asks for one CPU, with labels that name its queue, and waits until it is admitted.
func queuedJob(t *testing.T, labels map[string]string) (release func()) {
	t.Helper()
	jobs := adminClient(t).BatchV1().Jobs(metav1.NamespaceDefault)
	_, err := jobs.Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "holder", Labels: labels},
		Spec: batchv1.JobSpec{Suspend: new(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		background := metav1.DeletePropagationBackground
		if err := jobs.Delete(cleanupContext(t), "holder", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(release)
	until(t, "Job holder is admitted", func() (found string, done bool) {
		job, err := jobs.Get(t.Context(), "holder", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return "it is suspended", !*job.Spec.Suspend
	})
	return release
}

// expectAdmitted expects that the Workload of Job "holder" has its quota, and never lost it.
func expectAdmitted(t *testing.T) {
	t.Helper()
	workloads, err := kueueKind{resource: "elastic_workload", namespaced: true}.in(t).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	its := slices.DeleteFunc(workloads.Items, func(w unstructured.Unstructured) bool {
		return len(w.GetOwnerReferences()) == 0 || w.GetOwnerReferences()[0].Name != "holder"
	})
	if len(its) != 1 || !hasCondition("Admitted", "True")(&its[0]) || conditionOf(&its[0], "Evicted") != nil {
		t.Errorf("of Job holder, %v", its)
	}
}

// everyKindTogether is a resource of every kind, which refer to one another.
func everyKindTogether(priority int, quota, stopPolicy string) string {
	return fmt.Sprintf(`
		resource "elastic_topology" "t" {
		  name   = "drained"
		  levels = [{ node_label = "kubernetes.io/hostname" }]
		}
		resource "elastic_resource_flavor" "placed" {
		  name          = "drained-placed"
		  node_labels   = { pool = "placed" }
		  topology_name = elastic_topology.t.name
		}
		resource "elastic_resource_flavor" "f" {
		  name = "drained"
		}
		resource "elastic_admission_check" "c" {
		  name            = "drained"
		  controller_name = "example.com/checker"
		}
		resource "elastic_cohort" "c" {
		  name = "drained"
		}
		resource "elastic_workload_priority_class" "p" {
		  name  = "drained"
		  value = %d
		}
		resource "elastic_cluster_queue" "q" {
		  name               = "drained"
		  cohort_name        = elastic_cohort.c.name
		  namespace_selector = {}
		  preemption         = { within_cluster_queue = "LowerPriority" }
		  stop_policy        = %q
		  resource_groups = [{
		    covered_resources = ["cpu"]
		    flavors = [
		      { name = elastic_resource_flavor.f.name, resources = [{ name = "cpu", nominal_quota = %[3]q }] },
		      { name = elastic_resource_flavor.placed.name, resources = [{ name = "cpu", nominal_quota = %[3]q }] },
		    ]
		  }]
		  admission_checks_strategy = { admission_checks = [{ name = elastic_admission_check.c.name, on_flavors = [elastic_resource_flavor.placed.name] }] }
		}
		resource "elastic_local_queue" "l" {
		  name          = "drained"
		  cluster_queue = elastic_cluster_queue.q.name
		}`, priority, stopPolicy, quota)
}

func TestAQueueIsChangedDrainedAndDestroyedUnderItsWorkloads(t *testing.T) {
	const name = "drained"
	r, queues := newTerminal(t), kindOf(t, "elastic_cluster_queue")
	config := func(priority int, quota, stopPolicy string) string {
		return asAdmin("") + everyKindTogether(priority, quota, stopPolicy)
	}
	last := config(20, "4", "HoldAndDrain")
	t.Cleanup(func() { r.run(t, last, "destroy", "-auto-approve") })
	r.apply(t, "made", config(10, "2", "None"))
	kindOf(t, "elastic_admission_check").report(t, name)
	queuedJob(t, map[string]string{controllerconstants.QueueLabel: name, controllerconstants.WorkloadPriorityClassLabel: name})

	r.apply(t, "changed", config(20, "4", "None"))
	queues.until(t, name, isObserved)
	expectAdmitted(t)

	r.apply(t, "drained", last)
	queues.until(t, name, admits(0))
	if printed, code := r.run(t, last, "destroy", "-auto-approve"); code != 0 {
		t.Errorf("destroy exited with %d:\n%s", code, printed)
	}
	for _, k := range kueueKinds() {
		if _, err := k.in(t).Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s is left: %v", k.ref(name), err)
		}
	}
}

func TestAClusterWithoutKueueIsReported(t *testing.T) {
	const name = "without"
	p, r := newProxy(t), newTerminal(t)
	k := kindOf(t, "elastic_local_queue")
	config := p.config("") + k.block("test", name, k.created)
	var absent atomic.Value
	absent.Store("/apis/kueue.x-k8s.io")
	p.setFault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		prefix, _ := absent.Load().(string)
		if prefix == "" || !strings.HasPrefix(r.URL.Path, prefix) {
			return false
		}
		http.Error(w, "404 page not found", http.StatusNotFound)
		return true
	})
	t.Cleanup(func() {
		absent.Store("")
		r.run(t, config, "destroy", "-auto-approve")
	})
	r.plans(t, config) // which needs nothing of the cluster, and warns of nothing that may be installed by then
	expectText(t, r.refuses(t, "without Kueue", config), "Cannot create LocalQueue default/without", "does not know objects of this kind", "Kueue 0.19 or later")

	absent.Store("")
	r.apply(t, "with Kueue", config)

	t.Log("of a cluster that had Kueue, its objects are gone with it")
	absent.Store("/apis/kueue.x-k8s.io")
	printed := r.plans(t, config, "Warning: LocalQueue default/without no longer exists", "does not serve objects of kueue.x-k8s.io/v1beta2")
	expectText(t, printed, "elastic_local_queue.test will be created")

	t.Log("where it has only another version, they may be there")
	absent.Store("/apis/kueue.x-k8s.io/v1beta2")
	for _, command := range [][]string{{"plan"}, {"destroy", "-auto-approve", "-refresh=false"}} {
		printed, code := r.run(t, config, command...)
		if code == 0 {
			t.Errorf("%s did not fail:\n%s", command[0], printed)
		}
		expectText(t, printed, "LocalQueue default/without", "or only in other versions", "Kueue 0.19 or later")
	}
}
