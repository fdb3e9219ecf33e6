package training_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// enforce sets the Pod Security Standard of a namespace; that of the cluster is baseline, which admits no host path.
func enforce(t *testing.T, ns, standard string) {
	t.Helper()
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	label := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"` + standard + `","pod-security.kubernetes.io/enforce-version":"latest"}}}`)
	if _, err := client.CoreV1().Namespaces().Patch(t.Context(), ns, types.StrategicMergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestAJobTrainsInANamespaceThatAdmitsRestrictedPodsAlone(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	enforce(t, ns, "restricted")
	// That it is enforced: a pod that says nothing of its security is refused.
	lax := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "lax"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}}}
	if _, err := client.CoreV1().Pods(ns).Create(t.Context(), lax, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted:latest"`) {
		t.Fatalf("a pod without a security context: %v", err)
	}
	d := define(t, referenceModel)
	d.Job.Namespace = ns
	j := start(t, d)
	j.awaitSuccess() // with its master, and workers that the master has made
}
