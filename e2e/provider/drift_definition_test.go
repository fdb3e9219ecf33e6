package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// requested is a training job's definition as the attributes have it: plain values by the attributes' names.
type requested map[string]any

// definitionOf reads the definition in a job's ConfigMap.
func definitionOf(t *testing.T, name string) requested {
	t.Helper()
	d, err := trainingjob.ParseDefinition(jobConfig(t, name))
	if err != nil {
		t.Fatal(err)
	}
	a := requested{}
	maps.Copy(a, plainOf(t, d.Job))
	maps.Copy(a, plainOf(t, d.Settings))
	workers := a["workers"].(map[string]any)
	workers["min"], workers["max"] = float64(d.Min), float64(d.Max)
	if r := d.Job.Restart; r != nil {
		workers["restart_interval_seconds"] = float64(r.IntervalSeconds)
	}
	for key, value := range map[string]any{"command": a["command"], "elastic": a["elastic"], "processes": a["processes"], "step": a["step"], "min_priority_class_name": d.MinPriorityClassName} {
		if value != nil && value != "" {
			workers[key] = value
		}
	}
	if d.Queue != nil {
		a["queue"] = plainOf(t, d.Queue.Classes())
	}
	if place := d.Queue.Place(); place != nil {
		a["topology"] = plainOf(t, place)
	}
	for _, pod := range []string{"master", "workers"} {
		renameSeconds(a[pod], "tolerationSeconds", "toleration_seconds")
	}
	a["model"] = map[string]any{"name": d.Job.Model.Name}
	if d.ModelText != "" {
		a["model"] = map[string]any{"content": d.ModelText}
	}
	if d.Job.Restarts() { // which has none of them
		delete(a, "data")
		delete(a, "training")
		if d.ModelText == "" {
			delete(a, "model")
		}
	}
	for _, key := range []string{"command", "elastic", "restart", "step", "name", "namespace"} { // the last two are the objects' own
		delete(a, key)
	}
	return a
}

func plainOf(t *testing.T, value any) map[string]any {
	t.Helper()
	text, err := json.Marshal(value)
	plain := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// renameSeconds gives the seconds of a pod's tolerations another name: the API's, or the attribute's.
func renameSeconds(pod any, from, to string) {
	settings, _ := pod.(map[string]any)
	tolerations, _ := settings["tolerations"].([]any)
	for i := range tolerations {
		toleration := maps.Clone(tolerations[i].(map[string]any))
		if seconds, ok := toleration[from]; ok {
			delete(toleration, from)
			toleration[to] = seconds
		}
		tolerations[i] = toleration
	}
}

// data is the ConfigMap's data for a changed definition; its error is the reason why no job can have it.
func (a requested) data(like trainingjob.Definition) (map[string]string, error) {
	whole, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	var copied map[string]any
	if err := json.Unmarshal(whole, &copied); err != nil {
		return nil, err
	}
	for _, pod := range []string{"master", "workers"} {
		renameSeconds(copied[pod], "toleration_seconds", "tolerationSeconds")
	}
	text, err := json.Marshal(copied)
	if err != nil {
		return nil, err
	}
	d := trainingjob.Definition{Job: trainingjob.Job{Name: like.Job.Name, Namespace: like.Job.Namespace}}
	var numbers struct {
		Model    struct{ Content string }
		Queue    *trainingjob.Queue
		Topology *trainingjob.Topology
		Workers  struct {
			Min, Max             int
			MinPriorityClassName string `json:"min_priority_class_name"`
			Command              []string
			Elastic              string
			Processes, Step      int
			RestartInterval      int64 `json:"restart_interval_seconds"`
		}
	}
	for _, into := range []any{&d.Job, &d.Settings, &numbers} {
		if err := json.Unmarshal(text, into); err != nil {
			return nil, err
		}
	}
	d.Queue, d.ModelText, d.Job.Model.File, d.Job.Command = numbers.Queue, numbers.Model.Content, "", numbers.Workers.Command
	if d.Queue != nil {
		d.Queue.Topology = numbers.Topology
	}
	d.Job.Elastic, d.Job.ProcessesPerWorker, d.Job.Step = numbers.Workers.Elastic, numbers.Workers.Processes, numbers.Workers.Step
	if r := (trainingjob.Restart{IntervalSeconds: numbers.Workers.RestartInterval}); r != (trainingjob.Restart{}) {
		d.Job.Restart = &r
	}
	d.Min, d.Max, d.MinPriorityClassName = numbers.Workers.Min, numbers.Workers.Max, numbers.Workers.MinPriorityClassName
	if problems := d.Problems(); len(problems) > 0 {
		return nil, fmt.Errorf("%s", problems[0])
	}
	return d.ConfigData()
}

// places are all attributes of a value that hold no others, with their values.
func placesIn(attributes []*tfprotov6.SchemaAttribute, value map[string]any, above string) map[string]any {
	leaves := map[string]any{}
	for _, a := range attributes {
		of, there := value[a.Name]
		if !there {
			continue
		}
		path := above + a.Name
		switch v := of.(type) {
		case map[string]any:
			switch {
			case a.NestedType != nil && a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeMap:
				for key, item := range v {
					maps.Copy(leaves, placesIn(a.NestedType.Attributes, item.(map[string]any), fmt.Sprintf("%s[%q].", path, key)))
				}
			case a.NestedType != nil:
				maps.Copy(leaves, placesIn(a.NestedType.Attributes, v, path+"."))
			case a.Type.Is(tftypes.Map{}):
				for key := range v {
					leaves[fmt.Sprintf("%s[%q]", path, key)] = v[key]
				}
			default: // JSON
				leaves[path] = v
			}
		case []any:
			for i, item := range v {
				at := fmt.Sprintf("%s[%d]", path, i)
				if object, ok := item.(map[string]any); ok && a.NestedType != nil {
					maps.Copy(leaves, placesIn(a.NestedType.Attributes, object, at+"."))
				} else {
					leaves[at] = item
				}
			}
		default:
			leaves[path] = of
		}
	}
	return leaves
}

// with is a copy in which the value at a place is another one.
func with(value any, path string, to any) any {
	if path == "" {
		return to
	}
	path = strings.TrimPrefix(path, ".")
	if strings.HasPrefix(path, "[") {
		index, rest, _ := strings.Cut(path[1:], "]")
		if list, ok := value.([]any); ok {
			var i int
			_, _ = fmt.Sscan(index, &i)
			list = slices.Clone(list)
			list[i] = with(list[i], rest, to)
			return list
		}
		entries := maps.Clone(value.(map[string]any))
		key := strings.Trim(index, `"`)
		entries[key] = with(entries[key], rest, to)
		return entries
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	entries := maps.Clone(value.(map[string]any))
	entries[path[:end]] = with(entries[path[:end]], path[end:], to)
	return entries
}

// otherPlain are values that may replace one of a definition. The definition decides which of them a job can have.
func otherPlain(value any) []any {
	switch v := value.(type) {
	case float64:
		return []any{v + 1, v - 1, v / 2, v * 2}
	case bool:
		return []any{!v}
	case string:
		return append([]any{
			"/other", "synthetic://digits?records=500&seed=7", "indices://mine?records=500", "iris", "recordio", "idx", "tf_example", "bytes", trainingjob.AggregationAllReduce,
			"Always", "workers", "all", "", "RuntimeDefault", "x = 2\n", "3Gi",
		}, others(v)...)
	case []any:
		return []any{[]any{"other"}}
	case map[string]any: // JSON
		if _, isPatch := v["spec"]; isPatch {
			return []any{map[string]any{"spec": map[string]any{"dnsPolicy": "None", "dnsConfig": map[string]any{"nameservers": []any{"10.0.0.1"}}}}}
		}
		return []any{map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": []any{
			map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Exists"}}},
		}}}}}
	}
	return nil
}

const driftingPod = `
	priority_class_name              = "system-cluster-critical"
	resources                        = { requests = { cpu = "1000m", memory = "1Gi" }, limits = { memory = "2048Mi" } }
	node_selector                    = { pool = "training" }
	tolerations                      = [{ key = "spot", operator = "Equal", value = "yes", effect = "NoExecute", toleration_seconds = 60 }]
	affinity                         = jsonencode({ podAntiAffinity = { preferredDuringSchedulingIgnoredDuringExecution = [{ weight = 1, podAffinityTerm = { topologyKey = "kubernetes.io/hostname" } }] } })
	env                              = { LOG = "debug" }
	labels                           = { cost = "low" }
	annotations                      = { "example.com/scrape" = "true" }
	termination_grace_period_seconds = 40
	runtime_class_name               = "gvisor"
	pod_overrides                    = jsonencode({ spec = { dnsPolicy = "Default" } })
	security_context = {
	  run_as_user = 1000, run_as_group = 1001, run_as_non_root = true, fs_group = 1002, supplemental_groups = [1003]
	  seccomp_profile            = { type = "Localhost", localhost_profile = "train.json" }
	  read_only_root_filesystem  = false
	  allow_privilege_escalation = true
	  capabilities               = { add = ["IPC_LOCK"], drop = ["NET_RAW"] }
	}
	init_containers = [{
	  name = "fetch", image = "example.com/fetcher:1", command = ["fetch"], args = ["/in"], env = { LOG = "debug" }
	  volume_mounts = [{ name = "scratch", mount_path = "/in", sub_path = "train", read_only = true }]
	  resources     = { requests = { cpu = "1", memory = "1Gi" }, limits = { memory = "2Gi" } }
	}]`

// driftingJobs have, all together, every attribute of a training job in a context in which another client can change
// it.
var driftingJobs = []string{
	`
	image             = "registry.invalid/nobody:0"
	image_pull_policy = "IfNotPresent"
	image_pull_secrets   = ["registry"]
	service_account_name = "trainer"
	model    = { name = "mnist" }
	data     = { training = "/data/train", validation = "/data/test", format = "tfrecord", codec = "tf_example", records_per_task = 100 }
	training = { epochs = 2, minibatch_size = 10, grads_to_wait = 4, seed = 3, learning_rate = 0.25, aggregation = "master" }
	output     = "/output"
	checkpoint = { interval_steps = 5, max_to_keep = 2, directory = "/output/kept" }
	evaluation = { interval_steps = 3, interval_epochs = 1 }
	volumes = [
	  { name = "output", mount_path = "/output", claim_name = "models", mount_on = "master", read_only = false },
	  { name = "data", mount_path = "/data", host_path = "/srv/data" },
	  { name = "scratch", mount_path = "/scratch", empty_dir = { medium = "Memory", size_limit = "64Mi" } },
	  { name = "words", mount_path = "/words", config_map = "words", mount_on = "workers" },
	]
	master  = {` + driftingPod + "\n}\nworkers = {\n min = 2\n max = 3\n min_priority_class_name = \"system-node-critical\"" + driftingPod + `
	}`, `
	image    = "registry.invalid/nobody:0"
	model    = { content = "x = 1\n" }
	data     = { training = "/data/train", format = "csv", records_per_task = 100, csv = { columns = { x = ["length"] }, vocabularies = { length = ["a"] } } }
	training = { minibatch_size = 10, grads_to_wait = 4 }
	workers  = { max = 2, command = ["python3"] }
	volumes  = [{ name = "data", mount_path = "/data", claim_name = "data" }]`, `
	image    = "registry.invalid/nobody:0"
	model    = { content = "x = 1\n" }
	data     = { training = "indices://mine?records=100", records_per_task = 100 }
	training = { minibatch_size = 10, grads_to_wait = 2 }
	output   = "/output"
	workers  = { max = 2, command = ["python3"], elastic = "collectives" }
	volumes  = [{ name = "output", mount_path = "/output", claim_name = "models" }]`, `
	image    = "registry.invalid/nobody:0"
	workers  = { min = 2, max = 4, command = ["python3", "train.py"], elastic = "restart", processes = 2, step = 2, restart_interval_seconds = 90 }`, `
	image    = "registry.invalid/nobody:0"
	model    = { name = "mnist" }
	data     = { training = "synthetic://digits?records=100", records_per_task = 100 }
	training = { minibatch_size = 10, grads_to_wait = 2 }
	workers  = { min = 2, max = 4 }
	queue    = { name = "drift-jobs", workload_priority_class = "drift-jobs", min_workload_priority_class = "drift-jobs" }
	topology = { required = "block", slice_size = 2, slice_required = "rack" }`, `
	image    = "registry.invalid/nobody:0"
	model    = { name = "mnist" }
	data     = { training = "synthetic://digits?records=100", records_per_task = 100 }
	training = { minibatch_size = 10, grads_to_wait = 2 }
	workers  = { max = 2 }
	queue    = { name = "drift-jobs", workload_priority_class = "drift-jobs", min_workload_priority_class = "drift-jobs" }
	topology = { preferred = "rack" }`, `
	image    = "registry.invalid/nobody:0"
	model    = { name = "mnist" }
	data     = { training = "synthetic://digits?records=100", records_per_task = 100 }
	training = { minibatch_size = 10, grads_to_wait = 2 }
	workers  = { max = 2 }
	queue    = { name = "drift-jobs", workload_priority_class = "drift-jobs", min_workload_priority_class = "drift-jobs" }
	topology = { unconstrained = true }`,
}

// ofTheJob are attributes that only the Job contains and no ConfigMap: another test changes them there.
var ofTheJob = []string{"labels", "annotations", "active_deadline_seconds"}

// TestDriftOfEveryAttributeOfATrainingJobIsPlannedAndCorrected changes the master's input as another field manager:
// the value of each attribute, in groups (driftGroups); the plan names all of a group. A change that replaces the job,
// which takes a while, is applied once for each attribute of the resource, and otherwise set back by the other manager.
func TestDriftOfEveryAttributeOfATrainingJobIsPlannedAndCorrected(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, map[string]string{"config_path": adminKubeconfig()})
	attributes := server.Schemas.ResourceSchemas["elastic_training_job"].Block.Attributes
	for resource, of := range map[string]string{"elastic_local_queue": "cluster_queue = \"nowhere\"", "elastic_workload_priority_class": "value = 7"} {
		m := server.Manage(t, resource, "name = \"drift-jobs\"\n"+of)
		m.Make(t)
		t.Cleanup(func() { m.Destroy(t) })
	}
	tried, remade := map[string]bool{}, map[string]bool{}
	for i, config := range driftingJobs {
		name := fmt.Sprintf("drift-job-%d", i)
		t.Run(name, func(t *testing.T) {
			m := manage(t, server, "elastic_training_job", fmt.Sprintf("name = %q\n%s", name, config))
			pristine, original := m.State, definitionOf(t, name)
			like, err := trainingjob.ParseDefinition(jobConfig(t, name))
			if err != nil {
				t.Fatal(err)
			}
			before, err := original.data(like)
			if err != nil {
				t.Fatal(err)
			}
			leaves, other := placesIn(attributes, original, ""), map[string]any{}
			for path, value := range leaves {
				for _, candidate := range otherPlain(value) {
					changed := requested(with(map[string]any(original), path, candidate).(map[string]any))
					if data, err := changed.data(like); err == nil && !maps.Equal(data, before) {
						other[path] = candidate
						break
					}
				}
				if _, ok := other[path]; !ok && !excludesOthers(path, value) {
					t.Errorf("%s = %v: no other value was found that a job can have", path, value)
				}
				tried[inSchema(path)] = true
			}
			var inPlace, replacing []string
			for _, path := range slices.Sorted(maps.Keys(other)) {
				if strings.HasPrefix(path, "workers.") {
					inPlace = append(inPlace, path)
				} else {
					replacing = append(replacing, path)
				}
			}
			groups := slices.Concat(driftGroups(inPlace), driftGroups(replacing))
			for len(groups) > 0 {
				group := groups[0]
				groups = groups[1:]
				changed := map[string]any(original)
				for _, path := range group {
					changed = with(changed, path, other[path]).(map[string]any)
				}
				data, err := requested(changed).data(like)
				if err != nil { // together they are no job
					if len(group) == 1 {
						t.Fatalf("%s: %v", group[0], err)
					}
					groups = append(groups, slices.Collect(slices.Chunk(group, 1))...)
					continue
				}
				setAllData(t, name, data)
				planned := expectJobPlanned(t, m, pristine, group)
				var roots []string
				for _, path := range group {
					if root, _, _ := strings.Cut(inSchema(path), "."); !remade[root] {
						roots = append(roots, root)
					}
				}
				switch {
				case planned == nil:
				case len(planned.Replaces) == 0:
					if wrong := m.Apply(t, planned); len(wrong) > 0 {
						t.Errorf("%s: apply reports\n%s", group, texts(wrong))
					}
				case len(roots) > 0:
					for _, root := range roots {
						remade[root] = true
					}
					m.Remake(t)
				default: // other attributes of the same roots have replaced the job
					setAllData(t, name, before)
				}
				expectEmptyPlan(t, strings.Join(group, ", "), m)
			}
		})
	}
	for _, attribute := range schemaLeaves(attributes, "") {
		if !tried[attribute] && !slices.Contains(ofTheJob, attribute) {
			t.Errorf("%s was not changed by another manager: set it in driftingJobs", attribute)
		}
	}
}

// driftGroups splits items twice into groups of at most six: neighbours, and items that are far apart. Each item is
// changed with two different sets of companions, so that a defect that one companion hides shows in the other group.
func driftGroups[T any](items []T) [][]T {
	const size = 6
	groups := slices.Collect(slices.Chunk(items, size))
	stride := (len(items) + size - 1) / size
	for start := range stride {
		var group []T
		for i := start; i < len(items); i += stride {
			group = append(group, items[i])
		}
		groups = append(groups, group)
	}
	return groups
}

// excludesOthers reports whether what is beside a value goes with no other one: a profile of the node with Localhost,
// csv with its format, a command without data with being restarted, and a topology that is nothing but unconstrained.
func excludesOthers(path string, value any) bool {
	return strings.HasSuffix(path, ".seccomp_profile.type") && value == "Localhost" || path == "data.format" && value == "csv" || path == "workers.elastic" && value == trainingjob.ElasticRestart ||
		path == "topology.unconstrained"
}

// setAllData changes a job's ConfigMap as another client does.
func setAllData(t *testing.T, job string, data map[string]string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		t.Fatal(err)
	}
	_, err = adminClient(t).CoreV1().ConfigMaps("default").Patch(t.Context(), trainingjob.ConfigMapName(job), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: driftTester})
	if err != nil {
		t.Fatal(err)
	}
}

// expectJobPlanned checks that a plan shows the drift of the attributes and names them; it is nil where nothing is
// seen.
func expectJobPlanned(t *testing.T, m *providertest.Managed, pristine tftypes.Value, attributes []string) *providertest.Planned {
	t.Helper()
	when := strings.Join(attributes, ", ")
	m.Refresh(t)
	if sameConfigured(pristine, m.State) {
		t.Errorf("%s: a refresh does not see that others changed it", when)
		return nil
	}
	planned := m.Plan(t)
	if !sameConfigured(pristine, planned.Value) {
		t.Errorf("%s: the plan does not set it back:\n%s", when, differences(pristine, planned.Value))
	}
	named := namedIn(t, planned)
	for _, attribute := range attributes {
		if !slices.ContainsFunc(named, func(n string) bool { return strings.HasPrefix(n, attribute) || strings.HasPrefix(attribute, n) }) {
			t.Errorf("%s: the plan names %v", attribute, named)
		}
	}
	return planned
}

// sameConfigured compares the attributes that can be configured: the cluster reports the others.
func sameConfigured(a, b tftypes.Value) bool {
	was, is := entriesOf(a), entriesOf(b)
	observed := []string{
		"uid", "missing_objects", "changed_fields", "phase", "message", "steps_done", "steps_total", "loss", "metrics", "workers_running", "workers_pending", "preemptions",
		"model_sha256", "output_files", "reason", "restarts", "workload", "logs",
	}
	for name := range was {
		if !slices.Contains(observed, name) && !sameValue(was[name], is[name]) {
			return false
		}
	}
	return true
}

// sameValue compares two values, of quantities the amounts: 1000m is 1.
func sameValue(a, b tftypes.Value) bool {
	diffs, err := a.Diff(b)
	if err != nil {
		return false
	}
	for _, d := range diffs {
		if d.Value1 == nil || d.Value2 == nil {
			return false
		}
		var was, is string
		if !d.Value1.Type().Is(tftypes.String) {
			if d.Value1.Type().Is(tftypes.Number) || d.Value1.Type().Is(tftypes.Bool) || d.Value1.IsNull() || d.Value2.IsNull() {
				return false
			}
			continue // the diff has its elements as entries of their own
		}
		if d.Value1.As(&was) != nil || d.Value2.As(&is) != nil {
			return false
		}
		before, errBefore := quantity.ParseQuantity(was)
		after, errAfter := quantity.ParseQuantity(is)
		if errBefore != nil || errAfter != nil || before.Cmp(after) != 0 {
			return false
		}
	}
	return true
}
