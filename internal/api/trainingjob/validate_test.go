package trainingjob

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func initContainer(c InitContainer) func(*Definition) {
	return func(d *Definition) { d.Workers.InitContainers = []InitContainer{c} }
}

// collectives makes the job one whose script has collectives of its own.
func collectives(d *Definition) {
	d.Job.Command, d.Job.Elastic, d.Job.Output = []string{"python3"}, ElasticCollectives, "/output"
	d.Job.Data = Data{Training: "indices://mine?records=9", Format: "recordio", Codec: "bytes", RecordsPerTask: 10}
	d.Job.Training.Aggregation, d.Job.Evaluation = "", nil
}

// restarts makes a job a command that is restarted.
func restarts(d *Definition) {
	d.ModelText, d.Job.Model, d.Job.Data, d.Job.Training, d.Job.Evaluation = "", Model{}, Data{}, Training{}, nil
	d.Job.Command, d.Job.Elastic = []string{"python3", "/app/train.py"}, ElasticRestart
}

func TestACommandThatIsRestartedHasOnlyWorkersAndWritesToItsVolumes(t *testing.T) {
	d := tutorial()
	restarts(&d)
	d.Workers.TerminationGracePeriodSeconds = new(int64(120))
	d.Volumes = []Volume{{Name: "data", MountPath: "/data", PVC: "data"}}
	if problems := d.Problems(); len(problems) > 0 {
		t.Fatal(problems)
	}
	master, err := d.MasterTemplate()
	if err != nil || len(master.Spec.Containers) != 1 {
		t.Fatalf("%d containers of the master, %v", len(master.Spec.Containers), err)
	}
	worker, err := d.WorkerTemplate()
	if err != nil {
		t.Fatal(err)
	}
	c := worker.Spec.Containers[0]
	if want := []string{"worker", "--elastic", "restart", "--stop-grace", "115s"}; !slices.Equal(c.Args, want) {
		t.Errorf("the worker's arguments are %q", c.Args)
	}
	for _, m := range c.VolumeMounts {
		if m.Name == "data" && m.ReadOnly {
			t.Error("the script cannot write its checkpoints")
		}
	}
	objects, err := Render(d, credentials())
	if err != nil {
		t.Fatal(err)
	}
	job, err := DecodeJob([]byte(objects.ConfigMap.Data[JobKey]))
	if err != nil || job.Model != (Model{}) {
		t.Errorf("the master reads %+v, %v", job, err)
	}
}

func TestAccelerators(t *testing.T) {
	for want, limits := range map[int]corev1.ResourceList{
		0: {"cpu": resource.MustParse("8"), "example.com/fpga": resource.MustParse("2")},
		8: {"cpu": resource.MustParse("8"), "nvidia.com/gpu": resource.MustParse("8")},
		2: {"amd.com/gpu": resource.MustParse("2")},
		3: {"nvidia.com/mig-1g.10gb": resource.MustParse("3")},
	} {
		if n := Accelerators(&corev1.ResourceRequirements{Limits: limits}); n != want {
			t.Errorf("%v has %d accelerators, not %d", limits, n, want)
		}
	}
}

func TestAJobWithCollectivesOfItsScriptNeedsNoFrameworkAtItsMasterAndAVolumeThatItsWorkersWrite(t *testing.T) {
	d := tutorial()
	collectives(&d)
	d.Volumes = []Volume{
		{Name: "data", MountPath: "/data", PVC: "data"}, {Name: "output", MountPath: "/output", PVC: "checkpoints", Mount: MountWorkers},
	}
	if problems := d.Problems(); len(problems) > 0 {
		t.Fatal(problems)
	}
	if warnings := d.Warnings(); len(warnings) > 0 {
		t.Errorf("%v", warnings)
	}
	master, err := d.MasterTemplate()
	if err != nil || len(master.Spec.Containers) != 1 {
		t.Errorf("the master's containers: %v, %v", master.Spec.Containers, err)
	}
	worker, err := d.WorkerTemplate()
	if err != nil {
		t.Fatal(err)
	}
	c := worker.Spec.Containers[0]
	if got := strings.Join(c.Args, " "); got != "worker --elastic collectives" {
		t.Errorf("a worker's arguments: %s", got)
	}
	for _, m := range c.VolumeMounts {
		if readOnly, known := map[string]bool{"data": true, "output": false}[m.Name]; known && m.ReadOnly != readOnly {
			t.Errorf("volume %s is mounted read-only: %t", m.Name, m.ReadOnly)
		}
	}
	d.Volumes[1].Mount = MountMaster
	if warnings := d.Warnings(); len(warnings) != 1 || !strings.Contains(warnings[0].Message, "the workers mount") {
		t.Errorf("an output that only the master mounts: %v", warnings)
	}
}

func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*Definition)
		field    string // of the only problem
		wantText string
	}{
		"a name with capitals":                    {func(d *Definition) { d.Job.Name = "Low" }, "name", "lower case"},
		"no name":                                 {func(d *Definition) { d.Job.Name = "" }, "name", "empty"},
		"a name of 51 characters":                 {func(d *Definition) { d.Job.Name = strings.Repeat("a", 51) }, "name", "at most 50"},
		"a name that begins with a digit":         {func(d *Definition) { d.Job.Name = "7-job" }, "name", "begin with a letter"},
		"no model":                                {func(d *Definition) { d.ModelText = "" }, "model", "neither"},
		"a model and a built-in one":              {func(d *Definition) { d.Job.Model.Name = "mnist" }, "model", "both"},
		"a built-in model that is not":            {func(d *Definition) { d.ModelText, d.Job.Model.Name = "", "minst" }, "model.name", "\"mnist\""},
		"a model larger than a ConfigMap":         {func(d *Definition) { d.ModelText = strings.Repeat("#", MaxModelConfigMapBytes+1) }, "model.content", "at most"},
		"no image":                                {func(d *Definition) { d.Image = "" }, "image", "empty"},
		"no workers":                              {func(d *Definition) { d.Min = 0 }, "workers.min", "at least 1"},
		"a maximum below the minimum":             {func(d *Definition) { d.Min = 3 }, "workers.max", "never reach its minimum"},
		"no gradients":                            {func(d *Definition) { d.Job.Training.GradsToWait = 0 }, "training.grads_to_wait", "at least 1"},
		"a learning rate of zero":                 {func(d *Definition) { d.Job.Training.LearningRate = new(0.0) }, "training.learning_rate", "positive"},
		"data that nobody reads yet":              {func(d *Definition) { d.Job.Data.Training = "hdfs://host/x" }, "data.training", "synthetic://"},
		"a store without a bucket":                {func(d *Definition) { d.Job.Data.Training = "gs:///x" }, "data.training", "gs://BUCKET/PREFIX"},
		"credentials in a URL":                    {func(d *Definition) { d.Job.Data.Validation = "s3://key:secret@bucket/x" }, "data.validation", "environment"},
		"data at a relative path":                 {func(d *Definition) { d.Job.Data.Validation = "mnist" }, "data.validation", "absolute"},
		"a synthetic data set that is none":       {func(d *Definition) { d.Job.Data.Training = "synthetic://digts?records=5" }, "data.training", "there are synthetic://digits?records=10000&seed=1, and the same of shapes"},
		"no records":                              {func(d *Definition) { d.Job.Data.Training = "synthetic://digits?records=0" }, "data.training", `records="0" is not a number from 1`},
		"a seed that is none":                     {func(d *Definition) { d.Job.Data.Validation = "synthetic://frappe?seed=-1" }, "data.validation", `seed="-1"`},
		"a parameter that is none":                {func(d *Definition) { d.Job.Data.Training = "synthetic://digits?record=5" }, "data.training", `parameter "record" is not known`},
		"a data set's URI that is none":           {func(d *Definition) { d.Job.Data.Training = "synthetic://digits?records=%zz" }, "data.training", "%zz"},
		"a script's data set without its records": {func(d *Definition) { d.Job.Command, d.Job.Data.Training = []string{"python3"}, "indices://mine" }, "data.training", "NAME?records=60000"},
		"indices without a script":                {func(d *Definition) { d.Job.Data.Training = "indices://mine?records=9" }, "data.training", "set workers.command"},
		"a command without a program":             {func(d *Definition) { d.Job.Command = []string{""} }, "workers.command", `["python3"]`},
		"a command for a built-in model": {func(d *Definition) {
			d.ModelText, d.Job.Model.Name, d.Job.Command = "", "mnist", []string{"python3"}
		}, "workers.command", "model.content"},
		"an elastic mode that is none": {func(d *Definition) {
			collectives(d)
			d.Job.Elastic = "sometimes"
		}, "workers.elastic", `"collectives"`},
		"data of a command that reads its own": {func(d *Definition) {
			restarts(d)
			d.Job.Data = tutorial().Job.Data
		}, "data", "reads its records itself"},
		"numbers of a command that has its own": {func(d *Definition) {
			restarts(d)
			d.Job.Training = tutorial().Job.Training
		}, "training", "its own numbers"},
		"a minimum that is no multiple": {func(d *Definition) {
			restarts(d)
			d.Job.Step = 3
		}, "workers.min", "multiple of workers.step = 3"},
		"processes of a script that passes its gradients on": {func(d *Definition) {
			d.Job.Command, d.Job.ProcessesPerWorker = []string{"python3"}, 2
		}, "workers.processes", "only a script with a process group of its own"},
		"too many processes": {func(d *Definition) {
			collectives(d)
			d.Job.ProcessesPerWorker = MaxProcesses + 1
		}, "workers.processes", "it must be at most"},
		"an interval of a script that is not restarted": {func(d *Definition) {
			collectives(d)
			d.Job.Restart = &Restart{IntervalSeconds: 90}
		}, "workers.restart_interval_seconds", "only a command that is restarted"},
		"a job without data":               {func(d *Definition) { d.Job.Data = Data{} }, "data", "is not set"},
		"a job without numbers":            {func(d *Definition) { d.Job.Training = Training{} }, "training", "is not set"},
		"an elastic mode without a script": {func(d *Definition) { d.Job.Elastic = ElasticCollectives }, "workers.elastic", "has no command"},
		"collectives on records that the trainer reads": {func(d *Definition) {
			collectives(d)
			d.Job.Data.Training = "synthetic://digits?records=10&seed=1"
		}, "data.training", "indices://NAME?records=N"},
		"collectives with validation data": {func(d *Definition) {
			collectives(d)
			d.Job.Data.Validation = "indices://mine?records=9"
		}, "data.validation", "remove it"},
		"collectives without an output": {func(d *Definition) {
			collectives(d)
			d.Job.Output, d.Job.Checkpoint = "", nil
		}, "output", "all workers mount"},
		"a volume with the name of a script's own": {func(d *Definition) { d.Volumes[1].Name = "elastic-scratch" }, "volumes[1].name", "another volume"},
		"a format that nobody reads yet":           {func(d *Definition) { d.Job.Data.Format = "parquet" }, "data.format", "recordio"},
		"columns of what is no CSV":                {func(d *Definition) { d.Job.Data.CSV = &CSV{Columns: map[string][]string{"label": {"y"}}} }, "data.csv", `set format = "csv"`},
		"a feature of no columns":                  {csvOf(CSV{Columns: map[string][]string{"label": {}}}), "data.csv.columns", `"label"`},
		"a column of no words":                     {csvOf(CSV{Words: map[string][]string{"species": {}}}), "data.csv.vocabularies", `"species"`},
		"an unknown codec":                         {func(d *Definition) { d.Job.Data.Codec = "json" }, "data.codec", "tf_example"},
		"an output that is no path":                {func(d *Definition) { d.Job.Output = "out" }, "output", "absolute"},
		"checkpoints every −1 steps":               {func(d *Definition) { d.Job.Checkpoint = &Checkpoint{Steps: -1} }, "checkpoint.interval_steps", "each epoch"},
		"fewer than no checkpoints":                {func(d *Definition) { d.Job.Checkpoint = &Checkpoint{KeepMax: new(-1)} }, "checkpoint.max_to_keep", "0 for all"},
		"checkpoints at a relative path":           {func(d *Definition) { d.Job.Checkpoint = &Checkpoint{Directory: "c"} }, "checkpoint.directory", "absolute"},
		"checkpoints without an output":            {func(d *Definition) { d.Job.Output, d.Job.Checkpoint = "", &Checkpoint{Directory: "/output/c"} }, "checkpoint.directory", "ConfigMap"},
		"an evaluation of nothing":                 {func(d *Definition) { d.Job.Data.Validation, d.Job.Evaluation = "", &Evaluation{Steps: 5} }, "evaluation", "data.validation"},
		"an evaluation without a number":           {func(d *Definition) { d.Job.Evaluation = &Evaluation{} }, "evaluation", "at the end"},
		"an evaluation every −1 epochs":            {func(d *Definition) { d.Job.Evaluation = &Evaluation{Epochs: -1} }, "evaluation.interval_epochs", "between two"},
		"an evaluation every −1 steps":             {func(d *Definition) { d.Job.Evaluation = &Evaluation{Steps: -1} }, "evaluation.interval_steps", "between two"},
		"a volume without a source":                {func(d *Definition) { d.Volumes[0].PVC = "" }, "volumes[0]", "0 sources"},
		"a volume with two sources":                {func(d *Definition) { d.Volumes[0].HostPath = "/x" }, "volumes[0]", "2 sources"},
		"two volumes of one name":                  {func(d *Definition) { d.Volumes[1].Name = "output" }, "volumes[1].name", "another volume"},
		"two volumes at one path":                  {func(d *Definition) { d.Volumes[1].MountPath = "/output" }, "volumes[1].mount_path", `volume "output"`},
		"a volume over the job's own files":        {func(d *Definition) { d.Volumes[1].MountPath = "/etc/elastic" }, "volumes[1].mount_path", "own files"},
		"a volume that climbs":                     {func(d *Definition) { d.Volumes[1].MountPath = "/data/../etc" }, "volumes[1].mount_path", ".."},
		"an unknown mount":                         {func(d *Definition) { d.Volumes[1].Mount = "some" }, "volumes[1].mount", "workers"},
		"a queue that Kueue gives to Jobs":         {func(d *Definition) { d.Queue = &Queue{Name: "default", MinPriorityClass: "mid"} }, "queue.name", "apart"},
		"a queue without a name":                   {func(d *Definition) { d.Queue = &Queue{MinPriorityClass: "mid"} }, "queue.name", "empty"},
		"a queue with an impossible name":          {func(d *Definition) { d.Queue = &Queue{Name: "Q"} }, "queue.name", "lower case"},
		"a class that no label can name":           {func(d *Definition) { d.Queue = &Queue{Name: "q", PriorityClass: strings.Repeat("a", 64)} }, "queue.workload_priority_class", "63"},
		"a topology that requests nothing":         {func(d *Definition) { racked(d, Topology{}) }, "topology", "requests nothing"},
		"two places":                               {func(d *Definition) { racked(d, Topology{Required: "a", Unconstrained: true}) }, "topology", "set one"},
		"a level that is no label":                 {func(d *Definition) { racked(d, Topology{Required: "a rack"}) }, "topology.required", "cloud.provider.com/topology-rack"},
		"another that is none":                     {func(d *Definition) { racked(d, Topology{Preferred: "/rack"}) }, "topology.preferred", "not the key"},
		"slices of any place":                      {func(d *Definition) { racked(d, Topology{Unconstrained: true, SliceSize: 1, SliceRequired: "rack"}) }, "topology.unconstrained", "leave it out"},
		"slices without a size":                    {func(d *Definition) { racked(d, Topology{SliceRequired: "rack"}) }, "topology.slice_required", "slice_size is not"},
		"slices without a level":                   {func(d *Definition) { racked(d, Topology{SliceSize: 2}) }, "topology.slice_size", "slice_required is not"},
		"slices of less than a pod":                {func(d *Definition) { racked(d, Topology{SliceSize: -1, SliceRequired: "rack"}) }, "topology.slice_size", "at least 1"},
		"a part of a slice":                        {func(d *Definition) { racked(d, Topology{SliceSize: 2, SliceRequired: "rack"}) }, "topology.slice_size", "workers.min a multiple"},
		"an annotation that topology sets": {func(d *Definition) {
			racked(d, Topology{Required: "rack"})
			d.Master.Annotations = map[string]string{"kueue.x-k8s.io/podset-preferred-topology": "block"}
		}, "master.annotations", "topology"},
		"overrides that set it": {func(d *Definition) {
			racked(d, Topology{Required: "rack"})
			d.Workers.PodOverrides = json.RawMessage(`{"metadata":{"annotations":{"kueue.x-k8s.io/podset-required-topology":"block"}}}`)
		}, "workers.pod_overrides", "topology"},
		"a queue's label on the Jobs":    {func(d *Definition) { d.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "q"} }, "labels", "attribute queue"},
		"a queue's label on the workers": {func(d *Definition) { d.Workers.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "q"} }, "workers.labels", "sets itself"},
		"overrides that queue the pod": {func(d *Definition) {
			d.Workers.PodOverrides = json.RawMessage(`{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"q"}}}`)
		}, "workers.pod_overrides", "attribute queue"},
		"a deadline of no time": {func(d *Definition) { d.ActiveDeadlineSeconds = new(int64(0)) }, "active_deadline_seconds", "at least 1"},
		"root, which every pod refuses": {func(d *Definition) {
			d.Workers.SecurityContext = &SecurityContext{RunAsUser: new(int64(0))}
		}, "workers.security_context.run_as_user", "run_as_non_root = false"},
		"a user that is none":  {func(d *Definition) { d.Master.SecurityContext = &SecurityContext{RunAsUser: new(int64(-1))} }, "master.security_context.run_as_user", "0 to 2147483647"},
		"a group that is none": {func(d *Definition) { d.Master.SecurityContext = &SecurityContext{SupplementalGroups: []int64{-1}} }, "master.security_context.supplemental_groups", "-1"},
		"a capability with its prefix": {func(d *Definition) {
			d.Workers.SecurityContext = &SecurityContext{Capabilities: &Capabilities{Add: []corev1.Capability{"CAP_IPC_LOCK"}}}
		}, "workers.security_context.capabilities.add", `without CAP_: "IPC_LOCK"`},
		"a capability in small letters": {func(d *Definition) {
			d.Workers.SecurityContext = &SecurityContext{Capabilities: &Capabilities{Drop: []corev1.Capability{"all"}}}
		}, "workers.security_context.capabilities.drop", "in capitals"},
		"a seccomp profile without its file": {func(d *Definition) {
			d.Workers.SecurityContext = &SecurityContext{SeccompProfile: &SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost}}
		}, "workers.security_context.seccomp_profile.localhost_profile", "is not set"},
		"a seccomp profile with a file too many": {func(d *Definition) {
			d.Workers.SecurityContext = &SecurityContext{SeccompProfile: &SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined, LocalhostProfile: "x"}}
		}, "workers.security_context.seccomp_profile.localhost_profile", "Localhost"},
		"an init container with the worker's name":  {initContainer(InitContainer{Name: RoleWorker}), "workers.init_containers[0].name", "another container"},
		"an init container with an impossible name": {initContainer(InitContainer{Name: "Fetch"}), "workers.init_containers[0].name", "lower case"},
		"two init containers of one name":           {func(d *Definition) { d.Workers.InitContainers = []InitContainer{{Name: "a"}, {Name: "a"}} }, "workers.init_containers[1].name", "another container"},
		"an init container's impossible variable":   {initContainer(InitContainer{Name: "a", Env: map[string]string{"a-b": ""}}), "workers.init_containers[0].env", `"a-b"`},
		"an init container's unknown volume": {
			initContainer(InitContainer{Name: "a", VolumeMounts: []VolumeMount{{Name: "none", MountPath: "/x"}}}),
			"workers.init_containers[0].volume_mounts[0].name", "add it to volumes",
		},
		"an init container's volume of the master alone": {
			initContainer(InitContainer{Name: "a", VolumeMounts: []VolumeMount{{Name: "output", MountPath: "/x"}}}),
			"workers.init_containers[0].volume_mounts[0].name", "output",
		},
		"an init container's relative mount": {
			initContainer(InitContainer{Name: "a", VolumeMounts: []VolumeMount{{Name: "data", MountPath: "x"}}}),
			"workers.init_containers[0].volume_mounts[0].mount_path", "absolute",
		},
		"an init container's mounts at one path": {
			initContainer(InitContainer{Name: "a", VolumeMounts: []VolumeMount{{Name: "data", MountPath: "/x"}, {Name: "data", MountPath: "/x/"}}}),
			"workers.init_containers[0].volume_mounts[1].mount_path", "another volume",
		},
		"an init container's path that climbs": {
			initContainer(InitContainer{Name: "a", VolumeMounts: []VolumeMount{{Name: "data", MountPath: "/x", SubPath: "a/../.."}}}),
			"workers.init_containers[0].volume_mounts[0].sub_path", "..",
		},
		"an init container's limit below its request": {initContainer(InitContainer{Name: "a", Resources: &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}, Limits: corev1.ResourceList{"cpu": resource.MustParse("1")},
		}}), "workers.init_containers[0].resources", "below its request"},
		"a variable that the job sets itself": {func(d *Definition) { d.Workers.Env = map[string]string{"MY_POD_IP": "1"} }, "workers.env", "sets MY_POD_IP"},
		"a label that the job sets itself":    {func(d *Definition) { d.Master.Labels = map[string]string{"app": "x"} }, "master.labels", `"app"`},
		"a negative grace period":             {func(d *Definition) { d.Master.TerminationGracePeriodSeconds = new(int64(-1)) }, "master.termination_grace_period_seconds", "negative"},
		"a limit below its request": {func(d *Definition) {
			d.Workers.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("2")
		}, "workers.resources", "cannot be below"},
		"overrides that are no patch":    {func(d *Definition) { d.Workers.PodOverrides = json.RawMessage(`[]`) }, "workers.pod_overrides", "apply pod_overrides"},
		"overrides of an unknown field":  {func(d *Definition) { d.Workers.PodOverrides = json.RawMessage(`{"spec":{"hostNet":true}}`) }, "workers.pod_overrides", "hostNet"},
		"overrides that restart the pod": {func(d *Definition) { d.Master.PodOverrides = json.RawMessage(`{"spec":{"restartPolicy":"Always"}}`) }, "master.pod_overrides", "only Never"},
		"overrides that hide the pod":    {func(d *Definition) { d.Master.PodOverrides = json.RawMessage(`{"metadata":{"labels":{"app":"x"}}}`) }, "master.pod_overrides", `"app"`},
		"overrides that make a worker the Job's": {func(d *Definition) {
			d.Workers.PodOverrides = json.RawMessage(`{"metadata":{"labels":{"job-name":"x"}}}`)
		}, "workers.pod_overrides", `"job-name"`},
		"overrides that take the container away": {func(d *Definition) {
			d.Workers.PodOverrides = json.RawMessage(`{"spec":{"containers":[{"$patch":"replace","name":"x"}]}}`)
		}, "workers.pod_overrides", "container"},
		"overrides that are not even JSON at all": {func(d *Definition) { d.Workers.PodOverrides = json.RawMessage(`{`) }, "workers.pod_overrides", "apply"},
	} {
		t.Run(name+" is one problem, of "+c.field, func(t *testing.T) {
			d := tutorial()
			d.Volumes = append([]Volume(nil), d.Volumes...)
			c.change(&d)
			problems := d.Problems()
			if len(problems) != 1 || problems[0].Field != c.field || !strings.Contains(problems[0].Message, c.wantText) {
				t.Errorf("got %q, want one of %s that says %q", problems, c.field, c.wantText)
			}
		})
	}
	t.Run("synthetic data need neither format nor codec", func(t *testing.T) {
		d := tutorial()
		d.Job.Data = Data{Training: "synthetic://digits?records=10000&seed=1", RecordsPerTask: 100}
		if problems := d.Problems(); len(problems) > 0 {
			t.Error(problems)
		}
	})
}

func TestWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Definition)
		field  string
	}{
		"tasks that no minibatch divides":             {func(d *Definition) { d.Job.Data.RecordsPerTask = 105 }, "data.records_per_task"},
		"more workers than gradients":                 {func(d *Definition) { d.Max = 3 }, "workers.max"},
		"output outside of every volume":              {func(d *Definition) { d.Job.Output = "/elsewhere" }, "output"},
		"checkpoints in no volume":                    {func(d *Definition) { d.Job.Checkpoint = &Checkpoint{Directory: "/elsewhere"} }, "checkpoint.directory"},
		"output in an empty_dir":                      {func(d *Definition) { d.Volumes[0].PVC, d.Volumes[0].EmptyDir = "", &EmptyDir{} }, "output"},
		"output in a volume that the master lacks":    {func(d *Definition) { d.Volumes[0].Mount = MountWorkers }, "output"},
		"output in a volume mounted read-only":        {func(d *Definition) { d.Volumes[0].ReadOnly = new(true) }, "output"},
		"output beside a volume with a similar path":  {func(d *Definition) { d.Job.Output = "/output2/x" }, "output"},
		"output in a ConfigMap, which nobody writes":  {func(d *Definition) { d.Volumes[0].PVC, d.Volumes[0].ConfigMap = "", "x" }, "output"},
		"nothing about the tutorial's job as written": {func(*Definition) {}, ""},
		"a minimum without a class of its own":        {func(d *Definition) { d.Queue = &Queue{Name: "q", PriorityClass: "low"} }, "queue.min_workload_priority_class"},
		"a minimum with the class of the other workers": {func(d *Definition) {
			d.Queue = &Queue{Name: "q", PriorityClass: "low", MinPriorityClass: "low"}
		}, "queue.min_workload_priority_class"},
		"an image of ElasticDL":                       {func(d *Definition) { d.Image = "gcr.io/project/elasticdl:dev@sha256:0123" }, "image"},
		"data in no volume":                           {func(d *Definition) { d.Job.Data.Training = "/mnist/train" }, "data.training"},
		"validation data in no volume":                {func(d *Definition) { d.Job.Data.Validation = "/data2/test" }, "data.validation"},
		"data that only the workers mount":            {func(d *Definition) { d.Volumes[1].Mount, d.Job.Data.Validation = MountWorkers, "" }, "data.training"},
		"nothing about data in an image of its own":   {func(d *Definition) { d.Image, d.Job.Data.Training = "example.com/mnist:1", "/mnist/train" }, ""},
		"nothing about data of an object store":       {func(d *Definition) { d.Job.Data.Training = "s3://bucket/mnist" }, ""},
		"nothing about a minimum with a higher class": {func(d *Definition) { d.Queue = &Queue{Name: "q", PriorityClass: "low", MinPriorityClass: "mid"} }, ""},
	} {
		t.Run("a warning about "+name, func(t *testing.T) {
			d := tutorial()
			d.Volumes = append([]Volume(nil), d.Volumes...)
			c.change(&d)
			warnings := d.Warnings()
			if c.field == "" {
				if len(warnings) != 0 {
					t.Error(warnings)
				}
				return
			}
			if len(warnings) != 1 || warnings[0].Field != c.field {
				t.Errorf("got %q, want one about %s", warnings, c.field)
			}
		})
	}
}

func TestValidDefinitionsRenderAndDecode(t *testing.T) {
	t.Run("what has no problems renders, and the trainer reads it", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			d := tutorial()
			d.Job.Name = rapid.StringMatching(`[a-z]([-a-z0-9]{0,53}[a-z0-9])?`).Draw(t, "name")
			d.Min, d.Max = rapid.IntRange(-1, 4).Draw(t, "min"), rapid.IntRange(-1, 4).Draw(t, "max")
			d.Job.Training.GradsToWait = rapid.IntRange(0, 3).Draw(t, "grads_to_wait")
			if rapid.Bool().Draw(t, "queued") {
				d.Queue = &Queue{Name: rapid.SampledFrom([]string{"", "default", "user-queue"}).Draw(t, "queue")}
			}
			d.Workers.TerminationGracePeriodSeconds = new(rapid.Int64Range(-1, 60).Draw(t, "grace"))
			if len(d.Problems()) > 0 {
				return
			}
			o, err := Render(d, credentials())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := DecodeJob([]byte(o.ConfigMap.Data[JobKey])); err != nil {
				t.Fatal(err)
			}
			if _, err := DecodeWorkers([]byte(o.ConfigMap.Data[WorkersKey])); err != nil {
				t.Fatal(err)
			}
			if s, err := DecodeStatus(o.Status); err != nil || s.Phase != PhasePending {
				t.Fatal(s, err)
			}
		})
	})
}

func TestDecode(t *testing.T) {
	t.Run("a field of job.json that this version does not know is refused by name", func(t *testing.T) {
		_, err := DecodeJob([]byte(`{"name":"a","dropout":1}`))
		if err == nil || !strings.Contains(err.Error(), "dropout") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("all problems of job.json are said at once", func(t *testing.T) {
		_, err := DecodeJob([]byte(`{"name":"a","model":{"name":"mnist"},"data":{"training":"/x","format":"idx","codec":"bytes"},"training":{"seed":1}}`))
		for _, field := range []string{"records_per_task", "epochs", "minibatch_size", "grads_to_wait"} {
			if err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("%s is missing in %v", field, err)
			}
		}
	})
	t.Run("a status of a newer master is read as far as it is known", func(t *testing.T) {
		s, err := DecodeStatus(&corev1.ConfigMap{Data: map[string]string{StatusKey: `{"phase":"Running","steps_done":3,"new":1}`}})
		if err != nil || s.Phase != PhaseRunning || s.StepsDone != 3 {
			t.Errorf("got %+v, %v", s, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"name":"a","namespace":"b","model":{"file":"/m"},"data":{"training":"synthetic://digits","format":"","codec":"","records_per_task":1},"training":{"epochs":1,"minibatch_size":1,"grads_to_wait":1,"seed":1}}`))
	f.Add([]byte(`{"min":1,"max":2,"template":{"spec":{"containers":[{"name":"worker"}],"restartPolicy":"Never"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if job, err := DecodeJob(text); err == nil && len(job.Problems()) > 0 {
			t.Errorf("accepted with problems: %v", job.Problems())
		}
		if w, err := DecodeWorkers(text); err == nil {
			WorkerPod(w, JobRef{Name: "a"}, 1, true, "a:1")
		}
		_, _ = DecodeStatus(&corev1.ConfigMap{Data: map[string]string{StatusKey: string(text)}})
		_, _ = ParseDefinition(&corev1.ConfigMap{Data: map[string]string{
			JobKey: string(text), WorkersKey: string(text), ModelKey: "", DefinitionKey: string(text),
		}})
	})
}

func csvOf(c CSV) func(*Definition) {
	return func(d *Definition) { d.Job.Data.Format, d.Job.Data.CSV = "csv", &c }
}
