package provider

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// call calls a function as Terraform does. Exactly one of value and problem is given.
func call(t *testing.T, name string, arguments ...tftypes.Value) (value tftypes.Value, problem *tfprotov6.FunctionError) {
	t.Helper()
	server, schema := server(t)
	definition := schema.Functions[name]
	if definition == nil {
		t.Fatalf("there is no function %s", name)
	}
	request := &tfprotov6.CallFunctionRequest{Name: name}
	for i, argument := range arguments {
		encoded, err := tfprotov6.NewDynamicValue(definition.Parameters[i].Type, argument)
		if err != nil {
			t.Fatal(err)
		}
		request.Arguments = append(request.Arguments, &encoded)
	}
	resp, err := server.CallFunction(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Error != nil {
		return tftypes.Value{}, resp.Error
	}
	if value, err = resp.Result.Unmarshal(definition.Return.Type); err != nil {
		t.Fatal(err)
	}
	return value, nil
}

// at is the value at a path of attribute names and list indices, such as "data.codec"; null below null.
func at(t *testing.T, value tftypes.Value, path string) tftypes.Value {
	t.Helper()
	for step := range strings.SplitSeq(path, ".") {
		var attributes map[string]tftypes.Value
		if err := value.As(&attributes); err != nil {
			t.Fatalf("%s of %s: %v", step, value, err)
		}
		next, ok := attributes[step]
		if !ok {
			t.Fatalf("%s is not among %v", step, slices.Sorted(maps.Keys(attributes)))
		}
		value = next
	}
	return value
}

func TestFunctionsAreDocumented(t *testing.T) {
	_, schema := server(t)
	for name, f := range schema.Functions {
		if f.Summary == "" || f.Description == "" {
			t.Errorf("%s has no description", name)
		}
		for _, parameter := range f.Parameters {
			if parameter.Description == "" {
				t.Errorf("%s: %s has no description", name, parameter.Name)
			}
		}
	}
}

func TestQuantityFunction(t *testing.T) {
	for amount, canonical := range map[string]string{"3000m": "3", "1024Mi": "1Gi", "0.5": "500m", "4": "4", "1e3": "1e3"} {
		got, problem := call(t, "quantity", str(amount))
		if problem != nil || !got.Equal(str(canonical)) {
			t.Errorf("%s: got %s, %v; want %s", amount, got, problem, canonical)
		}
	}
	_, problem := call(t, "quantity", str("1GB"))
	if problem == nil || problem.FunctionArgument == nil || *problem.FunctionArgument != 0 || !strings.Contains(problem.Text, "did you mean 1G or 1Gi?") {
		t.Errorf("got %v", problem)
	}
}

func TestElasticdlArgsFunction(t *testing.T) {
	const line = `--job_name=low-prio-job --model_file=m.py --image_base=localhost:5000/elastic-trainer:1 --train_data_dir=/data/mnist/train --record_per_task=100
		--num_epoch=1 --grads_to_wait=2 --minibatch_size=10 --num_worker=2 --worker_pod_priority=low-priority --worker_cpu_request=3000m`
	got, problem := call(t, "elasticdl_args", str(line+" --volume_name=data --mount_path=/data"))
	if problem != nil {
		t.Fatal(problem.Text)
	}
	for path, want := range map[string]tftypes.Value{
		"name": str("low-prio-job"), "image": str("localhost:5000/elastic-trainer:1"), "model_file": str("m.py"),
		"data.training": str("/data/mnist/train"), "data.records_per_task": number(100), "data.codec": str("bytes"), "data.format": str("recordio"),
		"training.epochs": number(1), "training.minibatch_size": number(10), "training.grads_to_wait": number(2),
		"workers.min": number(1), "workers.max": number(2), "workers.priority_class_name": str("low-priority"),
		"workers.resources.requests.cpu": str("3000m"), "workers.resources.limits.cpu": str("1000m"),
		"master.priority_class_name": tftypes.NewValue(tftypes.String, nil), "master.resources.limits.memory": str("1024Mi"),
	} {
		if value := at(t, got, path); !value.Equal(want) {
			t.Errorf("%s is %s, want %s", path, value, want)
		}
	}
	var volumes []tftypes.Value
	if err := at(t, got, "volumes").As(&volumes); err != nil || len(volumes) != 1 || !at(t, volumes[0], "claim_name").Equal(str("fileserver-claim")) {
		t.Errorf("volumes are %v (%v)", volumes, err)
	}
	if err := at(t, got, "notices").As(&volumes); err != nil || len(volumes) != 0 {
		t.Errorf("notices of a command line that means the same here are %v (%v)", volumes, err)
	}
	_, problem = call(t, "elasticdl_args", str(line+" --volumn_name=x"))
	if problem == nil || problem.FunctionArgument == nil || !strings.Contains(problem.Text, "did you mean --volume_name?") {
		t.Errorf("got %v", problem)
	}
}

func TestElasticdlArgsReportsWhatTakesThePlaceOfFlags(t *testing.T) {
	got, problem := call(t, "elasticdl_args", str(`--job_name=j --model_file=m.py --image_base=gcr.io/elasticdl/elasticdl:dev --repository=gcr.io
		--train_data_dir=/data/mnist/train --record_per_task=100 --num_epoch=1 --grads_to_wait=2 --minibatch_size=10 --num_worker=2`))
	if problem != nil {
		t.Fatal(problem.Text)
	}
	if image := at(t, got, "image"); !image.Equal(str("ghcr.io/elastic-training/elastic-trainer:test")) {
		t.Errorf("the image is %s", image)
	}
	var volumes, notices []tftypes.Value
	if err := at(t, got, "volumes").As(&volumes); err != nil || len(volumes) != 1 || !at(t, volumes[0], "mount_path").Equal(str("/data")) {
		t.Errorf("volumes are %v (%v)", volumes, err)
	}
	if err := at(t, got, "notices").As(&notices); err != nil || len(notices) != 3 {
		t.Errorf("notices are %v (%v)", notices, err)
	}
}

func TestAcceleratorLabelsFunction(t *testing.T) {
	labels := func(request string) map[string][]string {
		t.Helper()
		value, problem := call(t, "accelerator_labels", str(request))
		if problem != nil {
			t.Fatal(problem.Text)
		}
		var lists map[string]tftypes.Value
		if err := value.As(&lists); err != nil {
			t.Fatal(err)
		}
		out := map[string][]string{}
		for key, list := range lists {
			var texts []tftypes.Value
			if err := list.As(&texts); err != nil {
				t.Fatal(err)
			}
			for _, element := range texts {
				var text string
				if err := element.As(&text); err != nil {
					t.Fatal(err)
				}
				out[key] = append(out[key], text)
			}
		}
		return out
	}
	t4 := labels("t4")
	for key, value := range map[string]string{"cloud.google.com/gke-accelerator": "nvidia-tesla-t4", "nvidia.com/gpu.product": "Tesla-T4", "skypilot.co/accelerator": "t4"} {
		if !slices.Contains(t4[key], value) {
			t.Errorf("%s of a T4 is %v, without %s", key, t4[key], value)
		}
	}
	const topology = "cloud.google.com/gke-tpu-topology"
	if v5e := labels("tpu-v5e:8"); !slices.Equal(v5e[topology], []string{"2x4"}) {
		t.Errorf("eight chips: %v", v5e)
	}
	if v5e := labels("tpu-v5e"); len(v5e) == 0 || v5e[topology] != nil {
		t.Errorf("any number of chips: %v", v5e)
	}
	_, problem := call(t, "accelerator_labels", str("T5"))
	if problem == nil || problem.FunctionArgument == nil || !strings.Contains(problem.Text, "the nearest names are T4") {
		t.Errorf("got %v", problem)
	}
}

func TestSkypilotTaskFunction(t *testing.T) {
	got, problem := call(t, "skypilot_task", str(`
name: low
num_nodes: 2
workdir: .
resources:
  accelerators: T4:4
  cpus: 4+
  labels:
    kueue.x-k8s.io/queue-name: user-queue
    kueue.x-k8s.io/priority-class: low-priority
    team: vision
envs:
  A: b
secrets:
  TOKEN:
config:
  kubernetes:
    pod_config:
      spec: {runtimeClassName: nvidia}
run: |
  echo hi
`))
	if problem != nil {
		t.Fatal(problem.Text)
	}
	for path, want := range map[string]tftypes.Value{
		"name": str("low"), "run": str("echo hi\n"), "setup": tftypes.NewValue(tftypes.String, nil), "num_nodes": number(2),
		"accelerators": str("T4:4"), "cpus": str("4+"), "memory": tftypes.NewValue(tftypes.String, nil),
		"queue.name": str("user-queue"), "queue.workload_priority_class": str("low-priority"), "labels.team": str("vision"), "env.A": str("b"),
		"pod_overrides": str(`{"spec":{"runtimeClassName":"nvidia"}}`),
	} {
		if value := at(t, got, path); !value.Equal(want) {
			t.Errorf("%s is %s, want %s", path, value, want)
		}
	}
	if !at(t, got, "recovery").IsNull() || !at(t, got, "volumes").IsNull() {
		t.Errorf("there is a value that the file does not set: %s", got)
	}
	got, problem = call(t, "skypilot_task", str("resources:\n  accelerators: {H100:8, A100-80GB:8}\nrun: echo\n"))
	if problem != nil {
		t.Fatal(problem.Text)
	}
	if kind := at(t, got, "accelerators").Type(); !kind.Is(tftypes.Set{}) {
		t.Errorf("alternatives of equal rank are a %s", kind)
	}
	_, problem = call(t, "skypilot_task", str("run: echo\nresources:\n  gpus: 4\n"))
	if problem == nil || problem.FunctionArgument == nil || !strings.Contains(problem.Text, "yaml:3: unknown key resources.gpus; did you mean cpus?") {
		t.Errorf("got %v", problem)
	}
}
