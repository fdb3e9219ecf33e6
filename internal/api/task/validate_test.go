package task

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/accelerator"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*Task)
		want string // the beginning of the only problem
	}{
		"a name that no object may have":      {func(t *Task) { t.Name = "Low" }, "name is \"Low\""},
		"a name too long for its pods":        {func(t *Task) { t.Name = strings.Repeat("a", 51) }, "name has 51 characters"},
		"nothing to run":                      {func(t *Task) { t.Run = " \n" }, "run is empty"},
		"no node":                             {func(t *Task) { t.NumNodes = 0 }, "num_nodes is 0"},
		"a node that has none to rejoin":      {func(t *Task) { t.Rejoin = true }, "rejoin is true, and num_nodes is 1"},
		"a gang without its supervisor":       {func(t *Task) { t.NumNodes = 2 }, "supervisor_image is empty"},
		"a variable that the task sets":       {func(t *Task) { t.Envs = map[string]string{"SKYPILOT_NODE_RANK": "1"} }, "env sets SKYPILOT_NODE_RANK, which the task sets itself"},
		"a variable twice":                    {func(t *Task) { t.Envs = map[string]string{"A": "b"}; t.SecretValues = []string{"A"} }, "secrets_wo sets A, which env sets too"},
		"a secret without a key":              {func(t *Task) { t.Secrets = map[string]SecretKey{"A": {SecretName: "s"}} }, "secrets has A"},
		"a file outside of the workdir":       {func(t *Task) { t.Workdir = map[string]string{"../a": "b"} }, "workdir has the file \"../a\""},
		"a file that is a directory too":      {func(t *Task) { t.Workdir = map[string]string{"a": "b", "a/c": "d"} }, "workdir has \"a\" both as a file and as the directory"},
		"a file that is no text":              {func(t *Task) { t.Workdir = map[string]string{"a": "\xff"} }, "workdir has the file \"a\", which is no text"},
		"more than a ConfigMap holds":         {func(t *Task) { t.Workdir = map[string]string{"a": strings.Repeat("b", MaxConfigMapBytes)} }, "workdir and the scripts have"},
		"a volume where the task's files are": {func(t *Task) { t.Volumes = []Volume{{Name: "v", MountPath: "/elastic/x", PVC: "p"}} }, "volumes[0].mount_path is \"/elastic/x\""},
		"no amount":                           {func(t *Task) { t.CPUs = "-1" }, "cpus is \"-1\""},
		"alternatives of different counts": {
			func(t *Task) { t.Accelerators = append(t.Accelerators, accelerator.Request{Name: "L4", Count: 1}) }, "accelerators cannot be asked for: T4:4 needs 4",
		},
		"an exit code that is killed":        {func(t *Task) { t.Recovery.RecoverOnExitCodes = []int{137} }, "recovery.recover_on_exit_codes has 137"},
		"an exit code twice":                 {func(t *Task) { t.Recovery.RecoverOnExitCodes = []int{3, 3} }, "recovery.recover_on_exit_codes has 3 twice"},
		"a label that is the queue's":        {func(t *Task) { t.Labels = map[string]string{LabelQueue: "a"} }, "labels has \"kueue.x-k8s.io/queue-name\"; say it by queue"},
		"a deadline of no time":              {func(t *Task) { t.ActiveDeadlineSeconds = new(int64(0)) }, "active_deadline_seconds is 0; it must be at least 1"},
		"root that may not be root":          {func(t *Task) { t.SecurityContext = &SecurityContext{RunAsUser: new(int64(0)), RunAsNonRoot: new(true)} }, "security_context.run_as_user is 0"},
		"an init container with ours's name": {func(t *Task) { t.InitContainers = []InitContainer{{Name: ContainerName}} }, "init_containers[0].name is \"task\""},
		"an init container's volume of nobody": {func(t *Task) {
			t.InitContainers = []InitContainer{{Name: "a", VolumeMounts: []trainingjob.VolumeMount{{Name: "x", MountPath: "/x"}}}}
		}, "init_containers[0].volume_mounts[0].name is \"x\""},
		"a label of ours":             {func(t *Task) { t.Labels = map[string]string{LabelTask: "a"} }, "labels sets \"" + LabelTask + "\""},
		"a queue's name that is none": {func(t *Task) { t.Queue = "User" }, "queue.name is \"User\", which no LocalQueue can be called"},
		"a topology without a queue": {
			func(t *Task) { t.Queue, t.PriorityClass, t.Topology = "", "", &Topology{Required: "rack"} }, "topology is set, and queue.name is not",
		},
		"a slice larger than the task": {
			func(t *Task) { t.Topology = &Topology{SliceSize: 2, SliceRequired: "rack"} }, "topology.slice_size is 2, and num_nodes is 1",
		},
		"an annotation that topology sets": {func(t *Task) {
			t.Topology, t.Annotations = &Topology{Required: "rack"}, map[string]string{"kueue.x-k8s.io/podset-slice-size": "2"}
		}, "annotations sets \"kueue.x-k8s.io/podset-slice-size\""},
		"a patch that sets it": {func(t *Task) {
			t.Topology, t.PodOverrides = &Topology{Required: "rack"}, json.RawMessage(`{"metadata":{"annotations":{"kueue.x-k8s.io/podset-required-topology":"block"}}}`)
		}, "pod_overrides cannot be used: they set annotation"},
		"a class that no label can say": {func(t *Task) { t.PriorityClass = strings.Repeat("a", 64) }, "queue.workload_priority_class has 64 characters; a label of the Job names"},
		"a queue that no label can say": {func(t *Task) { t.Queue = "a b" }, "queue.name is \"a b\""},
		"a patch that changes the command": {func(t *Task) {
			t.PodOverrides = json.RawMessage(`{"spec":{"containers":[{"name":"task","command":["true"]}]}}`)
		}, "pod_overrides cannot be used: they remove container \"task\" or change its command"},
		"a patch that restarts": {func(t *Task) { t.PodOverrides = json.RawMessage(`{"spec":{"restartPolicy":"Always"}}`) }, "pod_overrides cannot be used: they set restartPolicy \"Always\""},
		"a patch of no pod":     {func(t *Task) { t.PodOverrides = json.RawMessage(`{"spec":{"foo":1}}`) }, "pod_overrides cannot be used: pod_overrides do not make a pod"},
	} {
		t.Run(name+" is refused by its attribute", func(t *testing.T) {
			task := low()
			c.edit(&task)
			got := task.Problems()
			if len(got) != 1 || !strings.HasPrefix(got[0].String(), c.want) {
				t.Errorf("got %v", got)
			}
		})
	}
	t.Run("what will not be as it was meant is a warning", func(t *testing.T) {
		task := low()
		task.Queue, task.Recovery.RecoverOnExitCodes = "", []int{ExitStopped}
		if got := task.Warnings(); len(got) != 2 || len(task.Problems()) != 0 {
			t.Errorf("got %v, %v", got, task.Problems())
		}
	})
}
