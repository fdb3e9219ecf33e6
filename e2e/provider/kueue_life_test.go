package provider_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// everyKind is a configuration with one resource of every kind, called "test".
func everyKind(provider, name string, attributes func(k kueueKind) string) string {
	var b strings.Builder
	b.WriteString(provider)
	for _, k := range kueueKinds() {
		b.WriteString(k.block("test", name, attributes(k)))
	}
	return b.String()
}

// The actions in terraform's output.
const (
	willCreate  = "will be created"
	willUpdate  = "will be updated in-place"
	willReplace = "must be replaced"
	willNothing = ""
)

// expectAction checks what was planned for a resource of every kind.
func expectAction(t *testing.T, when, printed string, want func(k kueueKind) string) {
	t.Helper()
	for _, k := range kueueKinds() {
		got := willNothing
		for _, action := range []string{willCreate, willUpdate, willReplace, "will be destroyed"} {
			if strings.Contains(printed, fmt.Sprintf("# %s.test %s", k.resource, action)) {
				got = action
			}
		}
		if got != want(k) {
			t.Errorf("%s, %s: it %q, not %q:\n%s", k.resource, when, got, want(k), printed)
		}
	}
}

func always(action string) func(kueueKind) string { return func(kueueKind) string { return action } }

// apply applies a configuration, and expects that nothing is left to do.
func (r *terminal) apply(t *testing.T, when, config string) string {
	t.Helper()
	printed, code := r.run(t, config, "apply", "-auto-approve")
	if code != 0 {
		t.Fatalf("%s, apply exited with %d:\n%s", when, code, printed)
	}
	r.expectNoChanges(t, config)
	return printed
}

// refuses applies a configuration that must fail, and returns what was printed.
func (r *terminal) refuses(t *testing.T, when, config string) string {
	t.Helper()
	printed, code := r.run(t, config, "apply", "-auto-approve")
	if code == 0 {
		t.Errorf("%s, apply did not fail:\n%s", when, printed)
	}
	return printed
}

func TestKueueResourcesLive(t *testing.T) {
	const name = "life"
	kinds := kueueKinds()
	r := newTerminal(t)
	var config string
	t.Cleanup(func() {
		if printed, code := r.run(t, config, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
		for _, k := range kinds {
			if _, err := k.in(t).Get(cleanupContext(t), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("%s is left: %v", k.ref(name), err)
				k.remove(t, name)
			}
		}
	})
	uids := map[string]string{}
	remember := func() {
		for _, k := range kinds {
			uids[k.resource] = string(k.live(t, name).GetUID())
		}
	}
	expectSame := func(when string) {
		t.Helper()
		for _, k := range kinds {
			if uid := string(k.live(t, name).GetUID()); uid != uids[k.resource] {
				t.Errorf("%s, %s: it was replaced", k.resource, when)
			}
		}
	}

	when := "when it is created"
	config = everyKind(asAdmin(""), name, func(k kueueKind) string { return k.created })
	expectAction(t, when, r.apply(t, when, config), always(willCreate))
	for _, k := range kinds {
		k.expectFields(t, when, name, k.createdFields)
	}
	remember()

	when = "updated right after it was created"
	config = everyKind(asAdmin(""), name, func(k kueueKind) string { return k.updated })
	expectAction(t, when, r.apply(t, when, config), always(willUpdate))
	for _, k := range kinds {
		k.expectFields(t, when, name, k.updatedFields)
		if owners := managersOf(k.live(t, name)); !slices.Equal(owners, []string{"terraform-provider-elastic Apply"}) {
			t.Errorf("%s, %s: its fields are owned by %v", k.resource, when, owners)
		}
	}
	expectSame(when)

	when = "when attributes are removed"
	reduced := func(k kueueKind) string { return k.reduced }
	config = everyKind(asAdmin(""), name, reduced)
	expectAction(t, when, r.apply(t, when, config), always(willUpdate))
	for _, k := range kinds {
		k.expectFields(t, when, name, k.reducedFields)
		if labels := k.live(t, name).GetLabels(); len(labels) != 0 {
			t.Errorf("%s, %s: labels %v remain", k.resource, when, labels)
		}
	}
	expectSame(when)

	t.Log("others' labels, annotations and finalizers are no difference")
	for _, k := range kinds {
		k.patch(t, name, "somebody", `{"metadata":{"labels":{"theirs":"x"},"annotations":{"theirs":"y"},"finalizers":["example.com/theirs"]}}`)
	}
	r.expectNoChanges(t, config)
	for _, k := range kinds {
		k.patch(t, name, "somebody", `{"metadata":{"finalizers":null}}`)
	}

	when = "when it was deleted by somebody"
	for _, k := range kinds {
		if err := k.in(t).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	expectAction(t, when, r.apply(t, when, config), always(willCreate))
	remember()

	when = "when the API server refuses a change"
	forbidMarked(t)
	printed := r.refuses(t, when, everyKind(asAdmin(""), name, func(k kueueKind) string { return k.reduced + "\n labels = { refuse = \"me\" }" }))
	for _, k := range kinds {
		expectText(t, printed, "Cannot update "+k.ref(name), "marked objects are refused")
	}
	r.expectNoChanges(t, config)

	when = "when an immutable attribute changes"
	config = everyKind(asAdmin(""), name, func(k kueueKind) string {
		if k.replaced != "" {
			return k.replaced
		}
		return k.reduced
	})
	expectAction(t, when, r.apply(t, when, config), func(k kueueKind) string {
		if k.replaced != "" {
			return willReplace
		}
		return willNothing
	})
	for _, k := range kinds {
		if same := string(k.live(t, name).GetUID()) == uids[k.resource]; same == (k.replaced != "") {
			t.Errorf("%s, %s: it is the same: %t", k.resource, when, same)
		}
	}
}

func TestKueueResourcesAreReplacedForAnotherName(t *testing.T) {
	r := newTerminal(t)
	config := everyKind(asAdmin(""), "name-1", func(k kueueKind) string { return k.created })
	t.Cleanup(func() { r.run(t, config, "destroy", "-auto-approve") })
	r.apply(t, "created", config)
	config = everyKind(asAdmin(""), "name-2", func(k kueueKind) string { return k.created })
	expectAction(t, "renamed", r.apply(t, "renamed", config), always(willReplace))
	for _, k := range kueueKinds() {
		if _, err := k.in(t).Get(t.Context(), "name-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s is left: %v", k.ref("name-1"), err)
			k.remove(t, "name-1")
		}
	}
}

func TestKueueResourcesAreImported(t *testing.T) {
	const name = "imported"
	r := newTerminal(t)
	var imports strings.Builder
	for _, k := range kueueKinds() {
		k.create(t, name, "kubectl-create", k.updatedFields)
		id := name
		if k.namespaced {
			id = "default/" + name
		}
		fmt.Fprintf(&imports, "import {\n  to = %s.test\n  id = %q\n}\n", k.resource, id)
	}
	withoutLabels := func(attributes string) string { return strings.ReplaceAll(attributes, `labels = { team = "ml" }`, "") }
	config := everyKind(asAdmin(""), name, func(k kueueKind) string {
		if k.resource == "elastic_topology" {
			return withoutLabels(k.updated)
		}
		return k.updated
	})
	printed := r.apply(t, "imported", config+imports.String())
	expectText(t, printed, fmt.Sprintf("Apply complete! Resources: %d imported, 0 added, 0 changed, 0 destroyed", len(kueueKinds())))

	t.Log("what is removed from the configuration then is removed from the object, though somebody else had written it")
	config = everyKind(asAdmin(""), name, func(k kueueKind) string { return k.reduced })
	r.apply(t, "reduced", config)
	for _, k := range kueueKinds() {
		k.expectFields(t, "reduced after its import", name, k.reducedFields)
	}
	if printed, code := r.run(t, config, "destroy", "-auto-approve"); code != 0 {
		t.Errorf("destroy exited with %d:\n%s", code, printed)
	}
}

func TestKueueResourcesTakeUnknownValues(t *testing.T) {
	const name = "unknown"
	r := newTerminal(t)
	var later strings.Builder
	for _, k := range kueueKinds() {
		fmt.Fprintf(&later, "resource \"terraform_data\" %q {\n  input = %s\n}\n", k.resource, k.later)
	}
	config := later.String() + everyKind(asAdmin(""), name, func(k kueueKind) string {
		return strings.ReplaceAll(k.unknown, "LATER", "terraform_data."+k.resource+".output")
	})
	t.Cleanup(func() { r.run(t, config, "destroy", "-auto-approve") })
	printed := r.apply(t, "created", config)
	if !strings.Contains(printed, "(known after apply)") {
		t.Errorf("nothing was unknown:\n%s", printed)
	}
	for _, k := range kueueKinds() {
		k.expectFields(t, "with values known after apply", name, k.unknownFields)
	}
}

func TestKueueResourcesDoNotAdopt(t *testing.T) {
	const name = "exists"
	r := newTerminal(t)
	for _, k := range kueueKinds() {
		k.create(t, name, "kubectl-create", k.createdFields)
	}
	printed := r.refuses(t, "when it exists", everyKind(asAdmin(""), name, func(k kueueKind) string { return k.created }))
	for _, k := range kueueKinds() {
		expectText(t, printed, "Cannot create "+k.ref(name), "exists already", "written by kubectl-create", "terraform import "+k.resource+".ADDRESS")
	}
	forbidMarked(t)
	printed = r.refuses(t, "when the API server refuses it", everyKind(asAdmin(""), "marked", func(k kueueKind) string {
		return k.created + "\n labels = { refuse = \"me\" }"
	}))
	for _, k := range kueueKinds() {
		expectText(t, printed, "Cannot create "+k.ref("marked"), "marked objects are refused")
	}
}

// managersOf are the managers of an object, each with its operation, without Kueue, which owns its finalizer and the status.
func managersOf(object *unstructured.Unstructured) []string {
	var managers []string
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == "kueue" {
			continue
		}
		managers = append(managers, entry.Manager+" "+string(entry.Operation))
	}
	return managers
}

// forbidMarked makes the API server refuse Kueue's objects with the label refuse, for the rest of the test: the
// admission policy is an example of what a cluster's administrators may forbid.
func forbidMarked(t *testing.T) {
	t.Helper()
	const name = "refuse-marked"
	policies := adminClient(t).AdmissionregistrationV1()
	_, err := policies.ValidatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{kueue.SchemeGroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"*"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: `!has(object.metadata.labels) || !('refuse' in object.metadata.labels)`, Message: "marked objects are refused",
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := policies.ValidatingAdmissionPolicies().Delete(cleanupContext(t), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	_, err = policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := policies.ValidatingAdmissionPolicyBindings().Delete(cleanupContext(t), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	awaitRefusal(t)
}

// awaitRefusal waits until the API server heeds the policy, which it reads a moment later.
func awaitRefusal(t *testing.T) {
	t.Helper()
	k := kueueKinds()[0]
	marked := &unstructured.Unstructured{Object: map[string]any{"value": int64(1)}}
	marked.SetAPIVersion(kueue.SchemeGroupVersion.String())
	marked.SetKind(k.title())
	marked.SetName("marked-probe")
	marked.SetLabels(map[string]string{"refuse": "me"})
	const pause = 50 * time.Millisecond
	err := wait.PollUntilContextTimeout(t.Context(), pause, patience.Medium, true, func(ctx context.Context) (bool, error) {
		_, err := k.in(t).Create(ctx, marked, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsAlreadyExists(err) || err == nil {
			return false, nil
		}
		return strings.Contains(err.Error(), "marked objects are refused"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
