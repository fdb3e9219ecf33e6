package provider

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/accelerator"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

func drawTask(t *rapid.T) task.Task {
	oneOf := func(name string, values ...string) string { return rapid.SampledFrom(values).Draw(t, name) }
	table := map[string]accelerator.Definition{"X1": {Resource: "example.com/x", Labels: map[string][]string{"example.com/kind": {"x1", "x1b"}}, Topologies: map[int]string{4: "2x2"}}}
	d := task.Task{
		Name: "low", Namespace: "default", Run: oneOf("run", "echo\n", "sleep 1"), Setup: oneOf("setup", "", "echo setup"),
		NumNodes: rapid.IntRange(1, 3).Draw(t, "num_nodes"), Image: oneOf("image", "debian", "python:3"), TrainerImage: "trainer",
		ImagePullPolicy: corev1.PullPolicy(oneOf("pull", "", "Always")),
		Envs:            drawTexts(t, "env"), Queue: oneOf("queue", "", "user-queue"), PriorityClass: oneOf("class", "", "low-priority"),
		CPUs: oneOf("cpus", "", "4", "4+"), Memory: oneOf("memory", "", "32", "512Mi"), PriorityClassName: oneOf("pod class", "", "high"),
		NodeSelector: drawTexts(t, "node_selector"), ServiceAccountName: oneOf("account", "", "runner"), RuntimeClassName: oneOf("runtime", "", "gvisor"),
	}
	if d.Queue != "" {
		d.Topology = drawTopology(t)
	}
	if d.NumNodes > 1 {
		d.Rejoin = rapid.Bool().Draw(t, "rejoin")
	}
	if rapid.Bool().Draw(t, "has workdir") {
		d.Workdir = map[string]string{"a/b.py": "pass\n", "c": ""}
	}
	if rapid.Bool().Draw(t, "has secrets") {
		d.Secrets = map[string]task.SecretKey{"TOKEN": {SecretName: "tokens", Key: "hub"}}
	}
	if rapid.Bool().Draw(t, "has secret values") {
		d.SecretsVersion = new(rapid.Int64Range(0, 9).Draw(t, "version"))
	}
	if rapid.Bool().Draw(t, "has table") {
		d.AcceleratorLabels = table
	}
	switch rapid.IntRange(0, 3).Draw(t, "accelerators") {
	case 0:
		d.Accelerators = []accelerator.Request{{Name: "T4", Count: 4}}
	case 1:
		d.Accelerators, d.Ordered = []accelerator.Request{{Name: "T4", Count: 4}, {Name: "L4", Count: 4}}, rapid.Bool().Draw(t, "ordered")
	}
	if rapid.Bool().Draw(t, "recovers") {
		d.Recovery = task.Recovery{MaxRestartsOnErrors: rapid.IntRange(0, 3).Draw(t, "restarts"), RecoverOnExitCodes: rapid.SampledFrom([][]int{nil, {33}, {1, 2}}).Draw(t, "codes")}
	}
	for _, v := range drawVolumes(t) {
		v.Mount = ""
		d.Volumes = append(d.Volumes, v)
	}
	if rapid.Bool().Draw(t, "tolerates") {
		d.Tolerations = []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}
	}
	if rapid.Bool().Draw(t, "has grace") {
		d.TerminationGracePeriodSeconds = new(rapid.Int64Range(0, 60).Draw(t, "grace"))
	}
	if rapid.Bool().Draw(t, "has ttl") {
		d.TTLSecondsAfterFinished = new(rapid.Int32Range(0, 60).Draw(t, "ttl"))
	}
	if rapid.Bool().Draw(t, "has a deadline") {
		d.ActiveDeadlineSeconds = new(rapid.Int64Range(1, 9).Draw(t, "active_deadline_seconds"))
	}
	d.SecurityContext, d.InitContainers = drawSecurityContext(t, "pod"), drawInitContainers(t, "pod")
	if rapid.Bool().Draw(t, "has overrides") {
		d.PodOverrides = json.RawMessage(`{"spec":{"dnsPolicy":"Default"}}`)
	}
	return d
}

func render(t rapid.TB, d task.Task) *task.Objects {
	objects, err := task.Render(d, task.Given{})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// ofCluster is the input of Read for a task.
func ofCluster(t rapid.TB, d task.Task) task.Task {
	objects := render(t, d)
	live, err := task.Of(objects.ConfigMap, objects.Job)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// importedTask is the state of Read after an import: names only.
func importedTask(t rapid.TB) *taskModel {
	ctx := context.Background()
	schema := taskSchema(ctx)
	state := tfsdk.State{Schema: schema, Raw: tftypes.NewValue(schema.Type().TerraformType(ctx), nil)}
	diags := state.SetAttribute(ctx, path.Root("name"), "low")
	diags.Append(state.SetAttribute(ctx, path.Root("namespace"), "default")...)
	var model taskModel
	diags.Append(model.load(ctx, state.Raw)...)
	if diags.HasError() {
		t.Fatal(diags)
	}
	return &model
}

// inState is the model as the state has it.
func inState(t rapid.TB, model *taskModel) (raw tftypes.Value) {
	if diags := model.store(context.Background(), &raw); diags.HasError() {
		t.Fatal(diags)
	}
	return raw
}

// another is a copy of a model.
func another(model *taskModel) *taskModel {
	other := *model
	other.defined = maps.Clone(model.defined)
	return &other
}

func TestTaskModelAndTask(t *testing.T) {
	ctx := context.Background()
	t.Run("an imported task plans no change", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			d := drawTask(t)
			model := importedTask(t)
			if diags := model.readTask(ctx, ofCluster(t, d), true); diags.HasError() {
				t.Fatal(diags)
			}
			a, diags := model.spec(ctx)
			if diags.HasError() {
				t.Fatal(diags)
			}
			a.TrainerImage = d.TrainerImage // is read only where the configuration names it
			if !equality.Semantic.DeepEqual(d, a.Task) {
				t.Fatal(cmp.Diff(d, a.Task))
			}
		})
	})
	t.Run("reading what is as it was leaves the state as it was", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			live := ofCluster(t, drawTask(t))
			model := importedTask(t)
			if diags := model.readTask(ctx, live, true); diags.HasError() {
				t.Fatal(diags)
			}
			again := another(model)
			if diags := again.readTask(ctx, live, false); diags.HasError() {
				t.Fatal(diags)
			}
			if before, after := inState(t, model), inState(t, again); !before.Equal(after) {
				t.Fatalf("the state was %s and is %s", before, after)
			}
		})
	})
	t.Run("what an update does not write replaces the task", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			before, after := drawTask(t), drawTask(t)
			after.Queue = before.Queue // whose rules are Kueue's
			after.PriorityClass = before.PriorityClass
			if slices.ContainsFunc(taskReplacements(), func(r replacement[task.Task]) bool { return !equality.Semantic.DeepEqual(r.of(before), r.of(after)) }) {
				return
			}
			was, is := render(t, before).Job.Spec, render(t, after).Job.Spec
			was.BackoffLimit, was.TTLSecondsAfterFinished = is.BackoffLimit, is.TTLSecondsAfterFinished
			if !equality.Semantic.DeepEqual(was, is) {
				t.Fatal(cmp.Diff(was, is))
			}
		})
	})
}

func TestAttributesAndTheFileTogether(t *testing.T) {
	ctx := t.Context()
	model := importedTask(t)
	model.defined["yaml"] = types.StringValue("num_nodes: 2\nrun: echo\nenvs: {A: b}\nresources:\n  accelerators: T4:4\n  labels: {team: vision, kueue.x-k8s.io/queue-name: user-queue}\n")
	model.defined["image"] = types.StringValue("debian")
	model.defined["env"] = types.MapValueMust(types.StringType, map[string]attr.Value{"C": types.StringValue("d")})
	model.defined["queue"] = objectValue(map[string]attr.Value{"name": types.StringNull(), "workload_priority_class": types.StringValue("low-priority")})
	a, diags := model.spec(ctx)
	if diags.HasError() || len(a.contradicted) > 0 {
		t.Fatal(diags, a.contradicted)
	}
	if a.NumNodes != 2 || a.Run != "echo" || a.Image != "debian" || a.Envs["A"] != "b" || a.Envs["C"] != "d" || a.Queue != "user-queue" || a.PriorityClass != "low-priority" ||
		a.Labels["team"] != "vision" || len(a.Accelerators) != 1 || a.Name != "low" {
		t.Fatalf("%+v", a.Task)
	}
	if a.file.Envs["C"] != "" {
		t.Fatal("the attributes have changed the file")
	}
	objects := render(t, a.complete("0.1.0"))
	live, err := task.Of(objects.ConfigMap, objects.Job)
	if err != nil {
		t.Fatal(err)
	}
	again := another(model)
	if diags := again.readTask(ctx, live, false); diags.HasError() {
		t.Fatal(diags)
	}
	for _, name := range []string{"run", "accelerators", "num_nodes", "queue", "env"} {
		if !again.defined[name].Equal(model.defined[name]) {
			t.Fatalf("a value of the file came into attribute %s: %s", name, again.defined[name])
		}
	}
	// A change by another client shows in the attribute.
	live.Queue = "another"
	if again.readTask(ctx, live, false); !again.queue().Attributes()["name"].Equal(types.StringValue("another")) {
		t.Fatalf("another's queue is not seen: %s", again.queue())
	}
	model.defined["run"], model.defined["num_nodes"] = types.StringValue("echo"), types.Int64Value(3)
	model.defined["env"] = types.MapValueMust(types.StringType, map[string]attr.Value{"A": types.StringValue("b")})
	a, _ = model.spec(ctx)
	var overlapping []string
	for _, at := range a.contradicted {
		overlapping = append(overlapping, at.String())
	}
	if want := []string{`env["A"]`, "num_nodes", "run"}; !slices.Equal(overlapping, want) {
		t.Fatalf("attributes that the file sets too are %v, want %v", overlapping, want)
	}
}

// A plan has the defaults of the attributes that the configuration omits.
func TestTheVolumesAndThePodOfAFileAreThoseOfTheTask(t *testing.T) {
	model := importedTask(t)
	model.defined["yaml"] = types.StringValue("run: echo\nvolumes: {/data: records}\nconfig: {kubernetes: {pod_config: {spec: {dnsPolicy: Default}}}}\n")
	for _, name := range []string{"volumes", "pod_overrides"} {
		attribute := taskSchema(t.Context()).Attributes[name]
		model.defined[name] = (&flattener{ctx: t.Context()}).value(attribute, nil)
	}
	a, diags := model.spec(t.Context())
	if diags.HasError() || len(a.contradicted) > 0 || len(a.Volumes) != 1 || !strings.Contains(string(a.PodOverrides), "dnsPolicy") {
		t.Fatalf("%v %v: volumes %v, pod %s", diags, a.contradicted, a.Volumes, a.PodOverrides)
	}
}

func TestAcceleratorsInAnyShape(t *testing.T) {
	text := func(s string) attr.Value { return types.StringValue(s) }
	tuple := func(values ...attr.Value) types.Dynamic {
		kinds := make([]attr.Type, len(values))
		for i, v := range values {
			kinds[i] = v.Type(context.Background())
		}
		return types.DynamicValue(types.TupleValueMust(kinds, values))
	}
	for name, c := range map[string]struct {
		value   types.Dynamic
		want    []accelerator.Request
		ordered bool
		refused string
	}{
		"one text":                   {types.DynamicValue(text("T4:4")), []accelerator.Request{{Name: "T4", Count: 4}}, false, ""},
		"one without a number":       {types.DynamicValue(text("H100")), []accelerator.Request{{Name: "H100", Count: 1}}, false, ""},
		"a list in brackets":         {tuple(text("H100:8"), text("A100:8")), []accelerator.Request{{Name: "H100", Count: 8}, {Name: "A100", Count: 8}}, true, ""},
		"a list of one":              {tuple(text("T4:4")), []accelerator.Request{{Name: "T4", Count: 4}}, false, ""},
		"a list from a variable":     {types.DynamicValue(types.ListValueMust(types.StringType, []attr.Value{text("L4:1"), text("T4:1")})), []accelerator.Request{{Name: "L4", Count: 1}, {Name: "T4", Count: 1}}, true, ""},
		"a set":                      {types.DynamicValue(types.SetValueMust(types.StringType, []attr.Value{text("L4:1"), text("T4:1")})), []accelerator.Request{{Name: "L4", Count: 1}, {Name: "T4", Count: 1}}, false, ""},
		"an element not known yet":   {tuple(text("T4:4"), types.StringUnknown()), []accelerator.Request{{Name: "T4", Count: 4}}, false, ""},
		"a number":                   {types.DynamicValue(types.Int64Value(4)), nil, false, "neither text nor a list"},
		"an element that is no text": {tuple(types.Int64Value(4)), nil, false, "An element is no text"},
		"an empty list":              {tuple(), nil, false, "There is no accelerator in it"},
		"a part of one":              {types.DynamicValue(text("T4:0.5")), nil, false, "not a whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &expander{ctx: t.Context()}
			got, ordered := r.accelerators(c.value)
			if !slices.Equal(got, c.want) || ordered != c.ordered {
				t.Errorf("got %v, ordered %t", got, ordered)
			}
			if r.diags.HasError() != (c.refused != "") || c.refused != "" && !strings.Contains(r.diags[0].Detail(), c.refused) {
				t.Errorf("got %v", r.diags)
			}
			if c.refused == "" && !slices.ContainsFunc(got, func(accelerator.Request) bool { return name == "an element not known yet" }) {
				again, wasOrdered := r.accelerators(acceleratorsValue(got, ordered))
				if !cmp.Equal(again, got, cmpopts.SortSlices(func(a, b accelerator.Request) bool { return a.Name < b.Name })) || wasOrdered != ordered {
					t.Errorf("written and read again: %v, ordered %t", again, wasOrdered)
				}
			}
		})
	}
}

func TestTheProgressOfATask(t *testing.T) {
	suspended := func(labels map[string]string) *batchv1.Job {
		j := &batchv1.Job{}
		j.Labels, j.Spec.Suspend, j.Spec.Parallelism = labels, new(true), new(int32(2))
		return j
	}
	running := func(ready, succeeded, failed int32) *batchv1.Job {
		j := suspended(nil)
		j.Spec.Suspend = new(false)
		j.Status = batchv1.JobStatus{Ready: &ready, Succeeded: succeeded, Failed: failed}
		return j
	}
	ended := func(j *batchv1.Job, kind batchv1.JobConditionType, reason, message string) *batchv1.Job {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message})
		return j
	}
	queued := map[string]string{controllerconstants.QueueLabel: "user-queue"}
	waiting := workload("job-low-12345", isNot(kueue.WorkloadQuotaReserved, "Pending", "insufficient unused quota"))
	waiting.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: "Preempted", Count: 2}, {Reason: "ClusterQueueStopped", Count: 1}}}
	deactivated := workload("job-low-12345")
	deactivated.Spec.Active = new(false)
	for name, c := range map[string]struct {
		job      *batchv1.Job
		workload *kueue.Workload
		want     taskProgress
	}{
		"it waits for quota":                 {suspended(queued), waiting, taskProgress{phase: taskQueued, reason: "Pending: insufficient unused quota.", workload: "job-low-12345", preemptions: 2}},
		"it waits for a workload":            {suspended(queued), nil, taskProgress{phase: taskQueued, reason: "Kueue has made no Workload of it."}},
		"no controller starts it":            {suspended(nil), nil, taskProgress{phase: taskSuspended, reason: "The Job is suspended, and in no queue: nothing starts it until it is resumed."}},
		"its workload is deactivated":        {suspended(queued), deactivated, taskProgress{phase: taskSuspended, reason: "Deactivated: Somebody set spec.active to false; it is queued again when that is true.", workload: "job-low-12345"}},
		"one of two pods exists":             {running(1, 0, 0), nil, taskProgress{phase: taskStarting}},
		"all pods are there":                 {running(2, 0, 1), nil, taskProgress{phase: taskRunning, restarts: 1}},
		"one has ended, the other continues": {running(1, 1, 0), nil, taskProgress{phase: taskRunning}},
		"it has succeeded":                   {ended(running(0, 2, 1), batchv1.JobComplete, "CompletionsReached", "x"), nil, taskProgress{phase: taskSucceeded, restarts: 1}},
		"it is about to have succeeded":      {ended(running(1, 2, 0), batchv1.JobSuccessCriteriaMet, "", ""), nil, taskProgress{phase: taskSucceeded}},
		"it has failed":                      {ended(running(0, 0, 2), batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit"), nil, taskProgress{phase: taskFailed, reason: "BackoffLimitExceeded: Job has reached the specified backoff limit.", restarts: 1}},
		"it is about to have failed":         {ended(running(1, 0, 1), batchv1.JobFailureTarget, "BackoffLimitExceeded", ""), nil, taskProgress{phase: taskFailed, reason: "BackoffLimitExceeded."}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := progressOf(c.job, c.workload); got != c.want {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
	t.Run("the content of a workload stays known after the end", func(t *testing.T) {
		m := taskObservedModel{}
		m.observe(taskProgress{phase: taskRunning, workload: "job-low-12345", preemptions: 2})
		m.observe(taskProgress{phase: taskSucceeded})
		if m.Workload.ValueString() != "job-low-12345" || m.Preemptions.ValueInt64() != 2 {
			t.Errorf("got %s, %s", m.Workload, m.Preemptions)
		}
	})
	for goal, reached := range map[string][]string{
		waitForAdmitted: {taskStarting, taskRunning, taskSucceeded, taskFailed}, waitForRunning: {taskRunning, taskSucceeded, taskFailed}, waitForSucceeded: {taskSucceeded, taskFailed},
	} {
		for _, phase := range []string{taskQueued, taskSuspended, taskStarting, taskRunning, taskSucceeded, taskFailed} {
			if reachedGoal(phase, goal) != slices.Contains(reached, phase) {
				t.Errorf("waiting for %s: %s ends it: %t", goal, phase, reachedGoal(phase, goal))
			}
		}
	}
}

func TestADefaultQueueIsNoChange(t *testing.T) {
	for _, c := range []struct{ configured, live, want string }{
		{"", trainingjob.DefaultQueue, ""}, {"", "other", "other"}, {"user-queue", trainingjob.DefaultQueue, trainingjob.DefaultQueue}, {"user-queue", "", ""},
	} {
		if got := queueSeen(c.configured, c.live); got != c.want {
			t.Errorf("configured %q, found %q: seen %q, want %q", c.configured, c.live, got, c.want)
		}
	}
}
