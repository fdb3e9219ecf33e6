package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
)

// driftingTasks set, all together, every attribute of a task.
var driftingTasks = map[string]string{
	"drift-task-whole": `
	run                = "true"
	setup              = "true"
	num_nodes          = 2
	rejoin             = true
	env                = { LOG = "debug" }
	workdir            = { "train.py" = "x = 1" }
	image              = "registry.invalid/nobody:0"
	image_pull_policy  = "Never"
	image_pull_secrets = ["registry"]
	supervisor_image   = "registry.invalid/trainer:0"
	accelerators       = "X1:2"
	accelerator_labels = { X1 = { resource = "example.com/x", labels = { "example.com/x" = ["x1"] }, topologies = { "2" = "1x2" } } }
	cpus               = "2"
	memory             = "4+"
	recovery           = { max_restarts_on_errors = 2, recover_on_exit_codes = [33] }
	secrets            = { HF_TOKEN = { secret_name = "hugging-face", key = "token" } }
	secrets_wo         = { TOKEN = "hidden" }
	secrets_wo_version = 1
	volumes = [
	  { name = "data", mount_path = "/data", host_path = "/srv/data", read_only = true },
	  { name = "models", mount_path = "/models", claim_name = "models" },
	  { name = "scratch", mount_path = "/scratch", empty_dir = { medium = "Memory", size_limit = "64Mi" } },
	  { name = "words", mount_path = "/words", config_map = "words" },
	]
	priority_class_name  = "system-cluster-critical"
	node_selector        = { pool = "training" }
	tolerations          = [{ key = "spot", operator = "Equal", value = "yes", effect = "NoExecute", toleration_seconds = 60 }]
	service_account_name = "runner"
	runtime_class_name   = "gvisor"
	security_context = {
	  run_as_user = 1000, run_as_group = 1001, run_as_non_root = true, fs_group = 1002, supplemental_groups = [1003]
	  seccomp_profile            = { type = "Localhost", localhost_profile = "train.json" }
	  read_only_root_filesystem  = true
	  allow_privilege_escalation = true
	  capabilities               = { add = ["IPC_LOCK"], drop = ["NET_RAW"] }
	}
	init_containers = [{
	  name = "fetch", image = "example.com/fetcher:1", command = ["fetch"], args = ["/in"], env = { LOG = "debug" }
	  volume_mounts = [{ name = "scratch", mount_path = "/in", sub_path = "train", read_only = true }]
	  resources     = { requests = { cpu = "1", memory = "1Gi" }, limits = { memory = "2Gi" } }
	}]
	termination_grace_period_seconds = 40
	pod_overrides                    = jsonencode({ spec = { dnsPolicy = "Default" } })
	active_deadline_seconds          = 8000
	ttl_seconds_after_finished       = 600
	labels                           = { team = "vision" }
	annotations                      = { note = "ours" }`,
	"drift-task-queued": `
	run   = "true"
	image = "registry.invalid/nobody:0"
	queue = { name = "drift-tasks", workload_priority_class = "drift-tasks" }
	num_nodes = 2
	topology  = { required = "block", slice_size = 2, slice_required = "rack" }`,
	"drift-task-near": `
	run      = "true"
	image    = "registry.invalid/nobody:0"
	queue    = { name = "drift-tasks" }
	topology = { preferred = "rack" }`,
	"drift-task-anywhere": `
	run      = "true"
	image    = "registry.invalid/nobody:0"
	queue    = { name = "drift-tasks" }
	topology = { unconstrained = true }`,
}

// ofTheTasksJob are the attributes in the Job, with the values that another manager writes there.
var ofTheTasksJob = map[string]string{
	"labels":                          `{"metadata":{"labels":{"team":"ops"}}}`,
	"annotations":                     `{"metadata":{"annotations":{"note":"theirs"}}}`,
	"recovery.max_restarts_on_errors": `{"spec":{"backoffLimit":9}}`,
	"ttl_seconds_after_finished":      `{"spec":{"ttlSecondsAfterFinished":9}}`,
	"active_deadline_seconds":         `{"spec":{"activeDeadlineSeconds":9000}}`,
	"queue.name":                      `{"metadata":{"labels":{"` + task.LabelQueue + `":"drift-others"}}}`,
	"queue.workload_priority_class":   `{"metadata":{"labels":{"` + task.LabelPriorityClass + `":"drift-others"}}}`,
}

// textsOfTheTask are the attributes that have a key of their own in the task's ConfigMap.
var textsOfTheTask = map[string]string{"run": "run.sh", "setup": "setup.sh", "workdir": "file-0"}

// notOfTheTasksObjects are the attributes without a field of the same value.
var notOfTheTasksObjects = map[string]string{
	"yaml":       "what the file says is in the other attributes",
	"secrets_wo": "TestEveryFieldOfEveryObjectOfAJobThatOthersChangeIsPlannedAndCorrected changes the Secret",
}

// TestDriftOfEveryAttributeOfATaskIsPlannedAndCorrected changes the field of each attribute of a task's schema as
// another field manager. The fields of the Job are changed in groups (driftGroups), planned and applied; the
// API server allows no client to change the rest, which is in a ConfigMap that is immutable.
func TestDriftOfEveryAttributeOfATaskIsPlannedAndCorrected(t *testing.T) {
	server := providertest.NewServer(t, map[string]string{"config_path": adminKubeconfig()})
	attributes := server.Schemas.ResourceSchemas["elastic_task"].Block.Attributes
	for resource, of := range map[string]string{"elastic_local_queue": "cluster_queue = \"nowhere\"", "elastic_workload_priority_class": "value = 7"} {
		for _, name := range []string{"drift-tasks", "drift-others"} {
			m := server.Manage(t, resource, fmt.Sprintf("name = %q\n%s", name, of))
			m.Make(t)
			t.Cleanup(func() { m.Destroy(t) })
		}
	}
	tried := maps.Clone(notOfTheTasksObjects)
	for name, config := range driftingTasks {
		t.Run(name, func(t *testing.T) {
			m := manage(t, server, "elastic_task", fmt.Sprintf("name = %q\n%s", name, config))
			definition := taskDefinition(t, name)
			leaves := placesIn(attributes, definition, "")
			var onJob []string
			for path := range leaves {
				attribute := inSchema(path)
				if _, is := ofTheTasksJob[attribute]; !is {
					expectImmutable(t, name, "definition.json", with(definition, path, otherPlain(leaves[path])[0]), path)
					tried[attribute] = "immutable"
				} else if !slices.Contains(onJob, attribute) {
					onJob = append(onJob, attribute)
				}
			}
			for attribute, key := range textsOfTheTask {
				if definesText(t, name, key) {
					expectImmutable(t, name, key, "other", attribute)
					tried[attribute] = "immutable"
				}
			}
			slices.Sort(onJob)
			pristine := m.State
			for _, group := range driftGroups(onJob) {
				for _, attribute := range group {
					patchJob(t, name, ofTheTasksJob[attribute])
					tried[attribute] = "corrected"
				}
				expectTaskCorrected(t, m, pristine, group)
			}
		})
	}
	for _, attribute := range schemaLeaves(attributes, "") {
		if tried[attribute] == "" {
			t.Errorf("%s was not changed by another manager: set it in driftingTasks; if the task's Job says it, "+
				"add to ofTheTasksJob what another manager writes", attribute)
		}
	}
}

// taskDefinition is definition.json of a task, by the names of attributes.
func taskDefinition(t *testing.T, name string) map[string]any {
	t.Helper()
	definition := map[string]any{}
	if err := json.Unmarshal([]byte(taskConfig(t, name)["definition.json"]), &definition); err != nil {
		t.Fatal(err)
	}
	for stored, attribute := range map[string]string{"secrets_version": "secrets_wo_version"} {
		if value, is := definition[stored]; is {
			definition[attribute] = value
		}
	}
	queue := map[string]any{}
	for stored, attribute := range map[string]string{"queue": "name", "workload_priority_class": "workload_priority_class"} {
		if value, is := definition[stored]; is {
			queue[attribute] = value
		}
	}
	definition["queue"] = queue
	renameSeconds(definition, "tolerationSeconds", "toleration_seconds")
	return definition
}

func taskConfig(t *testing.T, name string) map[string]string {
	t.Helper()
	live, err := adminClient(t).CoreV1().ConfigMaps("default").Get(t.Context(), task.ConfigMapName(name), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live.Data
}

func definesText(t *testing.T, name, key string) bool {
	t.Helper()
	_, is := taskConfig(t, name)[key]
	return is
}

// expectImmutable checks that the API server refuses another value of a key of a task's ConfigMap.
func expectImmutable(t *testing.T, name, key string, value any, attribute string) {
	t.Helper()
	text, isText := value.(string)
	if !isText {
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		text = string(encoded)
	}
	if text == taskConfig(t, name)[key] {
		t.Errorf("%s: there is no other value", attribute)
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{key: text}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = adminClient(t).CoreV1().ConfigMaps("default").Patch(t.Context(), task.ConfigMapName(name), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: driftTester})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "immutable") {
		t.Errorf("%s: another manager can change the ConfigMap: %v", attribute, err)
	}
}

func expectTaskCorrected(t *testing.T, m *providertest.Managed, pristine tftypes.Value, group []string) {
	t.Helper()
	m.Refresh(t)
	planned := m.Plan(t)
	if !sameConfigured(pristine, planned.Value) || len(planned.Replaces) > 0 {
		t.Fatalf("%v: not planned in place: %v\n%s", group, planned.Replaces, differences(pristine, planned.Value))
	}
	var named []string
	for _, name := range namedIn(t, planned) {
		named = append(named, inSchema(name))
	}
	if diff := cmp.Diff(group, named); diff != "" {
		t.Error(diff)
	}
	if wrong := m.Apply(t, planned); len(wrong) > 0 {
		t.Errorf("%v: apply reports\n%s", group, texts(wrong))
	}
	expectEmptyPlan(t, strings.Join(group, ", "), m)
}
