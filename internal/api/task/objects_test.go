package task

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/accelerator"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files from what is rendered now; review the diff")

// low is the first task of the queue tutorial.
func low() Task {
	return Task{
		Name: "low", Namespace: "default", NumNodes: 1, Image: DefaultImage,
		Run:          "echo \"hi i'm a low priority job\"\nsleep 1000000\n",
		Accelerators: []accelerator.Request{{Name: "T4", Count: 4}},
		Queue:        "user-queue", PriorityClass: "low-priority",
	}
}

// everything uses every field that a user can set.
func everything() Task {
	return Task{
		Name: "everything", Namespace: "team", NumNodes: 2, Rejoin: true,
		Setup: "pip install -r requirements.txt", Run: "exec python train.py --rank $SKYPILOT_NODE_RANK",
		Image: "example.com/trainer:1", ImagePullPolicy: corev1.PullIfNotPresent, ImagePullSecrets: []string{"registry"},
		TrainerImage:      DefaultTrainerImage("0.1.0"),
		Envs:              map[string]string{"EPOCHS": "3", "PRICE": "$$(EPOCHS)"},
		Secrets:           map[string]SecretKey{"HF_TOKEN": {SecretName: "hub", Key: "token"}},
		SecretValues:      []string{"WANDB_API_KEY"},
		Workdir:           map[string]string{"requirements.txt": "numpy\n", "src/train.py": "print(1)\n"},
		Volumes:           []Volume{{Name: "data", MountPath: "/data", PVC: "mnist", ReadOnly: new(true)}, {Name: "shm", MountPath: "/dev/shm", EmptyDir: &trainingjob.EmptyDir{Medium: corev1.StorageMediumMemory}}},
		Accelerators:      []accelerator.Request{{Name: "W10", Count: 2}},
		Ordered:           true,
		AcceleratorLabels: map[string]accelerator.Definition{"W10": {Resource: "example.com/npu", Labels: map[string][]string{"example.com/npu": {"w10"}}}},
		CPUs:              "4", Memory: "32+",
		Queue: "user-queue", PriorityClass: "high-priority", PriorityClassName: "batch",
		Topology:                      &Topology{Required: "cloud.provider.com/topology-block", SliceSize: 2, SliceRequired: "cloud.provider.com/topology-rack"},
		Recovery:                      Recovery{MaxRestartsOnErrors: 3, RecoverOnExitCodes: []int{34, 33}},
		Labels:                        map[string]string{"team": "vision"},
		Annotations:                   map[string]string{"example.com/cost-centre": "4711"},
		NodeSelector:                  map[string]string{"pool": "training"},
		Tolerations:                   []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		RuntimeClassName:              "nvidia",
		TerminationGracePeriodSeconds: new(int64(60)),
		TTLSecondsAfterFinished:       new(int32(3600)),
		ActiveDeadlineSeconds:         new(int64(7200)),
		SecurityContext:               &SecurityContext{RunAsUser: new(int64(1000)), FSGroup: new(int64(1000)), ReadOnlyRootFilesystem: new(true)},
		InitContainers: []InitContainer{{
			Name: "fetch", Command: []string{"sh", "-c", "true"}, VolumeMounts: []trainingjob.VolumeMount{{Name: "shm", MountPath: "/in"}},
		}},
		PodOverrides: json.RawMessage(`{"spec":{"hostNetwork":true}}`),
	}
}

func given() Given {
	return Given{
		Secrets: map[string]string{"WANDB_API_KEY": "value"},
		Flavors: []map[string]string{{"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}, {"cloud.google.com/gke-accelerator": "nvidia-l4"}},
	}
}

func render(t *testing.T, task Task) *Objects {
	t.Helper()
	if problems := task.Problems(); len(problems) > 0 {
		t.Fatalf("the fixture has problems: %v", problems)
	}
	o, err := Render(task, given())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestObjects(t *testing.T) {
	for name, task := range map[string]Task{"low": low(), "everything": everything()} {
		t.Run("the objects of "+name+" are those of its golden file", func(t *testing.T) {
			o := render(t, task)
			o.Own(JobRef{Name: task.Name, Namespace: task.Namespace, UID: "3f0c"})
			// It is the same in all, and long.
			o.ConfigMap.Data[startKey] = "(start.sh)"
			var text strings.Builder
			for _, object := range append([]Object{o.Job}, o.Parts()...) {
				out, err := yaml.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				text.WriteString("---\n")
				text.Write(out)
			}
			compareGolden(t, name+".yaml", text.String())
		})
	}
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	file = filepath.Join("testdata", file)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (rewrite with -rewrite and review):\n%s", file, diff)
	}
}

func TestRender(t *testing.T) {
	t.Run("a task of one node needs no image, account or ConfigMap of a gang", func(t *testing.T) {
		o := render(t, low())
		if o.Gang != nil || o.ServiceAccount != nil || o.Role != nil || o.Secret != nil || len(o.Parts()) != 1 {
			t.Errorf("parts: %v", o.Parts())
		}
		spec := o.Job.Spec.Template.Spec
		if len(spec.InitContainers) != 0 || spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
			t.Errorf("the pod: %+v", spec)
		}
	})
	t.Run("a gang with an account of the user's makes no RBAC", func(t *testing.T) {
		task := everything()
		task.ServiceAccountName = "mine"
		o := render(t, task)
		if o.Gang == nil || o.ServiceAccount != nil || o.Role != nil || o.RoleBinding != nil {
			t.Error("the gang's ConfigMap is missing, or RBAC is made")
		}
	})
	t.Run("Kueue's labels are on the Job and not on its pods, which it would queue one by one", func(t *testing.T) {
		job := render(t, low()).Job
		if job.Labels[LabelQueue] != "user-queue" || job.Labels[LabelPriorityClass] != "low-priority" {
			t.Errorf("the Job: %v", job.Labels)
		}
		if _, there := job.Spec.Template.Labels[LabelQueue]; there {
			t.Errorf("the pods: %v", job.Spec.Template.Labels)
		}
	})
	t.Run("a secret's value is in the Secret and nowhere else", func(t *testing.T) {
		o, err := Render(everything(), Given{Secrets: map[string]string{"WANDB_API_KEY": "hunter2"}})
		if err != nil {
			t.Fatal(err)
		}
		o.Secret = nil
		if text, err := json.Marshal(o); err != nil || strings.Contains(string(text), "hunter2") {
			t.Errorf("it shows: %s, %v", text, err)
		}
	})
	t.Run("a secret without its value is refused", func(t *testing.T) {
		if _, err := Render(everything(), Given{}); err == nil || !strings.Contains(err.Error(), "secret WANDB_API_KEY is not given") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("what is rendered and owned leaves the task as it was", func(t *testing.T) {
		task, want := everything(), everything()
		o := render(t, task)
		o.Own(JobRef{Name: task.Name, UID: "1"})
		o.Job.Labels["x"], o.Job.Spec.Template.Labels["x"], o.Job.Spec.Template.Spec.NodeSelector["x"] = "y", "y", "y"
		if !reflect.DeepEqual(task, want) {
			t.Error(cmp.Diff(want, task))
		}
	})
	for name, task := range map[string]Task{"low": low(), "everything": everything()} {
		t.Run("the parts of "+name+" are found by their names, and go when the Job goes", func(t *testing.T) {
			o := render(t, task)
			o.Own(JobRef{Name: task.Name, UID: "3f0c"})
			kinds := func(parts []Object) (out []string) {
				for _, p := range parts {
					out = append(out, reflect.TypeOf(p).String()+" "+p.GetNamespace()+"/"+p.GetName())
				}
				return out
			}
			if diff := cmp.Diff(kinds(o.Parts()), kinds(NamedParts(task))); diff != "" {
				t.Error(diff)
			}
			for _, part := range o.Parts() {
				if r := part.GetOwnerReferences(); len(r) != 1 || r[0].UID != "3f0c" || r[0].Controller != nil || r[0].BlockOwnerDeletion != nil {
					t.Errorf("%s: owners %+v", part.GetName(), r)
				}
			}
		})
	}
}

func TestOf(t *testing.T) {
	for name, task := range map[string]Task{"low": low(), "everything": everything()} {
		t.Run(name+" is read back as it was asked for", func(t *testing.T) {
			o := render(t, task)
			got, err := Of(o.ConfigMap, o.Job)
			if err != nil {
				t.Fatal(err)
			}
			if !equality.Semantic.DeepEqual(task, got) {
				t.Error(cmp.Diff(task, got))
			}
		})
	}
	t.Run("pod_overrides are read back with the characters that HTML escapes", func(t *testing.T) {
		task := low()
		task.PodOverrides = json.RawMessage(`{"metadata":{"annotations":{"note":"a && b <c>"}}}`)
		o := render(t, task)
		got, err := Of(o.ConfigMap, o.Job)
		if err != nil || string(got.PodOverrides) != string(task.PodOverrides) {
			t.Errorf("%s, %v", got.PodOverrides, err)
		}
	})
	t.Run("what changed on the Job shows", func(t *testing.T) {
		o := render(t, low())
		o.Job.Labels[LabelPriorityClass] = "other"
		o.Job.Spec.BackoffLimit = new(int32(7))
		got, err := Of(o.ConfigMap, o.Job)
		if err != nil || got.PriorityClass != "other" || got.Recovery.MaxRestartsOnErrors != 7 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("a ConfigMap of another making is refused by the missing key", func(t *testing.T) {
		_, err := Of(&corev1.ConfigMap{Data: map[string]string{definitionKey: "{}"}}, &batchv1.Job{})
		if err == nil || !strings.Contains(err.Error(), runKey) {
			t.Errorf("got %v", err)
		}
	})
}

// FuzzOf reads ConfigMaps that anybody may have edited: what is accepted can be checked, and is read again as it is
// written.
func FuzzOf(f *testing.F) {
	for _, task := range []Task{low(), everything()} {
		text, err := task.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, task.Run, task.Setup, "print(1)")
	}
	f.Add(`{"name":"a","num_nodes":9223372036854775807,"workdir_files":["a","a"]}`, "", "", "")
	f.Fuzz(func(t *testing.T, definition, run, setup, file string) {
		data := map[string]string{definitionKey: definition, runKey: run, setupKey: setup, fileKey(0): file, fileKey(1): file}
		task, err := Of(&corev1.ConfigMap{Data: data}, &batchv1.Job{})
		if err != nil {
			return
		}
		_, _ = task.Problems(), task.Warnings()
		again, err := task.encode()
		if err != nil {
			t.Fatal(err)
		}
		written := map[string]string{definitionKey: again, runKey: task.Run, setupKey: task.Setup}
		for i, name := range task.workdirFiles() {
			written[fileKey(i)] = task.Workdir[name]
		}
		same, err := Of(&corev1.ConfigMap{Data: written}, &batchv1.Job{})
		if err != nil || !equality.Semantic.DeepEqual(task, same) {
			t.Errorf("%v\n%s", err, cmp.Diff(task, same))
		}
	})
}

// The rules of the API server for Jobs (v1.36, pkg/apis/batch/validation) and of Kueue's webhook that could be broken
// by what a user says, checked on whatever they say.
func TestWhatIsRenderedIsTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := low()
		task.Name = rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?`).Draw(t, "name")
		task.NumNodes = rapid.IntRange(1, 5).Draw(t, "nodes")
		task.TrainerImage = "trainer"
		task.Recovery.RecoverOnExitCodes = rapid.SliceOfNDistinct(rapid.IntRange(1, 255).Filter(func(c int) bool { return c != exitKilled }), 0, 20, rapid.ID[int]).Draw(t, "codes")
		task.Recovery.MaxRestartsOnErrors = rapid.IntRange(0, 1<<40).Draw(t, "restarts")
		task.Envs = rapid.MapOfN(rapid.StringMatching(`[A-Z_]{1,4}`), rapid.StringMatching(`[$()A-Z]{0,8}`), 0, 4).Draw(t, "env")
		task.CPUs = rapid.SampledFrom([]string{"", "4", "4+", "0.5"}).Draw(t, "cpus")
		if problems := task.Problems(); len(problems) > 0 {
			t.Fatalf("problems: %v", problems)
		}
		o, err := Render(task, Given{})
		if err != nil {
			t.Fatal(err)
		}
		spec := o.Job.Spec
		if !*spec.Suspend || *spec.Completions != *spec.Parallelism || int(*spec.Completions) != task.NumNodes || *spec.BackoffLimit < 0 {
			t.Fatalf("%+v", spec)
		}
		if indexed := spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion; indexed != (task.NumNodes > 1) {
			t.Fatalf("%d nodes, indexed %t", task.NumNodes, indexed)
		}
		if *spec.PodReplacementPolicy != batchv1.Failed || spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
			t.Fatal("a pod failure policy wants podReplacementPolicy Failed and restartPolicy Never")
		}
		for _, rule := range spec.PodFailurePolicy.Rules {
			if c := rule.OnExitCodes; c != nil && (len(c.Values) == 0 || len(c.Values) > 255 || !slices.IsSorted(c.Values) || slices.Contains(c.Values, 0) || len(slices.Compact(slices.Clone(c.Values))) != len(c.Values)) {
				t.Fatalf("exit codes %v", c.Values)
			}
		}
		container := spec.Template.Spec.Containers[0]
		for name, limit := range container.Resources.Limits {
			if request := container.Resources.Requests[name]; request.Cmp(limit) != 0 {
				t.Fatalf("%s: request %s, limit %s", name, request.String(), limit.String())
			}
		}
		mounted := map[string]bool{}
		for _, v := range spec.Template.Spec.Volumes {
			mounted[v.Name] = true
			if v.ConfigMap != nil {
				for _, item := range v.ConfigMap.Items {
					if _, there := o.ConfigMap.Data[item.Key]; !there {
						t.Fatalf("volume %s takes key %s, which ConfigMap %s does not have", v.Name, item.Key, o.ConfigMap.Name)
					}
				}
			}
		}
		for _, c := range slices.Concat(spec.Template.Spec.Containers, spec.Template.Spec.InitContainers) {
			for _, m := range c.VolumeMounts {
				if !mounted[m.Name] {
					t.Fatalf("container %s mounts %s, which there is not", c.Name, m.Name)
				}
			}
		}
		got := map[string]string{}
		for _, v := range container.Env {
			got[v.Name] = v.Value
		}
		for name, value := range task.Envs {
			if expanded(got[name]) != value {
				t.Fatalf("%s = %q reaches the script as %q", name, value, expanded(got[name]))
			}
		}
	})
}

// expanded is what Kubernetes makes of a value in which nothing refers to a variable: $$ is a dollar.
func expanded(value string) string {
	if !strings.Contains(value, "$$") {
		return value
	}
	return strings.ReplaceAll(value, "$$", "$")
}

func TestAmounts(t *testing.T) {
	for name, c := range map[string]struct {
		cpus, memory string
		requests     string
		limits       string
	}{
		"an exact amount is requested and is the limit":    {"4", "32", "4 32Gi", "4 32Gi"},
		"at least so much is requested and has no limit":   {"4+", "32+", "4 32Gi", "0 0"},
		"Kubernetes' quantities are understood":            {"500m", "512Mi", "500m 512Mi", "500m 512Mi"},
		"SkyPilot's GB are GiB":                            {"", "16GB+", "0 16Gi", "0 0"},
		"fractions are understood":                         {"0.5", "1.5", "500m 1536Mi", "500m 1536Mi"},
		"nothing asked for is nothing that a queue counts": {"", "", "0 0", "0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			task := low()
			task.CPUs, task.Memory = c.cpus, c.memory
			resources := render(t, task).Job.Spec.Template.Spec.Containers[0].Resources
			text := func(list corev1.ResourceList) string {
				cpu, memory := list[corev1.ResourceCPU], list[corev1.ResourceMemory]
				return cpu.String() + " " + memory.String()
			}
			if text(resources.Requests) != c.requests || text(resources.Limits) != c.limits {
				t.Errorf("requests %s, limits %s", text(resources.Requests), text(resources.Limits))
			}
			if gpu := resources.Limits["nvidia.com/gpu"]; gpu.Cmp(resource.MustParse("4")) != 0 {
				t.Errorf("%s GPUs", gpu.String())
			}
		})
	}
}
