package jobfile_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/jobfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/manifest"
)

// read reads a file where the queue user-queue chooses among flavors without labels.
func read(text string) ([]forecast.Job, error) {
	contents, err := jobfile.Read("low.yaml", []byte(text), jobfile.Given{
		Given:   manifest.Given{Namespace: "team-a"},
		Flavors: func(string, string) []map[string]string { return []map[string]string{{}} },
	})
	return contents.Jobs, err
}

// outline is a job in a line: its name, and for each part its queue and the roles of its pods.
func outline(job forecast.Job) string {
	text := job.String()
	for _, stage := range job.Stages {
		text += " |"
		for _, part := range stage {
			var roles []string
			for _, pod := range part.Pods {
				role := pod.Role
				if pod.Optional {
					role += "?"
				}
				roles = append(roles, role)
			}
			text += fmt.Sprintf(" %s[%s]", part.Queue, strings.Join(roles, ", "))
		}
	}
	return text
}

const (
	aJob = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {parallelism: 3, completions: 2, template: {spec: {containers: [{name: c, image: i}]}}}\n"
	aPod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: other}\nspec: {nodeName: node-1, containers: [{name: c, image: i}]}\n"
)

func TestWhatAFileHolds(t *testing.T) {
	for behaviour, c := range map[string]struct {
		text string
		want []string
	}{
		"a Job: as many pods as run at once":         {aJob, []string{"team-a/j | [pod 0, pod 1]"}},
		"a queued Job":                               {strings.Replace(aJob, "{name: j}", "{name: j, labels: {kueue.x-k8s.io/queue-name: q}}", 1), []string{"team-a/j | q[pod 0, pod 1]"}},
		"a Pod, and a Job after it":                  {aPod + "---\n" + aJob, []string{"other/p | [the pod]", "team-a/j | [pod 0, pod 1]"}},
		"Trainy's task: named as its file is":        {"resources:\n  accelerators: T4:4\n  labels:\n    kueue.x-k8s.io/queue-name: user-queue\nrun: sleep 1\n", []string{"team-a/low | user-queue[the pod]"}},
		"a description of a master and workers":      {"name: e\npods:\n- {name: master, requests: {cpu: 1}}\n- {name: worker, count: 2, min: 1, starts_after_previous: true, requests: {cpu: 3}}\n", []string{"team-a/e | [master] | [worker 0, worker 1?]"}},
		"under a queue what it can do without alone": {"name: e\nqueue: {name: q}\npods:\n- {name: w, count: 3, min: 1, requests: {cpu: 1}}\n", []string{"team-a/e | q[w 0] q[w 1?] q[w 2?]"}},
	} {
		t.Run(behaviour, func(t *testing.T) {
			jobs, err := read(c.text)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, job := range jobs {
				got = append(got, outline(job))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatIsNoJobIsRefused(t *testing.T) {
	for text, wantText := range map[string]string{
		"": "there is no job in it",
		"kind: Widget\napiVersion: example.com/v1\nmetadata: {name: w}\nspec: {size: 3}\n": "Widget w: a forecast does not know this kind",
		"kind: Job\napiVersion: batch/v1\nmetadata: {name: j}\nspec: {parallel: 1}\n":      "unknown field",
		"kind: Job\napiVersion: batch/v1\nspec: {}\n":                                      "metadata.name is missing",
		strings.Replace(aJob, "parallelism: 3", "parallelism: 2000000000", 1):              "a forecast takes 0 to 10000 pods",
		aJob + "---\n\tx: [":                "low.yaml, document 2",
		"name: e\npods: []\n":               "pods is empty",
		"pods: [{name: w, requests: {}}]\n": "name is missing",
		"name: e\npods: [{name: w, count: 1000000000, requests: {cpu: 1}}]\n": "a job has 1 to 10000 pods",
		"name: e\npods: [{name: w, count: 2, min: 3, requests: {cpu: 1}}]\n":  "min is 3, and count 2",
		"name: e\npods: [{name: w, requests: {cpu: -1}}]\n":                   "cpu is negative",
		"name: e\npods: [{name: w, requests: {}}, {name: w, requests: {}}]\n": "as that of others",
		"name: e\npods: [{name: w, request: {}}]\n":                           "unknown field",
		strings.Repeat("# a long comment\n", 300_000):                         "of the largest file that is read",
		"runn: x\n": "runn",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), wantText) || !strings.Contains(err.Error(), "low.yaml") {
			t.Errorf("%.60q: %v, not %q", text, err, wantText)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{aJob, aPod, "name: e\npods: [{name: w, count: 2, requests: {cpu: 1}}]\n", "run: x\nnum_nodes: 2\n", "---\n---\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		jobs, err := read(text)
		if err != nil {
			return
		}
		for _, job := range jobs {
			pods := 0
			for _, stage := range job.Stages {
				for _, part := range stage {
					pods += len(part.Pods)
				}
			}
			if pods > jobfile.MaxPods || job.Name == "" {
				t.Errorf("job %q has %d pods", job.Name, pods)
			}
		}
	})
}

func TestAFileWithQueuesOfV1beta1HasTheForecastOfTheSameFileInV1beta2(t *testing.T) {
	answer := func(version string) string {
		text, err := os.ReadFile("testdata/kueue-" + version + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		contents, err := jobfile.Read("job.yaml", text, jobfile.Given{Given: manifest.Given{Namespace: "default"}})
		if err != nil {
			t.Fatal(err)
		}
		s := &forecast.Snapshot{AsOf: forecasttest.AsOf, Nodes: []*corev1.Node{forecasttest.Node("node-1", "8")}}
		return forecast.Run(t.Context(), s.With(contents.Objects), nil, contents.Jobs[0]).Text()
	}
	got := answer("v1beta1")
	if diff := cmp.Diff(answer("v1beta2"), got); diff != "" {
		t.Errorf("-v1beta2 +v1beta1:\n%s", diff)
	}
	if want := "admitted by ClusterQueue old-a with quota of old"; !strings.Contains(got, want) { // which it borrows from the cohort
		t.Errorf("not %q:\n%s", want, got)
	}
}

func TestAFieldThatKueueDoesNotHaveIsAnErrorWithTheObjectAndTheRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: a}\nspec: {cohort: c}\n": `low.yaml, document 2: ClusterQueue a: unknown field "spec.cohort": it is spec.cohortName in kueue.x-k8s.io/v1beta2`,
		"apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {name: q}\nspec: {queue: a}\n":    `LocalQueue q: unknown field "spec.queue": kueue.x-k8s.io/v1beta1 has no such field; correct its name, or leave it out`,
	} {
		if _, err := read(aJob + "---\n" + text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}

func TestAPipelineOfSkyPilotIsRefused(t *testing.T) {
	for _, text := range []string{"run: exit 1\n---\nrun: exit 0\n", "name: pipeline\n---\nrun: exit 1\n---\nrun: exit 0\n"} {
		if jobs, err := read(text); err == nil || !strings.Contains(err.Error(), "low.yaml, document 2: a second task begins") {
			t.Errorf("%q: %d jobs, %v", text, len(jobs), err)
		}
	}
}
