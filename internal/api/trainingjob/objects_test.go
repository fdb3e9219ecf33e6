package trainingjob

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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files from what is rendered now; review the diff")

// tutorial is the first job of the elastic scheduling tutorial.
func tutorial() Definition {
	resources := func(cpu, memory string) *corev1.ResourceRequirements {
		list := corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
		return &corev1.ResourceRequirements{Requests: list, Limits: list.DeepCopy()}
	}
	return Definition{
		Job: Job{
			Name: "low-prio-job", Namespace: "default",
			Data: Data{
				Training: "/data/mnist/train", Validation: "/data/mnist/test", Format: "recordio", Codec: "bytes", RecordsPerTask: 100,
			},
			Training: Training{Epochs: 1, MinibatchSize: 10, GradsToWait: 2, Seed: 1, LearningRate: new(0.1)},
			Output:   "/output/low-prio-job",
		},
		ModelText: "def loss(output, labels):\n    pass\n",
		Min:       1, Max: 2,
		Settings: Settings{
			Image: "ghcr.io/elastic-training/elastic-trainer:0.1.0",
			Volumes: []Volume{
				{Name: "output", MountPath: "/output", PVC: "models", Mount: MountMaster},
				{Name: "data", MountPath: "/data", HostPath: "/srv/data"},
			},
			Master:  PodSettings{PriorityClassName: "high-priority", Resources: resources("1000m", "1024Mi")},
			Workers: PodSettings{PriorityClassName: "low-priority", Resources: resources("3000m", "4096Mi")},
		},
	}
}

// everything uses every field that a user can set.
func everything() Definition {
	d := tutorial()
	d.Labels = map[string]string{"team": "vision"}
	d.Annotations = map[string]string{"example.com/cost-centre": "4711"}
	d.MinPriorityClassName = "high-priority"
	d.ActiveDeadlineSeconds = new(int64(3600))
	d.ImagePullPolicy = corev1.PullIfNotPresent
	d.ImagePullSecrets = []string{"registry"}
	d.ServiceAccountName = "trainer"
	d.Volumes = append(d.Volumes,
		Volume{Name: "scratch", MountPath: "/scratch", EmptyDir: &EmptyDir{Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse("64Mi"))}, ReadOnly: new(false)},
		Volume{Name: "vocabulary", MountPath: "/vocabulary", ConfigMap: "vocabulary", Mount: MountWorkers},
	)
	settings := PodSettings{
		PriorityClassName: "low-priority",
		NodeSelector:      map[string]string{"pool": "training"},
		Tolerations:       []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname"},
		}}}},
		Env:                           map[string]string{"LOG": "debug", "GOGC": "50"},
		Labels:                        map[string]string{"cost": "low"},
		Annotations:                   map[string]string{"example.com/scrape": "true"},
		TerminationGracePeriodSeconds: new(int64(5)),
		RuntimeClassName:              "gvisor",
		SecurityContext: &SecurityContext{
			RunAsUser: new(int64(1000)), RunAsGroup: new(int64(1001)), RunAsNonRoot: new(true), FSGroup: new(int64(1002)), SupplementalGroups: []int64{1003},
			SeccompProfile:         &SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: "train.json"},
			ReadOnlyRootFilesystem: new(false), AllowPrivilegeEscalation: new(true),
			Capabilities: &Capabilities{Add: []corev1.Capability{"IPC_LOCK"}, Drop: []corev1.Capability{"NET_RAW"}},
		},
		InitContainers: []InitContainer{
			{Name: "prepare"},
			{
				Name: "fetch", Image: "example.com/fetcher:1", Command: []string{"fetch"}, Args: []string{"/in"}, Env: map[string]string{"LOG": "debug"},
				VolumeMounts: []VolumeMount{{Name: "scratch", MountPath: "/in", SubPath: "train", ReadOnly: true}},
				Resources:    &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			},
		},
		PodOverrides: json.RawMessage(`{"spec":{"hostNetwork":true}}`),
	}
	d.Master, d.Workers = settings, settings
	return d
}

// queued is the tutorial's job under a queue, with a minimum of two workers.
func queued() Definition {
	d := tutorial()
	d.Min, d.Max, d.Job.Training.GradsToWait = 2, 4, 4
	d.MinPriorityClassName = "high-priority"
	d.Queue = &Queue{Name: "user-queue", PriorityClass: "low", MinPriorityClass: "mid", Topology: &Topology{Preferred: "cloud.provider.com/topology-rack"}}
	return d
}

func credentials() Credentials {
	return Credentials{Certificate: []byte("certificate"), PrivateKey: []byte("key"), Token: "token"}
}

func TestObjects(t *testing.T) {
	for name, d := range map[string]Definition{"tutorial": tutorial(), "everything": everything(), "queued": queued()} {
		t.Run("the objects of "+name+" are those of its golden file", func(t *testing.T) {
			if problems := d.Problems(); len(problems) > 0 {
				t.Fatalf("the fixture has problems: %v", problems)
			}
			o, err := Render(d, credentials())
			if err != nil {
				t.Fatal(err)
			}
			o.Own(JobRef{Name: d.Job.Name, Namespace: d.Job.Namespace, UID: "3f0c"})
			o.SetMasterAddress("10.0.0.1:50001")
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

func TestWorkerPodGolden(t *testing.T) {
	t.Run("a minimum worker of the job with everything is the one of its golden file", func(t *testing.T) {
		pod := WorkerPod(workersOf(t, everything()), JobRef{Name: "low-prio-job", Namespace: "default", UID: "3f0c"}, 7, true, "10.0.0.1:50001")
		out, err := yaml.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		compareGolden(t, "worker.yaml", string(out))
	})
}

func TestQueuedWorkerPodGolden(t *testing.T) {
	t.Run("a worker above the minimum of a queued job is the one of its golden file", func(t *testing.T) {
		pod := WorkerPod(workersOf(t, queued()), JobRef{Name: "low-prio-job", Namespace: "default", UID: "3f0c"}, 2, false, "10.0.0.1:50001")
		out, err := yaml.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		compareGolden(t, "queued_worker.yaml", string(out))
	})
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

func TestPartsAreOwnedByTheJob(t *testing.T) {
	o, err := Render(tutorial(), credentials())
	if err != nil {
		t.Fatal(err)
	}
	job := JobRef{Name: "low-prio-job", Namespace: "default", UID: "3f0c"}
	o.Own(job)
	for _, part := range o.Parts() {
		t.Run(part.GetName()+" goes when the Job goes, and holds nothing up", func(t *testing.T) {
			if !OwnedBy(part, job) || OwnedBy(part, JobRef{UID: "other"}) {
				t.Errorf("owner references: %v", part.GetOwnerReferences())
			}
			for _, r := range part.GetOwnerReferences() {
				if r.Controller != nil || r.BlockOwnerDeletion != nil {
					t.Errorf("controller and blockOwnerDeletion must be unset: %+v", r)
				}
			}
		})
	}
	t.Run("a job with an account of the user's makes no RBAC", func(t *testing.T) {
		o, err := Render(everything(), credentials())
		if err != nil {
			t.Fatal(err)
		}
		if o.ServiceAccount != nil || o.Role != nil || o.RoleBinding != nil {
			t.Error("ServiceAccount, Role or RoleBinding is rendered")
		}
		if got := o.Job.Spec.Template.Spec.ServiceAccountName; got != "trainer" {
			t.Errorf("the master runs as %q", got)
		}
	})
}

func TestNamedParts(t *testing.T) {
	for name, d := range map[string]Definition{"tutorial": tutorial(), "everything": everything(), "queued": queued()} {
		t.Run("the parts of "+name+" are found by their names", func(t *testing.T) {
			o, err := Render(d, credentials())
			if err != nil {
				t.Fatal(err)
			}
			kinds := func(parts []Object) (out []string) {
				for _, p := range parts {
					out = append(out, reflect.TypeOf(p).String()+" "+p.GetNamespace()+"/"+p.GetName())
				}
				return out
			}
			named := NamedParts(JobRef{Name: d.Job.Name, Namespace: d.Job.Namespace}, d.ServiceAccountName == "", d.Queue != nil)
			if diff := cmp.Diff(kinds(o.Parts()), kinds(named)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDefinitionOf(t *testing.T) {
	read := func(t *testing.T, d Definition, edit func(map[string]string)) Definition {
		t.Helper()
		o, err := Render(d, credentials())
		if err != nil {
			t.Fatal(err)
		}
		if edit != nil {
			edit(o.ConfigMap.Data)
		}
		got, err := ParseDefinition(o.ConfigMap)
		if err != nil {
			t.Fatal(err)
		}
		got.Labels, got.Annotations, got.ActiveDeadlineSeconds = d.Labels, d.Annotations, d.ActiveDeadlineSeconds
		return got
	}
	builtIn := tutorial()
	builtIn.ModelText, builtIn.Job.Model.Name = "", "mnist"
	for name, d := range map[string]Definition{"tutorial": tutorial(), "everything": everything(), "queued": queued(), "a built-in model": builtIn} {
		t.Run(name+" is read back as it was asked for", func(t *testing.T) {
			want := d
			if d.ModelText != "" {
				want.Job.Model.File = ConfigDir + "/" + ModelKey
			}
			if got := read(t, d, nil); !equality.Semantic.DeepEqual(want, got) {
				t.Error(cmp.Diff(want, got))
			}
		})
	}
	t.Run("a worker template edited by hand shows in what was edited, and only there", func(t *testing.T) {
		d := everything()
		got := read(t, d, func(data map[string]string) {
			data[WorkersKey] = strings.Replace(data[WorkersKey], `"priorityClassName": "low-priority"`, `"priorityClassName": "other"`, 1)
		})
		want := d
		want.Job.Model.File = ConfigDir + "/" + ModelKey
		want.Workers.PriorityClassName = "other"
		if !equality.Semantic.DeepEqual(want, got) {
			t.Error(cmp.Diff(want, got))
		}
	})
	t.Run("a ConfigMap of another making is refused by the missing key", func(t *testing.T) {
		_, err := ParseDefinition(&corev1.ConfigMap{Data: map[string]string{JobKey: "{}"}})
		if err == nil || !strings.Contains(err.Error(), WorkersKey) {
			t.Errorf("got %v", err)
		}
	})
}

// A setting that is new has to be put into the pod and found there again, or an edit by hand is not seen.
func TestEverySettingIsInTheWorkersPodAndIsReadFromIt(t *testing.T) {
	settings := everything().Workers
	settings.Resources = tutorial().Workers.Resources
	settings.PodOverrides = nil // anything at all, and read from definition.json alone
	bare := tutorial()
	bare.Workers = PodSettings{}
	template := func(d Definition) PodSettings {
		t.Helper()
		made, err := d.WorkerTemplate()
		if err != nil {
			t.Fatal(err)
		}
		return settingsOf(made)
	}
	all := reflect.ValueOf(settings)
	for i := range all.NumField() {
		name := all.Type().Field(i).Name
		if name == "PodOverrides" {
			continue
		}
		if all.Field(i).IsZero() {
			t.Errorf("everything() does not set %s", name)
			continue
		}
		explained := bare
		reflect.ValueOf(&explained.Workers).Elem().Field(i).Set(all.Field(i))
		if got := (PodSettings{}).withEdits(template(bare), template(explained)); !equality.Semantic.DeepEqual(got, explained.Workers) {
			t.Errorf("%s is not read back: %s", name, cmp.Diff(explained.Workers, got))
		}
	}
}

func workersOf(t *testing.T, d Definition) Workers {
	t.Helper()
	data, err := d.ConfigData()
	if err != nil {
		t.Fatal(err)
	}
	w, err := DecodeWorkers([]byte(data[WorkersKey]))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestRenderChangesNothingOfItsInput(t *testing.T) {
	t.Run("rendering and owning leave the definition as it was", func(t *testing.T) {
		d, want := everything(), everything()
		o, err := Render(d, credentials())
		if err != nil {
			t.Fatal(err)
		}
		o.Own(JobRef{Name: d.Job.Name, UID: "1"})
		o.Job.Labels["x"] = "y"
		o.Job.Spec.Template.Spec.NodeSelector["x"] = "y"
		if !reflect.DeepEqual(d, want) {
			t.Error(cmp.Diff(want, d))
		}
	})
}

func TestAScriptsPodsHaveADirectoryToWriteTo(t *testing.T) {
	writable := func(d Definition) (mounts int, env map[string]string) {
		env = map[string]string{}
		for _, template := range []func() (corev1.PodTemplateSpec, error){d.MasterTemplate, d.WorkerTemplate} {
			made, err := template()
			if err != nil {
				t.Fatal(err)
			}
			c := made.Spec.Containers[0]
			if i := slices.IndexFunc(made.Spec.InitContainers, isScript); i >= 0 {
				c = made.Spec.InitContainers[i]
			}
			for _, m := range c.VolumeMounts {
				if m.Name == "elastic-scratch" && m.MountPath == "/elastic-scratch" && !m.ReadOnly {
					mounts++
				}
			}
			for _, v := range c.Env {
				env[v.Name] = v.Value
			}
		}
		return mounts, env
	}
	d := tutorial()
	if mounts, env := writable(d); mounts != 0 || env["TMPDIR"] != "" {
		t.Errorf("without a command: %d, %v", mounts, env)
	}
	d.Job.Command = []string{"python3"}
	if mounts, env := writable(d); mounts != 2 || env["TMPDIR"] != "/elastic-scratch" || env["HOME"] != "/elastic-scratch" {
		t.Errorf("with a command: %d, %v", mounts, env)
	}
	d.Workers.Env = map[string]string{"HOME": "/home/me"}
	if mounts, env := writable(d); mounts != 2 || env["HOME"] != "/home/me" {
		t.Errorf("with the user's own home: %d, %v", mounts, env)
	}
	if problems := d.Problems(); len(problems) > 0 {
		t.Errorf("%v", problems)
	}
}

func TestPodOverridesAreReadBackWithTheCharactersThatHTMLEscapes(t *testing.T) {
	d := tutorial()
	d.Master.PodOverrides = json.RawMessage(`{"metadata":{"annotations":{"note":"a && b <c>"}}}`)
	data, err := d.ConfigData()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(data[DefinitionKey], "a && b <c>") {
		t.Errorf("%s", data[DefinitionKey])
	}
}
