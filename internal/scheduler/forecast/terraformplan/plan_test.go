package terraformplan_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/manifest"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/terraformplan"
)

// readPlan reads a plan in which this provider's resources are jobs with the number of pods in "pods".
func readPlan(t testing.TB, text []byte) (terraformplan.Contents, error) {
	t.Helper()
	return terraformplan.Read(text, terraformplan.Given{
		Given: manifest.Given{Namespace: "default"},
		Elastic: func(_ string, attributes []byte) (*forecast.Job, runtime.Object, error) {
			var fields struct {
				Name string `json:"name"`
				Pods int    `json:"pods"`
			}
			if err := json.Unmarshal(attributes, &fields); err != nil {
				return nil, nil, err
			}
			job := forecast.Job{Noun: "task", Namespace: "default", Name: fields.Name, Stages: []forecast.Stage{{{}}}}
			for i := range fields.Pods {
				job.Stages[0][0].Pods = append(job.Stages[0][0].Pods, forecast.Pod{Role: fmt.Sprintf("pod %d", i), Pod: &corev1.Pod{}})
			}
			return &job, nil, nil
		},
	})
}

func outline(c terraformplan.Contents) []string {
	var lines []string
	for _, job := range c.Jobs {
		n := 0
		for _, stage := range job.Stages {
			for _, part := range stage {
				n += len(part.Pods)
			}
		}
		line := fmt.Sprintf("%s %s: %s %s, %d pods", job.Action, job.Address, job.Noun, job.Job, n)
		if job.Grows {
			line += " more"
		}
		if job.Unknown != "" {
			line += "; " + job.Unknown
		}
		lines = append(lines, line)
	}
	for _, object := range c.Objects {
		lines = append(lines, "with "+object.GetObjectKind().GroupVersionKind().Kind)
	}
	for _, d := range c.Deletions {
		lines = append(lines, fmt.Sprintf("without %s %s/%s", d.Kind, d.Namespace, d.Name))
	}
	for _, text := range c.Skipped {
		lines = append(lines, "skipped "+text)
	}
	return lines
}

// testdata/plan.json has the form of terraform show -json for a configuration with the providers kubernetes 2.38,
// kubectl, helm 3 and elastic, by their documented schemas.
func TestAPlanIsReadAsWhatItChanges(t *testing.T) {
	text, err := os.ReadFile("testdata/plan.json")
	if err != nil {
		t.Fatal(err)
	}
	contents, err := readPlan(t, text)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"create elastic_task.first: task first, 2 pods",
		"update elastic_task.grows: task grows, 1 pods more",
		"create elastic_task.later: task , 0 pods; its name is not known until apply",
		"create helm_release.app: Deployment apps/app, 2 pods",
		"create kubectl_manifest.ray: RayCluster ml/ray, 3 pods",
		`create kubernetes_manifest.jobset["a.b"]: JobSet ml/train, 4 pods`,
		"update kubernetes_deployment_v1.web: Deployment web, 1 pods more",
		"replace module.jobs.kubernetes_job_v1.train: Job ml/train-high, 2 pods",
		"with PriorityClass",
		"without Job ml/old",
		"without Job ml/train-high",
	}
	if got := outline(contents); !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestBlocksBecomeFieldsOfTheAPI(t *testing.T) {
	text, err := os.ReadFile("testdata/plan.json")
	if err != nil {
		t.Fatal(err)
	}
	contents, err := readPlan(t, text)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(contents.Jobs, func(j terraformplan.Job) bool { return j.Name == "train-high" })
	pod := contents.Jobs[at].Stages[0][0].Pods[0]
	if queue := contents.Jobs[at].Stages[0][0].Queue; queue != "user-queue" {
		t.Errorf("queue %q", queue)
	}
	spec, err := json.Marshal(pod.Spec)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"volumes":[{"name":"scratch","emptyDir":{}}],"containers":[{"name":"main","image":"busybox","ports":[{"hostPort":8080,"containerPort":8080}],` +
		`"resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"cpu":"2","memory":"1Gi"}},"securityContext":{"runAsUser":1000}}],"restartPolicy":"Never",` +
		`"nodeSelector":{"gpu":"t4"},"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelector":{"matchExpressions":[{"key":"app","operator":"In","values":["train"]}]},"topologyKey":"kubernetes.io/hostname"}]}},` +
		`"tolerations":[{"key":"gpu","operator":"Exists","effect":"NoSchedule","tolerationSeconds":30}],"priorityClassName":"high",` +
		`"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"train"}}}]}`
	if string(spec) != want {
		t.Errorf("got  %s\nwant %s", spec, want)
	}
}

func TestSecretsOfAPlanStayInIt(t *testing.T) {
	const secret = "hunter2-is-the-password"
	text := fmt.Sprintf(`{"format_version": "1.2", "resource_changes": [
	  {"address": "kubernetes_job_v1.a", "mode": "managed", "type": "kubernetes_job_v1", "change": {"actions": ["create"], "after_unknown": {}, "after": {"metadata": [{"name": "a"}],
	   "spec": [{"template": [{"spec": [{"container": [{"name": "c", "resources": [{"requests": {"cpu": %[1]q}}], "env": [{"name": "PASSWORD", "value": %[1]q}]}]}]}]}]}}},
	  {"address": "kubectl_manifest.b", "mode": "managed", "type": "kubectl_manifest", "change": {"actions": ["create"], "after_unknown": {}, "after": {"yaml_body": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: b}\nspec: {parallelism: %[1]s}\n"}}}
	]}`, secret)
	contents, err := readPlan(t, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(contents.Skipped) != 2 {
		t.Errorf("skipped %q", contents.Skipped)
	}
	if text := strings.Join(outline(contents), "\n"); strings.Contains(text, secret) {
		t.Errorf("the secret is in %s", text)
	}
}

func TestWhatIsNoPlanIsRefused(t *testing.T) {
	for text, wantText := range map[string]string{
		"Terraform will perform":    "terraform show -json",
		`{"format_version": "2.0"}`: "plans of version 1",
		`{}`:                        "plans of version 1",
	} {
		if _, err := readPlan(t, []byte(text)); err == nil || !strings.Contains(err.Error(), wantText) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	text, err := os.ReadFile("testdata/plan.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		contents, err := readPlan(t, text)
		if err != nil {
			return
		}
		for _, job := range contents.Jobs {
			if job.Address == "" && job.Action == "" {
				t.Errorf("%v", job)
			}
		}
	})
}

func TestAKueueObjectThatIsNotUnderstoodIsSkippedWithTheReason(t *testing.T) {
	contents, err := readPlan(t, []byte(`{"format_version": "1.2", "resource_changes": [
	  {"address": "kubectl_manifest.was", "mode": "managed", "type": "kubectl_manifest", "change": {"actions": ["create"], "after_unknown": {}, "after": {"yaml_body": "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: was}\nspec: {cohort: c}\n"}}},
	  {"address": "kubernetes_manifest.wrong", "mode": "managed", "type": "kubernetes_manifest", "change": {"actions": ["create"], "after_unknown": {}, "after":
	   {"manifest": {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "wrong"}, "spec": {"cohort": "c"}}}}}
	]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"with ClusterQueue",
		`skipped kubernetes_manifest.wrong: ClusterQueue wrong: unknown field "spec.cohort": it is spec.cohortName in kueue.x-k8s.io/v1beta2; rename it, or write apiVersion: kueue.x-k8s.io/v1beta1`,
	}
	if got := outline(contents); !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
