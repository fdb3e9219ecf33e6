package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// partOf reads and changes one object of a job as another client does.
type partOf struct {
	name string // "Role low"
	dynamic.ResourceInterface
	object string
}

func newPart(t *testing.T, object trainingjob.Object) partOf {
	t.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(adminConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	return partOf{
		name:              fmt.Sprintf("%s %s/%s", kinds[0].Kind, object.GetNamespace(), object.GetName()),
		ResourceInterface: client.Resource(resource).Namespace(object.GetNamespace()), object: object.GetName(),
	}
}

func (p partOf) live(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	live, err := p.Get(t.Context(), p.object, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// patch fails if the API server allows no client to make the change.
func (p partOf) patch(t *testing.T, kind types.PatchType, patch any, dry bool) error {
	t.Helper()
	text, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	options := metav1.PatchOptions{FieldManager: driftTester}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err = p.Patch(t.Context(), p.object, kind, text, options)
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err) {
		t.Fatalf("%s: %v: %s", p.name, err, text)
	}
	return err
}

// ownedLeaves are the fields that hold no others and that the provider wrote.
func (p partOf) ownedLeaves(t *testing.T) []leaf {
	t.Helper()
	live, ours := p.live(t), fieldpath.NewSet()
	for _, entry := range live.GetManagedFields() {
		fields := fieldpath.NewSet()
		if strings.HasPrefix(entry.Manager, "terraform-provider-elastic") {
			if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
				t.Fatal(err)
			}
			ours = ours.Union(fields)
		}
	}
	var leaves []leaf
	var walk func(owned *fieldpath.Set, pointer, path string, value any)
	walk = func(owned *fieldpath.Set, pointer, path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				name := fieldpath.PathElement{FieldName: &key}
				below := owned
				if owned != nil {
					if below = owned.WithPrefix(name); !owned.Members.Has(name) && below.Empty() {
						continue
					}
				}
				at := path + "." + key
				if owned == nil {
					at = path // a list is one field
				} else if strings.ContainsAny(key, "./") {
					at = fmt.Sprintf("%s[%q]", path, key)
				}
				walk(below, pointer+"/"+strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1"), strings.TrimPrefix(at, "."), v[key])
			}
		case []any:
			for i, item := range v {
				walk(nil, fmt.Sprintf("%s/%d", pointer, i), path, item) // of an item all is looked at
			}
		default:
			leaves = append(leaves, leaf{path: path, pointer: pointer, value: value})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(live.Object)) {
		name := fieldpath.PathElement{FieldName: &key}
		if slices.Contains([]string{"apiVersion", "kind", "status"}, key) {
			continue
		}
		walk(ours.WithPrefix(name), "/"+key, key, live.Object[key])
	}
	return leaves
}

// left are fields that an apply leaves to others, and why.
func left(part partOf, path string) bool {
	kind, _, _ := strings.Cut(part.name, " ")
	switch {
	case path == "spec.suspend": // kubectl and Kueue suspend and resume a Job; its phase shows it
		return true
	case strings.HasPrefix(path, "metadata.") && !strings.HasPrefix(path, "metadata.labels") && !strings.HasPrefix(path, "metadata.annotations"):
		return true // an object's owner and the prefix of its name are not its contents
	case kind == "ConfigMap" && strings.HasPrefix(path, "data"):
		return true // of attributes, which tests of their own change, or written by pods
	case kind == "Lease" && strings.HasPrefix(path, "spec"):
		return true // its holder's
	case strings.Contains(path, "kueue.x-k8s.io/"):
		return true // Kueue's webhooks decide about these
	case kind == "Job" && path == "spec.template.spec.serviceAccount": // a former name of another one
		return true
	case kind == "Job" && path == "spec.manualSelector": // without effect once the Job exists
		return true
	}
	return false
}

// TestEveryFieldOfEveryObjectOfAJobThatOthersChangeIsPlannedAndCorrected has another field manager change what the
// provider wrote, in groups (driftGroups); the plan names all of a group.
func TestEveryFieldOfEveryObjectOfAJobThatOthersChangeIsPlannedAndCorrected(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, map[string]string{"config_path": adminKubeconfig()})
	queue := server.Manage(t, "elastic_local_queue", "name = \"drift-line\"\n cluster_queue = \"nowhere\"")
	queue.Make(t)
	t.Cleanup(func() { queue.Destroy(t) })
	const gang = "run = \"true\"\n image = \"registry.invalid/nobody:0\"\n num_nodes = 2\n secrets_wo = { TOKEN = \"hidden\" }\n secrets_wo_version = 1\n labels = { team = \"vision\" }\n node_selector = { pool = \"a\" }\n"
	for name, c := range map[string]struct {
		resource, attributes string
		parts                func(trainingjob.JobRef) []trainingjob.Object
	}{
		"drift-gang": {"elastic_task", gang, func(ref trainingjob.JobRef) []trainingjob.Object {
			return task.NamedParts(task.Task{Name: ref.Name, Namespace: ref.Namespace, NumNodes: 2, SecretValues: []string{"TOKEN"}})
		}},
		"drift-queued-gang": {"elastic_task", gang + "queue = { name = \"drift-line\" }", func(ref trainingjob.JobRef) []trainingjob.Object {
			return task.NamedParts(task.Task{Name: ref.Name, Namespace: ref.Namespace, NumNodes: 2, SecretValues: []string{"TOKEN"}})
		}},
		"drift-parts": {"elastic_training_job", attributesOf(trainingJob("drift-parts", "labels = { team = \"vision\" }\n annotations = { note = \"ours\" }\n active_deadline_seconds = 9000")), func(ref trainingjob.JobRef) []trainingjob.Object {
			return trainingjob.NamedParts(ref, true, false)
		}},
		"drift-queued-parts": {
			"elastic_training_job", attributesOf(trainingJob("drift-queued-parts", "queue = { name = \"drift-line\" }")),
			func(ref trainingjob.JobRef) []trainingjob.Object { return trainingjob.NamedParts(ref, true, true) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attributes := c.attributes
			if c.resource == "elastic_task" {
				attributes = fmt.Sprintf("name = %q\n%s", name, attributes)
			}
			m := manage(t, server, c.resource, attributes)
			live := liveJob(t, name)
			ref := trainingjob.JobRef{Name: name, Namespace: "default", UID: live.UID}
			pristine := m.State
			type change struct {
				partOf
				leaf
			}
			var changes []change
			tried, seen := 0, map[string]bool{}
			for _, object := range append([]trainingjob.Object{live}, c.parts(ref)...) {
				part := newPart(t, object)
				for _, l := range part.ownedLeaves(t) {
					if left(part, l.path) {
						continue
					}
					like := part.name + l.path // one item of a list, and one of the labels that all objects have, will do
					if strings.HasPrefix(l.path, "metadata.labels[") {
						like = part.name + " labels"
					}
					if seen[like] {
						continue
					}
					tried++
					values := others(l.value)
					if strings.HasPrefix(part.name, "Secret ") {
						values = []any{"b3RoZXI="}
					}
					for _, value := range values {
						if part.patch(t, types.JSONPatchType, []leaf{l.as(value)}, true) == nil {
							changes, seen[like] = append(changes, change{part, l.as(value)}), true
							break
						}
					}
				}
			}
			t.Logf("%d fields of %d can be changed", len(changes), tried)
			if len(changes) < 5 {
				t.Fatalf("only %v", changes)
			}
			for _, group := range driftGroups(changes) {
				var what []string
				was := map[string]*unstructured.Unstructured{}
				for _, ch := range group {
					if was[ch.name] == nil {
						was[ch.name] = ch.live(t)
					}
					what = append(what, ch.name+" "+ch.path)
				}
				for _, ch := range group {
					if err := ch.patch(t, types.JSONPatchType, []leaf{ch.leaf}, false); err != nil {
						t.Fatal(err)
					}
				}
				m.Refresh(t)
				planned := m.Plan(t)
				if planned.Value.Equal(m.State) || !sameConfigured(pristine, planned.Value) || len(planned.Replaces) > 0 {
					t.Errorf("%s: not planned in place:\n%s", what, differences(m.State, planned.Value))
					continue
				}
				warnings := texts(planned.Diagnostics)
				for _, ch := range group {
					if !isNamed(warnings, ch.path) || !strings.Contains(warnings, driftTester) && !strings.Contains(warnings, ", removed, or") {
						t.Errorf("%s: the plan does not name the writer of %s:\n%s", what, ch.path, warnings)
					}
				}
				if wrong := m.Apply(t, planned); len(wrong) > 0 {
					t.Errorf("%s: apply reports\n%s", what, texts(wrong))
				}
				expectEmptyPlan(t, strings.Join(what, ", "), m)
				resigned := slices.ContainsFunc(group, func(ch change) bool { return strings.HasPrefix(ch.name, "Secret ") })
				for _, ch := range group {
					if resigned && strings.HasPrefix(ch.name, "ConfigMap ") {
						continue
					}
					if is := ch.live(t); !strings.HasPrefix(ch.name, "Secret ") && !sameContents(was[ch.name], is) {
						t.Errorf("%s is not as it was:\n%v\n%v", ch.name, was[ch.name].Object, is.Object)
					}
				}
			}
		})
	}
}

// isNamed reports whether the warnings of a plan name a field that others have changed: by its path, or by its attribute.
func isNamed(warnings, path string) bool {
	attribute := map[string]string{
		"spec.backoffLimit":            "recovery.max_restarts_on_errors",
		"spec.ttlSecondsAfterFinished": "ttl_seconds_after_finished",
		"spec.activeDeadlineSeconds":   "active_deadline_seconds",
	}[path]
	for _, entries := range []string{"labels", "annotations"} {
		if key, is := strings.CutPrefix(path, "metadata."+entries+"."); is {
			attribute = fmt.Sprintf("%s[%q]", entries, key)
		}
	}
	field := path
	if !strings.Contains(path, "[\"") { // an item of a list, which is named as a whole
		field, _, _ = strings.Cut(path, "[")
	}
	return strings.Contains(warnings, field) || attribute != "" && strings.Contains(warnings, "  - "+attribute+": ")
}

func sameContents(was, is *unstructured.Unstructured) bool {
	for _, o := range []*unstructured.Unstructured{was, is} {
		for _, key := range []string{"managedFields", "resourceVersion", "generation"} {
			unstructured.RemoveNestedField(o.Object, "metadata", key)
		}
		unstructured.RemoveNestedField(o.Object, "status")
	}
	a, errA := json.Marshal(was.Object)
	b, errB := json.Marshal(is.Object)
	return errA == nil && errB == nil && string(a) == string(b)
}
