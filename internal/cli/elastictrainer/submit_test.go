package elastictrainer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// The tutorial's first command without the program.
var tutorialLow = []string{
	"--job_name=low-prio-job", "--model_file=elasticdl/python/examples/mnist_functional_api.py", "--train_data_dir=/data/mnist/train",
	"--master_pod_priority=high-priority", "--worker_pod_priority=low-priority", "--num_epoch=1", "--minibatch_size=10",
	"--record_per_task=100", "--num_worker=2", "--master_cpu_request=1000m", "--master_cpu_limit=1000m", "--master_memory_request=1024Mi",
	"--master_memory_limit=1024Mi", "--worker_cpu_request=3000m", "--worker_cpu_limit=3000m", "--worker_memory_request=4096Mi",
	"--worker_memory_limit=4096Mi", "--grads_to_wait=2", "--codec_type=bytes", "--repository=gcr.io", "--image_base=gcr.io/elasticdl/elasticdl:dev",
}

// inTutorial changes to a directory with the model file where the tutorial has it.
func inTutorial(t *testing.T) (model string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "models", "mnist_functional_api.py"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "elasticdl", "python", "examples")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mnist_functional_api.py"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(dir, "..", "..", ".."))
	return string(text)
}

// documents are the objects that a dry run printed in YAML, by kind and name, and the notes before them.
func documents(t *testing.T, printed string) (objects map[string]string, order, notes []string) {
	t.Helper()
	for strings.HasPrefix(printed, "note: ") {
		note, rest, _ := strings.Cut(printed, "\n")
		notes, printed = append(notes, note), rest
	}
	objects = map[string]string{}
	for document := range strings.SplitSeq(printed, "\n---\n") {
		var object struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		name := object.Kind + "/" + object.Metadata.Name
		objects[name], order = document, append(order, name)
	}
	return objects, order, notes
}

func TestSubmitPrintsTheObjectsOfTheTutorialsCommand(t *testing.T) {
	model := inTutorial(t)
	printed, err := call(t, append([]string{"submit", "--dry-run", "-o", "yaml"}, tutorialLow...)...)
	if err != nil {
		t.Fatal(err, printed)
	}
	objects, order, notes := documents(t, printed)
	if len(notes) != 3 || !strings.Contains(notes[0], "--image_base=gcr.io/elasticdl/elasticdl:dev is replaced by image ghcr.io/elastic-training/elastic-trainer:test") {
		t.Errorf("the notes are %q", notes)
	}
	want := []string{
		"Job/low-prio-job", "ConfigMap/low-prio-job-job", "ConfigMap/low-prio-job-status", "ConfigMap/low-prio-job-model", "Secret/low-prio-job-credentials",
		"ServiceAccount/low-prio-job", "Role/low-prio-job", "RoleBinding/low-prio-job", "Lease/low-prio-job-master", "Service/low-prio-job-master",
	}
	if !slices.Equal(order, want) {
		t.Errorf("printed are %q, want %q", order, want)
	}
	var job batchv1.Job
	if err := yaml.UnmarshalStrict([]byte(objects["Job/low-prio-job"]), &job); err != nil {
		t.Fatal(err)
	}
	master := job.Spec.Template.Spec
	if !trainingjob.IsSuspended(&job) || master.PriorityClassName != "high-priority" || master.Containers[0].Resources.Requests.Cpu().String() != "1" {
		t.Errorf("the Job is %+v", job.Spec)
	}
	if i := slices.IndexFunc(master.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil }); i < 0 || master.Volumes[i].PersistentVolumeClaim.ClaimName != "fileserver-claim" {
		t.Errorf("the volumes are %+v", master.Volumes)
	}
	var config corev1.ConfigMap
	if err := yaml.UnmarshalStrict([]byte(objects["ConfigMap/low-prio-job-job"]), &config); err != nil {
		t.Fatal(err)
	}
	spec, err := trainingjob.DecodeJob([]byte(config.Data[trainingjob.JobKey]))
	if err != nil || config.Data[trainingjob.ModelKey] != model {
		t.Fatalf("the ConfigMap has %q (%v)", config.Data[trainingjob.ModelKey], err)
	}
	if spec.Data.Training != "/data/mnist/train" || spec.Data.RecordsPerTask != 100 || spec.Training != (trainingjob.Training{Epochs: 1, MinibatchSize: 10, GradsToWait: 2, Seed: 1, Aggregation: "master"}) || spec.Checkpoint != nil {
		t.Errorf("the job is %+v", spec)
	}
}

func TestSubmitRefusesByFlag(t *testing.T) {
	base := []string{"submit", "--dry-run", "--job-name=j", "--model=mnist", "--train-data-dir=synthetic://digits"}
	for args, want := range map[string]string{
		"--worker_cpu_request=lots":                 "--worker-cpu-request=lots",
		"--worker_cpu_request=2":                    "--worker-cpu-request",
		"--master_memory_limit=0":                   "--master-memory-limit=0",
		"--job-name=Low_Prio":                       "--job-name is",
		"--grads-to-wait=0":                         "--grads-to-wait is 0",
		"--model-dir=out":                           "--model-dir is",
		"--num-worker=1 --min-worker=2":             "--min-worker=2",
		"--dry-run=server":                          "--dry-run=server",
		"--dry-run=none -o yaml":                    "--output=yaml has an effect only with --dry-run",
		"-o xml":                                    "--output=xml",
		"--volume-name=data":                        "mount-path",
		"--volume-name=data --mount-path=relative":  "--mount-path is",
		"--train-data-dir=mnist/train":              "--train-data-dir is",
		"--codec_type=json":                         "--codec-type is",
		"--num_workers=2":                           "did you mean --num-worker?",
		"--training-data=/d":                        "did you mean --train-data-dir?",
		"--push_image=x":                            "--push_image, of a later version of ElasticDL; with elastic_training_job, leave it out: no image is built for a job",
		"--use_async":                               "training is synchronous",
		"--num-wroker=2":                            "did you mean --num-worker?",
		"-Q":                                        "elastic-trainer submit --help",
		"--worker_pod_priority=0.5":                 "--worker-pod-priority=0.5: a share of the workers is of a later version: set workers.min with",
		"--worker-command=python3 --model=mnist":    "--worker-command is",
		"--master_pod_priority=x --kubeconfig=none": "",
	} {
		t.Run(args, func(t *testing.T) {
			printed, err := call(t, append(slices.Clone(base), strings.Fields(args)...)...)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("got %v, want %q\n%s", err, want, printed)
			}
		})
	}
}

func TestALogIsOfTheNewestPodOfItsRole(t *testing.T) {
	pod := func(name, role, worker string, second int64) corev1.Pod {
		p := corev1.Pod{}
		p.Name, p.CreationTimestamp.Time = name, p.CreationTimestamp.AddDate(0, 0, int(second))
		p.Labels = map[string]string{trainingjob.LabelRole: role, trainingjob.LabelWorkerID: worker}
		return p
	}
	pods := []corev1.Pod{pod("m1", "master", "", 1), pod("m2", "master", "", 2), pod("w0", "worker", "0", 1), pod("w3", "worker", "3", 3)}
	for worker, want := range map[int]string{-1: "m2", 0: "w0", 3: "w3", 4: ""} {
		got := ""
		if found := podOf(pods, worker); found != nil {
			got = found.Name
		}
		if got != want {
			t.Errorf("worker %d: %q, want %q", worker, got, want)
		}
	}
}
