package forecast_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// namedPods is the namespace in which a policy decides by the names of pods.
const namedPods = "named-pods"

// admitted are the names of pods that the policy admits: as the controllers of the objects below name them, to the letter.
const admitted = `^(train-[a-z0-9]{5}|indexed-[0-9]-[a-z0-9]{5}|set-[0-9]|bare)$`

// TestAPolicyThatDecidesByThePodsNameIsAskedWithTheNameThatItsControllerGives forecasts objects, and then creates them.
func TestAPolicyThatDecidesByThePodsNameIsAskedWithTheNameThatItsControllerGives(t *testing.T) {
	sim := simulator(t)
	requireNames(t)
	const spec = `{restartPolicy: %s, containers: [{name: main, image: host, command: [sleep, "100000"], resources: {requests: {cpu: 10m}}}]}`
	template := fmt.Sprintf("{metadata: {labels: {object: %%[1]s}}, spec: "+spec+"}", "Never")
	always := fmt.Sprintf("{metadata: {labels: {object: %%[1]s}}, spec: "+spec+"}", "Always")
	job := "{apiVersion: batch/v1, kind: Job, metadata: {name: %[1]s}, spec: {template: " + template + "}}"
	for name, object := range map[string]struct {
		text string
		pods int // that its controller has created, or will soon
		code int
	}{
		"train":   {job, 1, 0},
		"indexed": {"{apiVersion: batch/v1, kind: Job, metadata: {name: %[1]s}, spec: {completionMode: Indexed, completions: 2, parallelism: 2, template: " + template + "}}", 2, 0},
		"set": {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: %[1]s}, spec: {podManagementPolicy: Parallel, serviceName: set, replicas: 2, " +
			"selector: {matchLabels: {object: %[1]s}}, template: " + always + "}}", 2, 0},
		"bare":  {"{apiVersion: v1, kind: Pod, metadata: {name: %[1]s, labels: {object: %[1]s}}, spec: " + fmt.Sprintf(spec, "Never") + "}", 1, 0},
		"other": {job, 0, 12},
	} {
		file := filepath.Join(t.TempDir(), name+".yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, object.text, name), 0o600); err != nil {
			t.Fatal(err)
		}
		forecast := exec.CommandContext(t.Context(), sim, "forecast", "-f", file, "-n", namedPods, "--kubeconfig", cluster.Kubeconfig)
		printed, err := forecast.CombinedOutput()
		if code := forecast.ProcessState.ExitCode(); code != object.code {
			t.Errorf("%s: exit code %d, want %d (%v):\n%s", name, code, object.code, err, printed)
		}
		create(t, fmt.Sprintf(object.text, name))
		if object.pods == 0 {
			expectEvent(t, name, "FailedCreate")
		}
		eventually(t, "the pods of "+name, func(ctx context.Context) (string, bool) {
			pods, err := client(t).CoreV1().Pods(namedPods).List(ctx, metav1.ListOptions{LabelSelector: labels.Set{"object": name}.String()})
			if err != nil {
				return err.Error(), false
			}
			return fmt.Sprintf("%d pods, not %d", len(pods.Items), object.pods), len(pods.Items) == object.pods
		})
	}
}

// requireNames has a policy reject pods of other names, and waits until it does.
func requireNames(t *testing.T) {
	t.Helper()
	c := client(t)
	if _, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namedPods}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	policies, name := c.AdmissionregistrationV1(), metav1.ObjectMeta{Name: namedPods}
	_, err := policies.ValidatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: name,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namedPods}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: fmt.Sprintf("object.metadata.name.matches('%s')", admitted)}},
		},
	}, metav1.CreateOptions{})
	_, bindingErr := policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: name,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: namedPods, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	if err := errors.Join(err, bindingErr); err != nil {
		t.Fatal(err)
	}
	refused := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "refused"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "host"}}},
	}
	eventually(t, "the policy", func(ctx context.Context) (string, bool) {
		_, err := c.CoreV1().Pods(namedPods).Create(ctx, refused, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
	})
}

// create creates an object as it is written.
func create(t *testing.T, text string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	config, err := cluster.Config()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err := errors.Join(err, yaml.Unmarshal([]byte(text), &object.Object)); err != nil {
		t.Fatal(err)
	}
	kind, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	if _, err := objects.Resource(kind).Namespace(namedPods).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatalf("%s: %v", object.GetName(), err)
	}
}

func expectEvent(t *testing.T, object, reason string) {
	t.Helper()
	eventually(t, reason+" of "+object, func(ctx context.Context) (string, bool) {
		events, err := client(t).CoreV1().Events(namedPods).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + object + ",reason=" + reason})
		if err != nil {
			return err.Error(), false
		}
		return "there is no such event", len(events.Items) > 0
	})
}
