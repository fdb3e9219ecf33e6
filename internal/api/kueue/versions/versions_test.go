package versions_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/versions"
)

func decode[T any](t *testing.T, text string) (T, error) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	var into T
	err := versions.Decode(object, &into)
	return into, err
}

func TestAClusterQueueOfV1beta1KeepsItsCohortAndAdmissionChecks(t *testing.T) {
	got, err := decode[kueue.ClusterQueue](t, `
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: a}
spec:
  cohort: all
  admissionChecks: [budget, nodes]
  flavorFungibility: {whenCanBorrow: Borrow, whenCanPreempt: Preempt}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := kueue.ClusterQueueSpec{
		CohortName:              "all",
		AdmissionChecksStrategy: &kueue.AdmissionChecksStrategy{AdmissionChecks: []kueue.AdmissionCheckStrategyRule{{Name: "budget"}, {Name: "nodes"}}},
		FlavorFungibility:       &kueue.FlavorFungibility{WhenCanBorrow: kueue.MayStopSearch, WhenCanPreempt: kueue.MayStopSearch},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got.APIVersion != "kueue.x-k8s.io/v1beta2" {
		t.Errorf("apiVersion %s", got.APIVersion)
	}
}

func TestBothVersionsOfAnObjectMeanTheSame(t *testing.T) {
	for behaviour, c := range map[string]struct{ was, is string }{
		"a queue in a cohort":     {"cohort: c", "cohortName: c"},
		"a queue in no cohort":    {"cohort: null", "{}"},
		"no admission checks":     {"admissionChecks: []", "{}"},
		"a strategy":              {"admissionChecksStrategy: {admissionChecks: [{name: a, onFlavors: [f]}]}", "admissionChecksStrategy: {admissionChecks: [{name: a, onFlavors: [f]}]}"},
		"checks beside strategy":  {"{admissionChecks: [a], admissionChecksStrategy: {admissionChecks: [{name: b}]}}", "admissionChecksStrategy: {admissionChecks: [{name: a}]}"},
		"the newer policies":      {"flavorFungibility: {whenCanBorrow: TryNextFlavor, whenCanPreempt: MayStopSearch}", "flavorFungibility: {whenCanBorrow: TryNextFlavor, whenCanPreempt: MayStopSearch}"},
		"one of the old policies": {"flavorFungibility: {whenCanPreempt: Preempt}", "flavorFungibility: {whenCanPreempt: MayStopSearch}"},
	} {
		t.Run(behaviour, func(t *testing.T) {
			of := func(version, spec string) kueue.ClusterQueue {
				object, err := decode[kueue.ClusterQueue](t, "apiVersion: kueue.x-k8s.io/"+version+"\nkind: ClusterQueue\nmetadata: {name: q}\nspec:\n  "+spec+"\n")
				if err != nil {
					t.Fatal(err)
				}
				return object
			}
			if diff := cmp.Diff(of("v1beta2", c.is), of("v1beta1", c.was)); diff != "" {
				t.Errorf("-v1beta2 +v1beta1:\n%s", diff)
			}
		})
	}
}

func TestTheObjectThatIsGivenStaysAsItIs(t *testing.T) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, metadata: {name: q}, spec: {cohort: c, admissionChecks: [a]}}`), &object.Object); err != nil {
		t.Fatal(err)
	}
	before := object.DeepCopy()
	if err := versions.Decode(object, &kueue.ClusterQueue{}); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(before, object) {
		t.Errorf("it is now %v", object)
	}
}

func TestAFieldThatAVersionDoesNotHaveIsAnErrorWithItsRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, spec: {cohort: c}}":                   `unknown field "spec.cohort": it is spec.cohortName in kueue.x-k8s.io/v1beta2; rename it, or write apiVersion: kueue.x-k8s.io/v1beta1`,
		"{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, spec: {admissionChecks: [a]}}":        "it is spec.admissionChecksStrategy in kueue.x-k8s.io/v1beta2",
		"{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, spec: {cohrotName: c}}":               `unknown field "spec.cohrotName": kueue.x-k8s.io/v1beta2 has no such field; correct its name, or leave it out`,
		"{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, spec: {cohrot: c}}":                   `unknown field "spec.cohrot": kueue.x-k8s.io/v1beta1 has no such field`,
		"{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, spec: {cohortName: c}}":               "kueue.x-k8s.io/v1beta1 does not have the field spec.cohortName, which is of v1beta2; write apiVersion: kueue.x-k8s.io/v1beta2",
		"{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, spec: {concurrentAdmissionPolicy: }}": "does not have the field spec.concurrentAdmissionPolicy",
		"{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, spec: {admissionChecks: all}}":        "cannot unmarshal string",
		"{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, spec: none}":                          "cannot unmarshal string",
		"{apiVersion: kueue.x-k8s.io/v1alpha1, kind: ClusterQueue, spec: {}}":                           "apiVersion kueue.x-k8s.io/v1alpha1 is not of Kueue v0.19, which serves v1beta1 and v1beta2; write kueue.x-k8s.io/v1beta2",
	} {
		t.Run(text, func(t *testing.T) {
			if _, err := decode[kueue.ClusterQueue](t, text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, not %q", err, want)
			}
		})
	}
	if _, err := decode[kueue.AdmissionCheck](t, "{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, spec: {retryDelayMinutes: 5}}"); err == nil || !strings.Contains(err.Error(), "no such field any more; leave it out") {
		t.Error(err)
	}
}
