package underqueue_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// TestAGateCreatesPodsAndJobsAsADryRunOnly has an account with the role of dry-run.yaml, and its policy.
func TestAGateCreatesPodsAndJobsAsADryRunOnly(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	policy := filepath.Join("..", "..", "examples", "rbac", "dry-run.yaml")
	p.kubectl(cluster.Kubeconfig, "apply", "-f", policy)
	t.Cleanup(func() { p.kubectl(cluster.Kubeconfig, "delete", "-f", policy) })
	p.account("gate", providertest.RolesOf(t, "dry-run.yaml")["elastic-dry-run"].Rules)
	admin, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = p.token("gate")
	gate, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "planned-", Namespace: p.ns},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
	create := func(ctx context.Context, as kubernetes.Interface, options metav1.CreateOptions) error {
		_, err := as.CoreV1().Pods(p.ns).Create(ctx, pod, options)
		return err
	}
	p.await("the API server has the policy", func(ctx context.Context) (string, bool, error) {
		err := create(ctx, gate, metav1.CreateOptions{})
		output := ""
		if err != nil {
			output = err.Error()
		}
		return output, apierrors.IsInvalid(err) || apierrors.IsForbidden(err) && strings.Contains(output, "you may create this as a dry run only"), nil
	})
	if err := create(t.Context(), gate, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("a dry run is refused: %v", err)
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "planned", Namespace: p.ns},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: pod.Spec.Containers}}},
	}
	if _, err := gate.BatchV1().Jobs(p.ns).Create(t.Context(), job, metav1.CreateOptions{}); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		t.Errorf("the gate may create Jobs: %v", err)
	}
	if _, err := gate.BatchV1().Jobs(p.ns).Create(t.Context(), job, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("a dry run of a Job is refused: %v", err)
	}
	if err := gate.CoreV1().Pods(p.ns).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the gate may delete pods: %v", err)
	}
	if err := create(t.Context(), p.kube, metav1.CreateOptions{}); err != nil {
		t.Errorf("an administrator creates no pod any more: %v", err)
	}
}
