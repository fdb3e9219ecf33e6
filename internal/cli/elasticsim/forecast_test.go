package elasticsim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
)

func TestAForecastThatCannotBeMadeIsTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, []byte("name: j\npods: [{name: p, requests: {cpu: 1}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no file":                    {[]string{"forecast"}, cli.Usage, "--filename or --plan is missing; see `elastic-sim forecast --help`"},
		"two files":                  {[]string{"forecast", "-f", file, "--plan", file}, cli.Usage, "mutually exclusive"},
		"no such format":             {[]string{"forecast", "-f", file, "--format", "xml"}, cli.Usage, "text, json or markdown"},
		"no such code":               {[]string{"forecast", "-f", file, "--accepted-reasons", "to-many-choices"}, cli.Usage, "is no code of a reason"},
		"an argument":                {[]string{"forecast", "-f", file, "again"}, cli.Usage, "--help"},
		"no such file":               {[]string{"forecast", "-f", "nowhere.yaml"}, cli.Failed, "nowhere.yaml"},
		"no time of a cluster":       {[]string{"forecast", "-f", file, "--as-of", "2026-11-21T10:04:07Z"}, cli.Usage, "--as-of is the time of a --snapshot, which is missing"},
		"no cluster and a context":   {[]string{"forecast", "-f", file, "--snapshot", file, "--context", "a"}, cli.Usage, "--snapshot and --context are mutually exclusive: with a snapshot no cluster is contacted"},
		"no cluster and a dry run":   {[]string{"forecast", "-f", file, "--snapshot", file, "--no-dry-run=false"}, cli.Usage, "a dry run needs a cluster"},
		"one standard input for two": {[]string{"forecast", "-f", "-", "--snapshot", "-"}, cli.Usage, "only one file can be standard input"},
		"no such time":               {[]string{"forecast", "-f", file, "--snapshot", file, "--as-of", "noon"}, cli.Usage, "RFC 3339"},
		"no such snapshot":           {[]string{"forecast", "-f", file, "--snapshot", "nowhere"}, cli.Failed, "snapshot: open nowhere"},
		"no snapshot":                {[]string{"forecast", "-f", file, "--snapshot", file}, cli.Failed, "snapshot " + file + ": not a list of Kubernetes objects"},
		"a snapshot of no cluster":   {[]string{"snapshot", "-o", file, "--kubeconfig", "nowhere"}, cli.Failed, "nowhere"},
		"a snapshot without a file":  {[]string{"snapshot"}, cli.Usage, "--output"},
		"no such kubeconfig":         {[]string{"forecast", "-f", file, "--kubeconfig", "nowhere"}, cli.Failed, "nowhere: no such file or directory; check --kubeconfig and $KUBECONFIG"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := call(t, test.args...); cli.Code(err) != test.code || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A cluster with two nodes of 4 CPUs; the pod on the first is of low priority.
const smallCluster = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: node-1}, status: &status {allocatable: {cpu: "4", pods: "10"}, conditions: [{type: Ready, status: "True"}]}}
- {apiVersion: v1, kind: Node, metadata: {name: node-2}, status: *status}
- {apiVersion: v1, kind: Pod, metadata: {name: old, namespace: default}, spec: {nodeName: node-1, priority: -10, containers: [{name: c, resources: {requests: {cpu: 3}}}]}, status: {phase: Running}}
`

func TestARuntimeThatIsInNeitherFileIsMissingInTheJobFile(t *testing.T) {
	dir := t.TempDir()
	cluster, job := filepath.Join(dir, "cluster.yaml"), filepath.Join(dir, "job.yaml")
	train := "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: t}, spec: {runtimeRef: {name: torch}}}"
	if err := errors.Join(os.WriteFile(cluster, []byte(smallCluster), 0o600), os.WriteFile(job, []byte(train), 0o600)); err != nil {
		t.Fatal(err)
	}
	want := "ClusterTrainingRuntime torch is not in the job file, and could not be read: not in the snapshot"
	if _, err := call(t, "forecast", "--snapshot", cluster, "-f", job); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

func TestAForecastFromASnapshotNeedsNoCluster(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	cluster, job := write("cluster.yaml", smallCluster), write("job.yaml", "name: j\npods: [{name: p, count: 2, requests: {cpu: 3}}]\n")
	out, err := call(t, "forecast", "--snapshot", cluster, "-f", job, "--as-of", "2026-11-21T10:04:07Z")
	if cli.Code(err) != 10 || !strings.Contains(out, "evicts  default/old (priority -10) on node-1") || !strings.Contains(out, "cluster state at 10:04:07Z") {
		t.Errorf("%v: %s", err, out)
	}
	plan := write("plan.json", `{"format_version": "1.2", "terraform_version": "1.9.0", "configuration": {"root_module": {}}, "resource_changes": [{
		"address": "kubernetes_manifest.job", "mode": "managed", "type": "kubernetes_manifest", "name": "job", "provider_name": "registry.terraform.io/hashicorp/kubernetes",
		"change": {"actions": ["create"], "before": null, "after": {"manifest": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
			"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}}]}}}, "after_unknown": {}}}]}`)
	if out, err = call(t, "forecast", "--snapshot", cluster, "--plan", plan); err != nil || !strings.Contains(out, "on node-2 immediately") {
		t.Errorf("%v: %s", err, out)
	}
}
