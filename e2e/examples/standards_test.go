package examples_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	restricted = "restricted"
	baseline   = "baseline"

	// probe is a namespace that enforces restricted all the time, in which no pod is made.
	probe = "restricted-pods-alone"
)

// standard is the Pod Security Standard of the namespaces in which an example is applied.
func (e example) standard() string {
	if e.asRoot != "" {
		return baseline
	}
	return restricted
}

// underEachStandard applies the examples where all of their namespaces enforce restricted, beside one another, and then
// those whose pods need root where all enforce baseline, one after the other.
func underEachStandard(t *testing.T, examples map[string]example, apply func(t *testing.T, name string, e example)) {
	t.Helper()
	enforce(t, probe, restricted)
	for _, standard := range []string{restricted, baseline} {
		for _, namespace := range append([]string{metav1.NamespaceDefault}, namespaces...) {
			enforce(t, namespace, standard)
		}
		t.Run(standard, func(t *testing.T) {
			for name, e := range examples {
				if e.notApplied != "" || e.standard() != standard {
					continue
				}
				t.Run(name, func(t *testing.T) {
					if standard == restricted {
						t.Parallel()
					}
					apply(t, name, e)
				})
			}
		})
		expectNoPodRefused(t)
	}
}

// enforce has a namespace admit the pods of a Pod Security Standard alone.
func enforce(t *testing.T, namespace, standard string) {
	t.Helper()
	kube, err := cluster.Client()
	noError(t, err)
	labels := fmt.Appendf(nil, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":%q,"pod-security.kubernetes.io/enforce-version":"latest"}}}`, standard)
	_, err = kube.CoreV1().Namespaces().Patch(t.Context(), namespace, types.StrategicMergePatchType, labels, metav1.PatchOptions{})
	noError(t, err)
}

// expectPods checks whether a namespace that enforces restricted admits the pods of the Jobs that are there, also of
// those that wait in a queue and have no pod yet.
func expectPods(t *testing.T, e example) {
	t.Helper()
	kube, err := cluster.Client()
	noError(t, err)
	jobs, err := kube.BatchV1().Jobs(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	noError(t, err)
	refused := false
	for _, job := range jobs.Items {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name}, Spec: *job.Spec.Template.Spec.DeepCopy()}
		pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "", ""
		_, err := kube.CoreV1().Pods(probe).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		violates := err != nil && strings.Contains(err.Error(), "violates PodSecurity")
		refused = refused || violates
		switch {
		case err != nil && !violates:
			t.Errorf("Job %s/%s: its pod cannot be checked: %v", job.Namespace, job.Name, err)
		case violates && e.standard() == restricted:
			t.Errorf("Job %s/%s: %v; have the example say what its pods need, or its row why they are root's", job.Namespace, job.Name, err)
		}
	}
	if e.standard() == baseline && !refused {
		t.Errorf("restricted admits its pods: its row need not say that %s", e.asRoot)
	}
}

// expectNoPodRefused checks that no pod was refused by its namespace's standard, whichever controller creates it.
func expectNoPodRefused(t *testing.T) {
	t.Helper()
	kube, err := cluster.Client()
	noError(t, err)
	events, err := kube.CoreV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	noError(t, err)
	for _, event := range events.Items {
		if strings.Contains(event.Message, "violates PodSecurity") {
			t.Errorf("%s %s/%s: %s", event.InvolvedObject.Kind, event.InvolvedObject.Namespace, event.InvolvedObject.Name, event.Message)
		}
	}
}

// TestTheNamespacesOfTheExamplesEnforceWhatTheySay shows that the standards are enforced at all.
func TestTheNamespacesOfTheExamplesEnforceWhatTheySay(t *testing.T) {
	makeNamespaces(t)
	kube, err := cluster.Client()
	noError(t, err)
	enforce(t, probe, restricted)
	lax := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "lax"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "debian"}}}}
	_, err = kube.CoreV1().Pods(probe).Create(t.Context(), lax, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted:latest"`) {
		t.Errorf("a pod that says nothing of its security: %v", err)
	}
}
