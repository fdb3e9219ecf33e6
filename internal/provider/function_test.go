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
	const line = `--job_name=low-prio-job --model_file=m.py --image_base=i --train_data_dir=/data/mnist/train --record_per_task=100
		--num_epoch=1 --grads_to_wait=2 --minibatch_size=10 --num_worker=2 --worker_pod_priority=low-priority --worker_cpu_request=3000m`
	got, problem := call(t, "elasticdl_args", str(line+" --volume_name=data --mount_path=/data"))
	if problem != nil {
		t.Fatal(problem.Text)
	}
	for path, want := range map[string]tftypes.Value{
		"name": str("low-prio-job"), "image": str("i"), "model_file": str("m.py"),
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
	if err := at(t, got, "volumes").As(&volumes); err != nil || len(volumes) != 1 || !at(t, volumes[0], "pvc").Equal(str("fileserver-claim")) {
		t.Errorf("volumes are %v (%v)", volumes, err)
	}
	if got, _ := call(t, "elasticdl_args", str(line)); !at(t, got, "volumes").IsNull() {
		t.Error("there are volumes that nobody asked for")
	}
	_, problem = call(t, "elasticdl_args", str(line+" --num_workers=3"))
	if problem == nil || problem.FunctionArgument == nil || !strings.Contains(problem.Text, "did you mean --num_worker?") {
		t.Errorf("got %v", problem)
	}
}
