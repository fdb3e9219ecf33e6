package provider_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// report writes the condition Active, as Kueue does, for the given generation of the object.
func (k kueueKind) report(t *testing.T, name, status, reason, message string, generation int64) {
	t.Helper()
	k.patch(t, name, "kueue", fmt.Sprintf(`{"status":{"conditions":[{"type":"Active","status":%q,"reason":%q,"message":%q,"observedGeneration":%d,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
		status, reason, message, generation), "status")
}

// untilThere waits until an object exists in the given generation.
func (k kueueKind) untilThere(t *testing.T, name string, generation int64) {
	t.Helper()
	const pause = 20 * time.Millisecond
	err := wait.PollUntilContextTimeout(t.Context(), pause, patience.Medium, true, func(ctx context.Context) (bool, error) {
		live, err := k.in(t).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && live.GetGeneration() >= generation, err
	})
	if err != nil {
		t.Fatalf("%s: %v", k.ref(name), err)
	}
}

func TestWaitForActiveWaitsForTheConditionActive(t *testing.T) {
	const name = "waits"
	for _, resource := range []string{"elastic_cluster_queue", "elastic_local_queue", "elastic_admission_check"} {
		t.Run(resource, func(t *testing.T) {
			k, r := kindOf(t, resource), newTerminal(t)
			config := func(more string) string {
				return asAdmin("") + k.block("test", name, k.reduced+"\n wait_for = \"active\"\n"+more)
			}
			t.Cleanup(func() { r.run(t, config(""), "destroy", "-auto-approve") })

			_, finish := r.start(t, config(""), "apply", "-auto-approve")
			k.untilThere(t, name, 1)
			k.report(t, name, "False", "FlavorNotFound", "references missing ResourceFlavor(s): spot.", 1)
			k.report(t, name, "True", "Ready", "Can admit new workloads", 1)
			if printed, code := finish(); code != 0 || strings.Contains(printed, "Warning: "+k.ref(name)) {
				t.Fatalf("apply exited with %d:\n%s", code, printed)
			}
			r.expectNoChanges(t, config(""))

			t.Log("after a change the condition of the generation before does not count")
			changed := k.updated + "\n wait_for = \"active\"\n timeouts = { update = \"2s\" }"
			printed, code := r.run(t, asAdmin("")+k.block("test", name, changed), "apply", "-auto-approve")
			if code != 0 {
				t.Fatalf("apply exited with %d:\n%s", code, printed)
			}
			expectText(t, printed, "Warning: "+k.ref(name)+" is not active yet", "Waited 2s for its condition Active to be True", "the time limit was reached")
			r.expectNoChanges(t, asAdmin("")+k.block("test", name, changed))
		})
	}
}

func TestAWaitThatEndsWithoutActiveIsAWarning(t *testing.T) {
	const name = "inactive"
	k, r := kindOf(t, "elastic_cluster_queue"), newTerminal(t)
	config := asAdmin("") + k.block("test", name, "wait_for = \"active\"\n timeouts = { create = \"2s\" }")
	t.Cleanup(func() { r.run(t, config, "destroy", "-auto-approve") })
	_, finish := r.start(t, config, "apply", "-auto-approve")
	k.untilThere(t, name, 1)
	k.report(t, name, "False", "FlavorNotFound", "Can't admit new workloads: references missing ResourceFlavor(s): spot.", 1)
	printed, code := finish()
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

// inUse is Kueue's finalizer.
const inUse = "kueue.x-k8s.io/resource-in-use"

func TestWhatHoldsADeletionIsNamed(t *testing.T) {
	const name = "held"
	queueWith := func(fields string) func(t *testing.T) {
		return func(t *testing.T) { kindOf(t, "elastic_cluster_queue").create(t, "holder", "somebody", fields) }
	}
	for behaviour, c := range map[string]struct {
		resource string
		holder   func(t *testing.T)
		wantText []string
	}{
		"a flavor by a queue": {
			"elastic_resource_flavor", queueWith(`{"resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"held","resources":[{"name":"cpu","nominalQuota":1}]}]}]}`),
			[]string{"ClusterQueue holder", "Take the flavor out of their resource_groups"},
		},
		"a check by a queue": {
			"elastic_admission_check", queueWith(`{"admissionChecksStrategy":{"admissionChecks":[{"name":"held"}]}}`),
			[]string{"ClusterQueue holder", "Take the check out of their admission_checks_strategy"},
		},
		"a topology by a flavor": {"elastic_topology", func(t *testing.T) {
			kindOf(t, "elastic_resource_flavor").create(t, "holder", "somebody", `{"nodeLabels":{"a":"b"},"topologyName":"held"}`)
		}, []string{"ResourceFlavor holder", "Delete these flavors"}},
		"a queue by workloads": {"elastic_cluster_queue", admittedWorkloads, []string{
			"Workload default/holder-admitted (is admitted, of Job train)", "Workload default/holder-reserving (holds quota)", `set stop_policy = "HoldAndDrain"`,
		}},
		"a flavor without references": {"elastic_resource_flavor", func(*testing.T) {}, []string{
			"No workload or queue that uses it was found", "kubectl get pods -n kueue-system", "kubectl patch resourceflavor.kueue.x-k8s.io held",
		}},
	} {
		t.Run(behaviour, func(t *testing.T) {
			k, r := kindOf(t, c.resource), newTerminal(t)
			config := asAdmin("") + k.block("test", name, k.reduced+"\n timeouts = { delete = \"1s\" }")
			r.apply(t, "created", config)
			k.patch(t, name, "kueue", `{"metadata":{"finalizers":["`+inUse+`"]}}`)
			c.holder(t)
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
			k.patch(t, name, "kueue", `{"metadata":{"finalizers":null}}`)
			if printed, code := r.run(t, config, "destroy", "-auto-approve"); code != 0 {
				t.Errorf("destroy exited with %d:\n%s", code, printed)
			}
		})
	}
}

// admittedWorkloads makes workloads with quota of ClusterQueue "held": one that runs, one that waits for checks and one
// that has ended.
func admittedWorkloads(t *testing.T) {
	// The owner has to exist, else the garbage collector deletes the workload.
	jobs := adminClient(t).BatchV1().Jobs(metav1.NamespaceDefault)
	owner, err := jobs.Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "train"},
		Spec: batchv1.JobSpec{Suspend: new(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := jobs.Delete(cleanupContext(t), owner.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	workloads := kueueKind{resource: "elastic_workload", namespaced: true}
	for name, conditions := range map[string][]string{"holder-admitted": {"QuotaReserved", "Admitted"}, "holder-reserving": {"QuotaReserved"}, "holder-finished": {"QuotaReserved", "Admitted", "Finished"}} {
		workload := &unstructured.Unstructured{Object: map[string]any{"spec": decodeFields(t, `{"queueName":"q","podSets":[{"name":"main","count":1,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}]}`)}}
		workload.SetAPIVersion(kueue.SchemeGroupVersion.String())
		workload.SetKind("Workload")
		workload.SetName(name)
		if name == "holder-admitted" {
			workload.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: owner.Name, UID: owner.UID}})
		}
		if _, err := workloads.in(t).Create(t.Context(), workload, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { workloads.remove(t, name) })
		var written []string
		for _, condition := range conditions {
			written = append(written, fmt.Sprintf(`{"type":%q,"status":"True","reason":%q,"message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`, condition, condition))
		}
		workloads.patch(t, name, "kueue", `{"status":{"admission":{"clusterQueue":"held","podSetAssignments":[{"name":"main","count":1}]},"conditions":[`+strings.Join(written, ",")+`]}}`, "status")
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
