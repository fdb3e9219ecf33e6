package snapshot_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/snapshot"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/jobfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/manifest"
)

// node1 is a node as `kubectl get nodes -o yaml` prints one.
const node1 = `
apiVersion: v1
kind: Node
metadata: {name: node-1, creationTimestamp: "2026-11-21T10:00:00Z", labels: {kubernetes.io/hostname: node-1}}
status:
  allocatable: {cpu: "4", memory: 8Gi, pods: "10"}
  conditions: [{type: Ready, status: "True", lastHeartbeatTime: "2026-11-21T10:04:07Z"}]
`

func parse(t *testing.T, text string) *snapshot.File {
	t.Helper()
	file, err := snapshot.Parse(strings.NewReader(text), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// answerOf is the forecast for the first job of a file.
func answerOf(t *testing.T, s *forecast.Snapshot, job string) forecast.Answer {
	t.Helper()
	contents, err := jobfile.Read("job.yaml", []byte(job), jobfile.Given{Given: manifest.Given{Namespace: "default", Nodes: s.Nodes}, Flavors: s.Queues.FlavorLabels})
	if err != nil {
		t.Fatal(err)
	}
	return forecast.All(t.Context(), s, contents.Jobs)[0]
}

const onePod = "name: new\npods: [{name: p, requests: {cpu: 3}}]"

func asJSON(t *testing.T, text string) string {
	t.Helper()
	converted, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(converted)
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestASnapshotFileIsAnyListOfObjects(t *testing.T) {
	list := "apiVersion: v1\nkind: List\nitems:\n" + "- " + strings.ReplaceAll(strings.TrimSpace(node1), "\n", "\n  ")
	typed := strings.Replace(strings.Replace(asJSON(t, list), `"kind":"List"`, `"kind":"NodeList"`, 1), `"apiVersion":"v1","kind":"Node",`, "", 1)
	for form, text := range map[string]string{
		"an object":                      node1,
		"a list":                         list,
		"a list in JSON":                 asJSON(t, list),
		"a list of the API server":       typed,
		"compressed":                     gzipped(t, asJSON(t, list)),
		"several documents":              "---\n# nodes\n---" + node1 + "---\n{apiVersion: v1, kind: List, items: []}\n",
		"several documents in JSON":      asJSON(t, node1) + "\n" + asJSON(t, "{apiVersion: v1, kind: PodList, items: []}"),
		"with kinds that no one reads":   list + "\n- {apiVersion: v1, kind: Secret, metadata: {name: s}, data: {key: c2VjcmV0}}",
		"with a pod that has ended":      list + "\n- {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: node-1, containers: [{name: c, resources: {requests: {cpu: 4}}}]}, status: {phase: Succeeded}}",
		"with an older version of Kueue": list + "\n- {apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, metadata: {name: q}, spec: {cohort: c}}",
	} {
		t.Run(form, func(t *testing.T) {
			file := parse(t, text)
			if want := time.Date(2026, 11, 21, 10, 4, 7, 0, time.UTC); !file.AsOf.Equal(want) {
				t.Errorf("it is of %s", file.AsOf)
			}
			if a := answerOf(t, file.Snapshot, onePod); a.Outcome != forecast.Fits || len(file.Nodes) != 1 {
				t.Errorf("%s, with nodes %v", a.Text(), file.Nodes)
			}
			if file.Queues != nil && file.Queues.ClusterQueues[0].Spec.CohortName != "c" {
				t.Errorf("the cohort is lost: %v", file.Queues.ClusterQueues[0].Spec)
			}
		})
	}
}

func TestWhatIsNoSnapshotIsAnErrorThatSaysWhy(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "there are no nodes in it; write it with `elastic-sim snapshot`",
		"items: []":              "kind is missing",
		"[1]":                    "not a list of Kubernetes objects",
		"a: b: c":                "document 1:",
		node1 + "---\n: [":       "document 2:",
		asJSON(t, node1) + "}":   "invalid character",
		"\x1f\x8b nothing":       "gzip",
		node1 + "---" + node1:    "Node node-1: it is in the file twice",
		"kind: List\nitems: [1]": "item 1:",
		"kind: List\nitems: [{kind: List, items: []}]":                                                                          "item 1: it is a list in a list",
		"{apiVersion: v1, kind: PodList, items: [{metadata: {name: p}, spec: 1}]}":                                              "item 1: Pod p: json:",
		"{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: c}, spec: {parrent: d}}":                           `Cohort c: unknown field "spec.parrent"`,
		"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: b, namespace: team}}":                         "PodDisruptionBudget team/b: apiVersion policy/v1beta1 is not read, but policy/v1",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: elastic-sim-snapshot}, data: {asOf: yesterday, kinds: nodes pods}}": "ConfigMap elastic-sim-snapshot, asOf:",
	} {
		t.Run(text, func(t *testing.T) {
			if _, err := snapshot.Parse(strings.NewReader(text), time.Time{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, not %q", err, want)
			}
		})
	}
	if _, err := snapshot.Open(filepath.Join(t.TempDir(), "none"), time.Time{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestAKindThatAListDoesNotHaveIsAReasonWhereItMayMatter(t *testing.T) {
	const (
		queues = `---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: q, namespace: default}, spec: {clusterQueue: q}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {}, COHORT
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4}]}]}]}}
`
		queued = "name: new\nqueue: {name: q}\npods: [{name: p, requests: {cpu: 3}}]"
	)
	for behaviour, c := range map[string]struct{ text, job, with, without string }{
		"without pods":              {node1, onePod, "pods could not be read (not in the snapshot), and count as not there", "Kueue"},
		"without classes":           {node1, onePod, "PriorityClasses could not be read (not in the snapshot)", "PodDisruptionBudget"},
		"without queues":            {node1, queued, "Kueue's objects of kind ClusterQueue could not be read (not in the snapshot)", "topologies"},
		"without Workloads":         {node1 + queues, queued, "kind Workload could not", "kind Cohort"},
		"without a cohort's object": {node1 + strings.Replace(queues, "COHORT", "cohortName: c,", 1), queued, "kind Cohort could not", "kind AdmissionCheck"},
		"without Kueue's settings":  {node1 + queues, queued, "there is no ConfigMap kueue-system/kueue-manager-config", "feature gates"},
		"without Kueue's arguments": {
			node1 + queues + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: kueue-manager-config, namespace: kueue-system}, data: {controller_manager_config.yaml: ''}}",
			queued, "feature gates may be arguments of Deployment kueue-system/kueue-controller-manager, which is not in the snapshot", "there is no ConfigMap",
		},
	} {
		t.Run(behaviour, func(t *testing.T) {
			reasons := strings.Join(forecast.Texts(answerOf(t, parse(t, strings.Replace(c.text, "COHORT", "", 1)).Snapshot, c.job).Approximate), "\n")
			if !strings.Contains(reasons, c.with) || strings.Contains(reasons, c.without) {
				t.Error(reasons)
			}
		})
	}
}

func TestAnIndexSaysWhatWasRead(t *testing.T) {
	index := func(more string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: elastic-sim-snapshot}, data: {asOf: '2026-11-21T10:00:00.5Z', serverVersion: v1.36.1, " + more + "}}\n---" + node1
	}
	file := parse(t, index("kinds: nodes pods priorityclasses.scheduling.k8s.io, denied: limitranges"))
	reasons := strings.Join(forecast.Texts(answerOf(t, file.Snapshot, onePod).Approximate), "\n")
	for text, there := range map[string]bool{
		"pods could": false, "unknown version": false, "LimitRanges could not be read (list limitranges)": true,
		"ResourceQuotas could not be read (not in the snapshot)": true, // a kind that the program which wrote it did not know
	} {
		if strings.Contains(reasons, text) != there {
			t.Errorf("%s is there: %t, in\n%s", text, !there, reasons)
		}
	}
	if file.Queues != nil || file.Version != "v1.36.1" || file.AsOf.Nanosecond() != 500_000_000 {
		t.Errorf("%+v", file.Snapshot)
	}
	later := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	if file, err := snapshot.Parse(strings.NewReader(index("")), later); err != nil || !file.AsOf.Equal(later) {
		t.Errorf("%v", err)
	}
}

func TestARuntimeIsReadFromTheFile(t *testing.T) {
	file := parse(t, node1+"---\n{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: torch}}")
	if object, err := file.Runtime("ClusterTrainingRuntime", "", "torch"); err != nil || object.GetName() != "torch" {
		t.Error(err)
	}
	if _, err := file.Runtime("TrainingRuntime", "default", "torch"); err == nil || err.Error() != "not in the snapshot" {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(node1))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}},{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"elastic-sim-snapshot"},"data":{"asOf":"2026-11-21T10:00:00Z","kinds":"nodes"}}]}`))
	f.Add([]byte("{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, metadata: {name: q}, spec: {cohort: c}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := snapshot.Parse(bytes.NewReader(text), time.Time{})
		if err != nil {
			return
		}
		// What can be read can be written, and read again.
		var out bytes.Buffer
		if err := snapshot.Write(&out, file.Snapshot); err != nil {
			t.Fatal(err)
		}
		if _, err := snapshot.Parse(&out, time.Time{}); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		if err := snapshot.WriteAnonymized(&out, file.Snapshot); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(out.Bytes()) {
			t.Fatalf("no JSON: %s", out.String())
		}
	})
}
