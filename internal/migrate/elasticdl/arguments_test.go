package elasticdl

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tutorial's first command, as its page has it.
//
//go:embed testdata/tutorial-low.sh
var tutorialLow string

// smallest has what is needed, and nothing else.
const smallest = "--job_name=j --model_file=m.py --image_base=i --train_data_dir=/d --record_per_task=1 --num_epoch=2 --grads_to_wait=3 --minibatch_size=4 --num_worker=5"

func TestTheTutorialsCommand(t *testing.T) {
	want := Arguments{
		Name: "low-prio-job", ModelFile: "elasticdl/python/examples/mnist_functional_api.py", Image: "gcr.io/elasticdl/elasticdl:dev", Pushed: "--repository=gcr.io",
		TrainingData: "/data/mnist/train", Codec: "bytes", RecordsPerTask: 100, Epochs: 1, MinibatchSize: 10, GradsToWait: 2, Workers: 2,
		Master: Pod{PriorityClass: "high-priority", CPURequest: "1000m", CPULimit: "1000m", MemoryRequest: "1024Mi", MemoryLimit: "1024Mi"},
		Worker: Pod{PriorityClass: "low-priority", CPURequest: "3000m", CPULimit: "3000m", MemoryRequest: "4096Mi", MemoryLimit: "4096Mi"},
	}
	for spelling, line := range map[string]string{
		"as it stands":            tutorialLow,
		"without continuations":   strings.ReplaceAll(tutorialLow, "\\\n", "\n"),
		"with blanks for =":       strings.ReplaceAll(tutorialLow, "=", " "),
		"without the program":     strings.TrimPrefix(tutorialLow, "python elasticdl/python/elasticdl/client/client.py"),
		"with a flag given twice": strings.Replace(tutorialLow, "--num_worker=2", "--num_worker=7 --num_worker=2", 1),
	} {
		t.Run(spelling, func(t *testing.T) {
			got, err := Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDefaultsAreTheClients(t *testing.T) {
	got, err := Parse(smallest)
	if err != nil {
		t.Fatal(err)
	}
	want := Arguments{
		Name: "j", ModelFile: "m.py", Image: "i", TrainingData: "/d", Codec: "bytes", RecordsPerTask: 1, Epochs: 2, GradsToWait: 3, MinibatchSize: 4, Workers: 5,
		Master: Pod{CPURequest: "100m", CPULimit: "100m", MemoryRequest: "1024Mi", MemoryLimit: "1024Mi"},
		Worker: Pod{CPURequest: "1000m", CPULimit: "1000m", MemoryRequest: "4096Mi", MemoryLimit: "4096Mi"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatTheClientTakes(t *testing.T) {
	for flags, check := range map[string]func(Arguments) bool{
		"--num_workers=7 --image_name=x":            func(a Arguments) bool { return a.Workers == 7 && a.Image == "x" },
		"--codec_type=tf_example":                   func(a Arguments) bool { return a.Codec == "tf_example" },
		"--volume_name data --mount_path '/a data'": func(a Arguments) bool { return a.VolumeName == "data" && a.MountPath == "/a data" },
		"--worker_cpu_request=1m":                   func(a Arguments) bool { return a.Worker.CPURequest == "1m" },
		"--worker_memory_limit=3G":                  func(a Arguments) bool { return a.Worker.MemoryLimit == "3G" },
		"--repository=":                             func(a Arguments) bool { return a.Pushed == "" },
		"--docker_image_repository=gcr.io/p":        func(a Arguments) bool { return a.Pushed == "--docker_image_repository=gcr.io/p" },
	} {
		if got, err := Parse(smallest + " " + flags); err != nil || !check(got) {
			t.Errorf("%s: %+v, %v", flags, got, err)
		}
	}
}

func TestWhatIsRefusedNamesTheFlag(t *testing.T) {
	for flags, wantText := range map[string]string{
		"--worker_cpu_request=0.5":      `--worker_cpu_request is "0.5": the client takes thousandths of a CPU, and no zero: write 500m`,
		"--worker_cpu_limit=1":          "write 1000m",
		"--master_cpu_limit=0m":         `--master_cpu_limit is "0m"`,
		"--master_memory_request=1GB":   `--master_memory_request is "1GB": the client takes a whole number with one of`,
		"--master_memory_limit=1024":    `--master_memory_limit is "1024"`,
		"--master_memory_limit=4K":      "write 4Ki",
		"--num_epoch=0":                 `--num_epoch is "0": write a whole number of at least 1`,
		"--num_worker=two":              `--num_worker is "two"`,
		"--codec_type=csv":              "choose from bytes, tf_example",
		"--job_name=":                   "--job_name",
		"--worker_image=x":              "the client sets this flag itself",
		"--use_async":                   "--use_async is of a later version: leave it out: training is synchronous",
		"--worker_pod_priority=0.5":     "workers.min_priority_class_name",
		"--num_workers=x":               "whole number",
		"--volumn_name=x":               "did you mean --volume_name?",
		"--volume=host_path=/d":         "--volume is of a later version: set volumes",
		"--worker_cpu":                  "--worker_cpu has no value",
		"--mount_path --codec_type=x":   "--mount_path has no value",
		"--mount_path=/data":            "--volume_name and --mount_path belong together",
		"-h":                            `"-h" is no flag`,
		"--codec_type=bytes tf_example": `"tf_example" is no flag; a value with blanks in it has to be quoted`,
		"--":                            `"--" is no flag`,
		"--mount_path=$HOME":            "no shell runs here",
	} {
		if got, err := Parse(smallest + " " + flags); err == nil || !strings.Contains(err.Error(), wantText) {
			t.Errorf("%s: got %+v, %v; want %q", flags, got, err, wantText)
		}
	}
}

func TestEverythingThatIsMissingIsNamedAtOnce(t *testing.T) {
	_, err := Parse("client.py --num_epoch=x")
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{"job_name", "model_file", "image_base", "train_data_dir", "record_per_task", "grads_to_wait", "minibatch_size", "num_worker"} {
		if !strings.Contains(err.Error(), "--"+name+" is missing") {
			t.Errorf("%s is not named:\n%v", name, err)
		}
	}
	if strings.Contains(err.Error(), "num_epoch is missing") {
		t.Errorf("num_epoch is wrong, not missing:\n%v", err)
	}
}
