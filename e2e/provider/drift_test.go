package provider_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// drifting is an object of a kind that the provider manages and others change.
type drifting struct {
	driftKind
	*providertest.Managed
	name     string
	pristine tftypes.Value              // state as it was applied
	live     *unstructured.Unstructured // the object as it was applied
}

// drift makes an object with the given attributes, which is removed after the test.
func (k driftKind) drift(t *testing.T, server *providertest.Server, name, attributes string) *drifting {
	t.Helper()
	d := &drifting{driftKind: k, Managed: server.Manage(t, k.resource, "name = \""+name+"\"\n"+attributes), name: name}
	d.Make(t)
	t.Cleanup(func() {
		if err := k.objects(t).Delete(cleanupContext(t), name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("%s %s: %v", k.resource, name, err)
		}
	})
	d.pristine, d.live = d.State, k.get(t, name)
	d.expectEmptyPlan(t, "just made")
	return d
}

func (d *drifting) expectEmptyPlan(t *testing.T, when string) {
	t.Helper()
	d.Refresh(t)
	planned := d.Plan(t)
	if !planned.Value.Equal(d.State) || len(ofDrift(planned.Diagnostics)) != 0 {
		t.Errorf("%s, %s: the plan is not empty:\n%s\n%s", d.resource, when, differences(d.State, planned.Value), texts(planned.Diagnostics))
	}
}

// expectCorrected checks that a plan shows the drift of all the attributes and names them in one warning, and that
// applying it restores the object.
func (d *drifting) expectCorrected(t *testing.T, attributes ...string) {
	t.Helper()
	when := strings.Join(attributes, ", ")
	d.Refresh(t)
	if d.State.Equal(d.pristine) {
		t.Errorf("%s: a refresh does not see that others changed %s", d.resource, when)
		return
	}
	planned := d.Plan(t)
	if !planned.Value.Equal(d.pristine) || len(planned.Replaces) > 0 {
		t.Errorf("%s, %s: the plan is not to set it back in place:\n%s\n%v", d.resource, when, differences(d.pristine, planned.Value), planned.Replaces)
	}
	d.expectNamed(t, planned.Diagnostics, attributes)
	if wrong := d.Apply(t, planned); len(wrong) > 0 {
		t.Errorf("%s, %s: apply reports\n%s", d.resource, when, texts(wrong))
	}
	live := d.get(t, d.name)
	for _, field := range [][]string{{"spec"}, {"metadata", "labels"}, {"metadata", "annotations"}, {"description"}, {"globalDefault"}, {"value"}} {
		was, _, _ := unstructured.NestedFieldNoCopy(d.live.Object, field...)
		is, _, _ := unstructured.NestedFieldNoCopy(live.Object, field...)
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("%s, %s: %v is not as it was: %s", d.resource, when, field, diff)
		}
	}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == driftTester {
			t.Errorf("%s, %s: the other manager still owns %s", d.resource, when, entry.FieldsV1)
		}
	}
	d.expectEmptyPlan(t, "corrected "+when)
}

// ignoreChanges finds the remedy in a warning.
var ignoreChanges = regexp.MustCompile(`ignore_changes = \[(.*)\]`)

// expectNamed checks that one warning names the attributes, their writers and times, and how to keep the changes.
func (d *drifting) expectNamed(t *testing.T, diagnostics []*tfprotov6.Diagnostic, attributes []string) {
	t.Helper()
	diagnostics = ofDrift(diagnostics)
	if len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning {
		t.Errorf("%s: the plan does not warn of %v, once:\n%s", d.resource, attributes, texts(diagnostics))
		return
	}
	detail := diagnostics[0].Detail
	remedy := ignoreChanges.FindStringSubmatch(detail)
	for _, attribute := range attributes {
		line := regexp.MustCompile(`(?m)^  - ` + regexp.QuoteMeta(attribute) + `\S*: .*, written by "` + driftTester + `" at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)
		if !line.MatchString(detail) || remedy == nil {
			t.Errorf("%s: the warning does not name %s:\n%s", d.resource, attribute, detail)
			continue
		}
		if !slices.ContainsFunc(strings.Split(remedy[1], ", "), func(ignored string) bool {
			return strings.HasPrefix(attribute, ignored) || strings.HasPrefix(ignored, attribute)
		}) {
			t.Errorf("%s: the remedy does not name %s: %s", d.resource, attribute, remedy[0])
		}
	}
}

// mutable are the changes by another manager that the API server takes, up to two of each attribute, and the attributes
// that no client can change.
func (d *drifting) mutable(t *testing.T) (changes [][]change, refused []string) {
	t.Helper()
	leaves := d.leavesOf(d.pristine)
	for _, l := range leaves {
		if accepted := d.accepted(t, d.name, leaves, l); len(accepted) > 0 {
			changes = append(changes, accepted)
		} else {
			refused = append(refused, l.path)
		}
	}
	return changes, refused
}

func TestDriftOfEveryAttributeIsPlannedAndCorrected(t *testing.T) {
	server := providertest.NewServer(t, map[string]string{"config_path": adminKubeconfig()})
	changed := map[string]bool{"elastic_training_job": true, "elastic_task": true} // by tests of their own
	for _, k := range driftKinds() {
		changed[k.resource] = true
		t.Run(k.resource, func(t *testing.T) {
			tried, never := map[string]bool{}, map[string]bool{}
			for i, config := range k.configs {
				if i == 0 {
					config += driftedMetadata
				}
				d := k.drift(t, server, fmt.Sprintf("drift-each-%d", i), config)
				changes, refused := d.mutable(t)
				act := func(c change) []string {
					if err := k.set(t, d.name, false, c...); err != nil {
						t.Fatal(err)
					}
					for _, path := range c.paths() {
						tried[inSchema(path)] = true
					}
					return c.paths()
				}
				for _, of := range changes {
					d.expectCorrected(t, act(of[0])...)
				}
				for some := range slices.Chunk(changes, 3) {
					var paths []string
					for _, of := range some {
						paths = append(paths, act(of[0])...)
					}
					d.expectCorrected(t, paths...)
				}
				for _, path := range refused {
					never[path] = true
				}
			}
			for _, path := range k.immutable {
				if !never[path] {
					t.Errorf("%s.%s can be changed", k.resource, path)
				}
				tried[inSchema(path)] = true
			}
			for _, attribute := range schemaLeaves(server.Schemas.ResourceSchemas[k.resource].Block.Attributes, "") {
				if !tried[attribute] {
					t.Errorf("%s.%s was not changed by another manager: set it in a configuration of the kind, "+
						"and add to others a value of it that the API server takes", k.resource, attribute)
				}
			}
		})
	}
	for resource := range server.Schemas.ResourceSchemas {
		if !changed[resource] {
			t.Errorf("no %s was changed by another manager: add the kind to driftKinds", resource)
		}
	}
}

// inSchema is an attribute without places in lists and keys of maps.
func inSchema(attribute string) string { return places.ReplaceAllString(attribute, "") }

var places = regexp.MustCompile(`\[("[^"]*"|\d+)\]`)

func TestUnconfiguredFieldsOfOthersArePlannedAndRemoved(t *testing.T) {
	server := providertest.NewServer(t, map[string]string{"config_path": adminKubeconfig()})
	for _, k := range driftKinds() {
		t.Run(k.resource, func(t *testing.T) {
			whole := k.drift(t, server, "drift-whole", k.updated)
			d := k.drift(t, server, "drift-reduced", k.reduced)
			fields := k.missing(d.live, whole.live)
			for _, l := range fields {
				// What needs another field is set with all of them below.
				if k.set(t, d.name, false, l) == nil {
					d.expectCorrected(t, l.path)
				}
			}
			if len(fields) == 0 {
				return
			}
			if err := k.set(t, d.name, false, fields...); err != nil {
				t.Fatal(err)
			}
			d.expectCorrected(t, fields.paths()...)
		})
	}
}

func TestWhatOthersChangeAfterThePlanIsAConflictThatNamesAll(t *testing.T) {
	server := providertest.NewServer(t, map[string]string{"config_path": adminKubeconfig()})
	for _, k := range driftKinds() {
		t.Run(k.resource, func(t *testing.T) {
			d := k.drift(t, server, "drift-later", k.updated+driftedMetadata)
			changes, _ := d.mutable(t)
			act := func(round int) (paths []string) {
				for _, of := range changes {
					if len(of) < 2 || len(paths) >= 3 {
						continue
					}
					if err := k.set(t, d.name, false, of[round]...); err != nil {
						t.Fatal(err)
					}
					paths = append(paths, of[round].paths()...)
				}
				return paths
			}
			act(0)
			d.Refresh(t)
			planned, before := d.Plan(t), d.State
			paths := act(1)
			was := withoutStatus(d.get(t, d.name))
			wrong := d.Apply(t, planned)
			if len(wrong) != 1 || wrong[0].Severity != tfprotov6.DiagnosticSeverityError {
				t.Fatalf("apply overwrites %v, which no plan has shown:\n%s", paths, texts(wrong))
			}
			for _, path := range paths {
				if !strings.Contains(wrong[0].Detail, "  - "+path+": ") {
					t.Errorf("the error does not name %s:\n%s", path, wrong[0].Detail)
				}
			}
			expectText(t, wrong[0].Detail, `written by "`+driftTester+`"`, "the plan was made for", "terraform plan again", "ignore_changes = [", "force_conflicts = true")
			if diff := cmp.Diff(was, withoutStatus(d.get(t, d.name))); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
			if !d.State.Equal(before) {
				t.Errorf("state was changed:\n%s", differences(before, d.State))
			}
			d.expectCorrected(t, paths...)

			t.Log("what was changed to what the plan sets is no conflict, nor is what others own")
			act(0)
			d.Refresh(t)
			planned = d.Plan(t)
			asPlanned := slices.DeleteFunc(d.leavesOf(d.pristine), func(l leaf) bool { return !slices.Contains(paths, l.path) })
			theirs := leaf{pointer: "/metadata/labels/theirs", value: "x", isNew: true}
			if err := k.set(t, d.name, false, append(asPlanned, theirs)...); err != nil {
				t.Fatal(err)
			}
			if wrong := d.Apply(t, planned); len(wrong) > 0 {
				t.Errorf("apply reports\n%s", texts(wrong))
			}
			d.expectEmptyPlan(t, "set back by others")
		})
	}
}

// ofDrift are the diagnostics about what others have changed; a plan may have others.
func ofDrift(diagnostics []*tfprotov6.Diagnostic) []*tfprotov6.Diagnostic {
	return slices.DeleteFunc(slices.Clone(diagnostics), func(d *tfprotov6.Diagnostic) bool {
		return !strings.Contains(d.Summary, "was changed outside of this configuration")
	})
}

// texts are diagnostics as people read them.
func texts(diagnostics []*tfprotov6.Diagnostic) string {
	var b strings.Builder
	for _, d := range diagnostics {
		b.WriteString(d.Severity.String() + ": " + d.Summary + "\n" + d.Detail + "\n")
	}
	return b.String()
}

func differences(want, got tftypes.Value) string {
	diffs, err := want.Diff(got)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, diff := range diffs {
		b.WriteString(diff.String() + "\n")
	}
	return b.String()
}

func TestTheRemedyOfADriftWarningMakesThePlanIgnoreTheDrift(t *testing.T) {
	const full, reduced = "drift-full", "drift-less"
	r := newTerminal(t)
	config := func(lifecycle func(ref string) string) string {
		var b strings.Builder
		b.WriteString(asAdmin(""))
		for _, k := range driftKinds() {
			b.WriteString(k.block("full", full, k.updated+driftedMetadata+lifecycle(k.ref(full))))
			b.WriteString(k.block("reduced", reduced, k.reduced+lifecycle(k.ref(reduced))))
		}
		return b.String()
	}
	asIs := config(func(string) string { return "" })
	r.apply(t, "made", asIs)
	t.Cleanup(func() { r.run(t, asIs, "destroy", "-auto-approve") })

	for _, k := range driftKinds() {
		whole := k.get(t, full)
		if added := k.missing(k.get(t, reduced), whole); len(added) > 0 {
			if err := k.set(t, reduced, false, added...); err != nil {
				t.Errorf("%s: %v", k.resource, err)
			}
		}
		leaves := k.leavesInJSON(whole)
		for _, l := range leaves {
			if accepted := k.accepted(t, full, leaves, l); len(accepted) > 0 {
				if err := k.set(t, full, false, accepted[0]...); err != nil {
					t.Errorf("%s: %v", k.resource, err)
				}
			}
		}
	}
	printed, code := r.run(t, asIs, "plan")
	if code != 0 {
		t.Fatalf("plan exited with %d:\n%s", code, printed)
	}
	remedies := map[string]string{}
	for _, warning := range strings.Split(printed, "Warning: ")[1:] {
		if of, _, isDrift := strings.Cut(warning, " was changed outside"); isDrift {
			if remedy := ignoreChanges.FindString(warning); remedy != "" {
				remedies[of] = "\n lifecycle {\n  " + remedy + "\n }\n"
			}
		}
	}
	if want := 2*len(driftKinds()) - 1; len(remedies) != want { // of a topology nothing is left out
		t.Errorf("%d warnings with a remedy, want %d:\n%s", len(remedies), want, printed)
	}
	r.expectNoChanges(t, config(func(ref string) string { return remedies[ref] }))
}

func TestAQueueThatAnActionHoldsStaysHeldUntilItIsReleased(t *testing.T) {
	forQueues(t, "drift-held", "", func(d *drifting, do func(action string)) {
		policy := func() (policy string) {
			policy, _, _ = unstructured.NestedString(d.get(t, d.name).Object, "spec", "stopPolicy")
			return policy
		}
		for action, want := range map[string]string{"elastic_queue_hold": "Hold", "elastic_queue_drain": "HoldAndDrain"} {
			do(action)
			// The first apply changes something else; by the second one, the field is the provider's, too.
			for _, label := range []string{"a", "b"} {
				d.Refresh(t)
				d.Configure(t, "name = \""+d.name+"\"\n"+d.reduced+"\n labels = { team = \""+label+"\" }")
				planned := d.Plan(t)
				expectText(t, texts(planned.Diagnostics), "is stopped by an action", "set by the action "+action, "elastic_queue_release")
				if wrong := d.Apply(t, planned); len(wrong) > 0 {
					t.Fatal(texts(wrong))
				}
				if got := policy(); got != want {
					t.Errorf("%s: after %s and an apply the stop policy is %q, not %q", d.title(), action, got, want)
				}
			}
			do("elastic_queue_release")
			d.expectEmptyPlan(t, "released")
			if got := policy(); got != "None" {
				t.Errorf("%s: released, the stop policy is %q", d.title(), got)
			}
		}
	})
}

func TestAPlanWarnsThatItReleasesAHeldQueueWhoseStopPolicyIsConfigured(t *testing.T) {
	forQueues(t, "drift-released", "\n stop_policy = \"None\"", func(d *drifting, do func(action string)) {
		do("elastic_queue_hold")
		d.Refresh(t)
		planned := d.Plan(t)
		expectText(t, texts(ofDrift(planned.Diagnostics)), `stop_policy: "Hold", written by "terraform-provider-elastic-queue-hold" at`,
			"releases the queue", "ignore_changes = [stop_policy]")
		if wrong := d.Apply(t, planned); len(wrong) > 0 {
			t.Error(texts(wrong))
		}
		d.expectEmptyPlan(t, "released")
	})
}

// forQueues calls do for a queue of each kind, with a function that invokes an action on it.
func forQueues(t *testing.T, name, attributes string, do func(d *drifting, act func(action string))) {
	server := providertest.NewServer(t, map[string]string{"config_path": adminKubeconfig()})
	for _, k := range driftKinds() {
		if k.title() != "ClusterQueue" && k.title() != "LocalQueue" {
			continue
		}
		named := map[string]string{"name": name}
		if k.namespaced {
			named["namespace"] = "default"
		}
		do(k.drift(t, server, name, k.reduced+attributes), func(action string) {
			if _, wrong := server.Invoke(t, action, named); len(wrong) > 0 {
				t.Fatal(texts(wrong))
			}
		})
	}
}

// withoutStatus is what an object consists of, without what its controller may write at any time.
func withoutStatus(object *unstructured.Unstructured) map[string]any {
	fields := object.DeepCopy().Object
	delete(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "resourceVersion")
	unstructured.RemoveNestedField(fields, "metadata", "managedFields")
	unstructured.RemoveNestedField(fields, "metadata", "finalizers")
	return fields
}
