package provider

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

func drawTexts(t *rapid.T, name string) map[string]string {
	return rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}`), rapid.StringMatching(`[a-z]{0,3}`), 0, 2).Draw(t, name)
}

func drawAmounts(t *rapid.T, name string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"cpu", "memory", "nvidia.com/gpu"}), 0, 3, rapid.ID).Draw(t, name) {
		list[corev1.ResourceName(key)] = resource.MustParse(rapid.SampledFrom([]string{"1", "1000m", "1024Mi", "1Gi", "0.5", "1e3", "0"}).Draw(t, name+"."+key))
	}
	return list
}

func drawPod(t *rapid.T, name string) trainingjob.PodSettings {
	s := trainingjob.PodSettings{
		PriorityClassName: rapid.SampledFrom([]string{"", "high", "low"}).Draw(t, name+".class"),
		NodeSelector:      drawTexts(t, name+".node_selector"), Env: drawTexts(t, name+".env"),
		Labels: drawTexts(t, name+".labels"), Annotations: drawTexts(t, name+".annotations"),
		RuntimeClassName: rapid.SampledFrom([]string{"", "gvisor"}).Draw(t, name+".runtime"),
	}
	if rapid.Bool().Draw(t, name+".grace") {
		s.TerminationGracePeriodSeconds = new(rapid.Int64Range(0, 60).Draw(t, name+".seconds"))
	}
	if rapid.Bool().Draw(t, name+".has resources") {
		s.Resources = &corev1.ResourceRequirements{Requests: drawAmounts(t, name+".requests"), Limits: drawAmounts(t, name+".limits")}
	}
	for range rapid.IntRange(0, 2).Draw(t, name+".tolerations") {
		s.Tolerations = append(s.Tolerations, corev1.Toleration{
			Key: rapid.SampledFrom([]string{"", "spot"}).Draw(t, "key"), Operator: corev1.TolerationOpExists,
			Effect: rapid.SampledFrom([]corev1.TaintEffect{"", corev1.TaintEffectNoExecute}).Draw(t, "effect"),
		})
	}
	if rapid.Bool().Draw(t, name+".has overrides") {
		s.PodOverrides = json.RawMessage(`{"spec":{"dnsPolicy":"Default","hostNetwork":true}}`)
	}
	s.SecurityContext, s.InitContainers = drawSecurityContext(t, name), drawInitContainers(t, name)
	if rapid.Bool().Draw(t, name+".has affinity") {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname"}},
		}}
	}
	return s
}

func drawSecurityContext(t *rapid.T, name string) *trainingjob.SecurityContext {
	s := trainingjob.SecurityContext{}
	for field, of := range map[string]**int64{"user": &s.RunAsUser, "group": &s.RunAsGroup, "fs_group": &s.FSGroup} {
		if rapid.Bool().Draw(t, name+".has "+field) {
			*of = new(rapid.Int64Range(1, 3).Draw(t, name+"."+field))
		}
	}
	for field, of := range map[string]**bool{"non root": &s.RunAsNonRoot, "read-only": &s.ReadOnlyRootFilesystem, "escalation": &s.AllowPrivilegeEscalation} {
		if rapid.Bool().Draw(t, name+".has "+field) {
			*of = new(rapid.Bool().Draw(t, name+"."+field))
		}
	}
	s.SupplementalGroups = rapid.SampledFrom([][]int64{nil, {7}, {7, 8}}).Draw(t, name+".groups")
	if kind := rapid.SampledFrom([]corev1.SeccompProfileType{"", corev1.SeccompProfileTypeUnconfined, corev1.SeccompProfileTypeLocalhost}).Draw(t, name+".seccomp"); kind != "" {
		s.SeccompProfile = &trainingjob.SeccompProfile{Type: kind}
		if kind == corev1.SeccompProfileTypeLocalhost {
			s.SeccompProfile.LocalhostProfile = "profiles/train.json"
		}
	}
	add := rapid.SampledFrom([][]corev1.Capability{nil, {"IPC_LOCK"}, {"IPC_LOCK", "SYS_NICE"}}).Draw(t, name+".add")
	drop := rapid.SampledFrom([][]corev1.Capability{nil, {"ALL"}}).Draw(t, name+".drop")
	if len(add)+len(drop) > 0 {
		s.Capabilities = &trainingjob.Capabilities{Add: add, Drop: drop}
	}
	if reflect.ValueOf(s).IsZero() {
		return nil
	}
	return &s
}

func drawInitContainers(t *rapid.T, name string) []trainingjob.InitContainer {
	var containers []trainingjob.InitContainer
	for i := range rapid.IntRange(0, 2).Draw(t, name+".init_containers") {
		c := trainingjob.InitContainer{
			Name: string(rune('a' + i)), Image: rapid.SampledFrom([]string{"", "fetcher"}).Draw(t, "image"), Env: drawTexts(t, "env"),
			Command: rapid.SampledFrom([][]string{nil, {"sh", "-c"}}).Draw(t, "command"), Args: rapid.SampledFrom([][]string{nil, {"true"}}).Draw(t, "args"),
		}
		if rapid.Bool().Draw(t, "mounts") {
			c.VolumeMounts = []trainingjob.VolumeMount{{
				Name: "a", MountPath: "/a", SubPath: rapid.SampledFrom([]string{"", "sub"}).Draw(t, "sub_path"), ReadOnly: rapid.Bool().Draw(t, "read_only"),
			}}
		}
		if rapid.Bool().Draw(t, "has resources") {
			c.Resources = &corev1.ResourceRequirements{Requests: drawAmounts(t, "requests"), Limits: drawAmounts(t, "limits")}
		}
		containers = append(containers, c)
	}
	return containers
}

func drawVolumes(t *rapid.T) []trainingjob.Volume {
	var volumes []trainingjob.Volume
	for i := range rapid.IntRange(0, 3).Draw(t, "volumes") {
		v := trainingjob.Volume{
			Name: string(rune('a' + i)), MountPath: "/" + string(rune('a'+i)),
			Mount: rapid.SampledFrom([]string{trainingjob.MountAll, trainingjob.MountMaster, trainingjob.MountWorkers}).Draw(t, "mount"),
		}
		switch rapid.IntRange(0, 3).Draw(t, "source") {
		case 0:
			v.PVC = "claim"
		case 1:
			v.HostPath = "/host"
		case 2:
			v.ConfigMap = "map"
		default:
			v.EmptyDir = &trainingjob.EmptyDir{}
			if rapid.Bool().Draw(t, "limited") {
				v.EmptyDir.SizeLimit = new(resource.MustParse("64Mi"))
				v.EmptyDir.Medium = corev1.StorageMediumMemory
			}
		}
		if rapid.Bool().Draw(t, "says read_only") {
			v.ReadOnly = new(rapid.Bool().Draw(t, "read_only"))
		}
		volumes = append(volumes, v)
	}
	return volumes
}

func drawDefinition(t *rapid.T) trainingjob.Definition {
	d := trainingjob.Definition{
		Job: trainingjob.Job{
			Name: "job", Namespace: "default",
			Data: trainingjob.Data{
				Training: "/train", Validation: rapid.SampledFrom([]string{"", "/test"}).Draw(t, "validation"), Format: "idx",
				Codec: rapid.SampledFrom(dataset.Codecs()).Draw(t, "codec"), RecordsPerTask: rapid.IntRange(1, 9).Draw(t, "records_per_task"),
			},
			Training: trainingjob.Training{
				Epochs: rapid.IntRange(1, 9).Draw(t, "epochs"), MinibatchSize: rapid.IntRange(1, 9).Draw(t, "minibatch_size"),
				GradsToWait: rapid.IntRange(1, 9).Draw(t, "grads_to_wait"), Seed: uint64(rapid.IntRange(0, 9).Draw(t, "seed")),
			},
			Output: rapid.SampledFrom([]string{"", "/output"}).Draw(t, "output"),
		},
		ModelText: "x = 1\n", Min: rapid.IntRange(1, 3).Draw(t, "min"), Max: rapid.IntRange(3, 9).Draw(t, "max"),
		MinPriorityClassName: rapid.SampledFrom([]string{"", "high"}).Draw(t, "minimum"),
		Settings: trainingjob.Settings{
			Image: "image", ImagePullPolicy: rapid.SampledFrom([]corev1.PullPolicy{"", corev1.PullAlways}).Draw(t, "pull"),
			ServiceAccountName: rapid.SampledFrom([]string{"", "trainer"}).Draw(t, "account"),
			ImagePullSecrets:   rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(t, "secrets"),
			Volumes:            drawVolumes(t), Master: drawPod(t, "master"), Workers: drawPod(t, "workers"),
		},
	}
	if rapid.Bool().Draw(t, "has a deadline") {
		d.ActiveDeadlineSeconds = new(rapid.Int64Range(1, 9).Draw(t, "active_deadline_seconds"))
	}
	if rapid.Bool().Draw(t, "is CSV") {
		d.Job.Data.Format, d.Job.Data.CSV = "csv", &trainingjob.CSV{Columns: map[string][]string{"label": {"species"}, "x": {"length", "width"}}}
		if rapid.Bool().Draw(t, "has words") {
			d.Job.Data.CSV.Words = map[string][]string{"species": {"setosa", "versicolor"}}
		}
	}
	if rapid.Bool().Draw(t, "is built in") {
		d.ModelText, d.Job.Model.Name = "", rapid.SampledFrom([]string{"mnist", "iris"}).Draw(t, "model")
	} else if rapid.Bool().Draw(t, "is a script") {
		d.Job.Command = []string{"python3", "-u"}
		if rapid.Bool().Draw(t, "has collectives") {
			d.Job.Elastic, d.Job.Output = trainingjob.ElasticCollectives, "/output"
			d.Job.Data.Training, d.Job.Data.Validation = "indices://mine?records=9", ""
			d.Job.Step = rapid.SampledFrom([]int{0, 2}).Draw(t, "step")
			d.Job.ProcessesPerWorker = rapid.SampledFrom([]int{0, 4}).Draw(t, "processes")
		} else if rapid.Bool().Draw(t, "is restarted") {
			d.Job.Elastic, d.Job.Data, d.Job.Training = trainingjob.ElasticRestart, trainingjob.Data{}, trainingjob.Training{}
			d.Job.Restart = rapid.SampledFrom([]*trainingjob.Restart{nil, {IntervalSeconds: 600}}).Draw(t, "restart")
			d.Job.ProcessesPerWorker = rapid.SampledFrom([]int{0, 2}).Draw(t, "processes")
			if rapid.Bool().Draw(t, "has its script in the image") {
				d.ModelText = ""
			}
		}
	}
	if rapid.Bool().Draw(t, "is queued") {
		d.Queue = &trainingjob.Queue{
			Name:          rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue"),
			PriorityClass: rapid.SampledFrom([]string{"", "low"}).Draw(t, "queue class"), MinPriorityClass: rapid.SampledFrom([]string{"", "mid"}).Draw(t, "minimum class"),
			Topology: drawTopology(t),
		}
	}
	if rapid.Bool().Draw(t, "has checkpoints") {
		d.Job.Checkpoint = &trainingjob.Checkpoint{Steps: 100, Directory: rapid.SampledFrom([]string{"", "/checkpoints"}).Draw(t, "directory")}
		if rapid.Bool().Draw(t, "keeps some") {
			d.Job.Checkpoint.KeepMax = new(rapid.IntRange(0, 5).Draw(t, "max_to_keep"))
		}
	}
	if d.Job.Restarts() {
		return d
	}
	d.Job.Training.Aggregation = rapid.SampledFrom(append([]string{""}, trainingjob.Aggregations...)).Draw(t, "aggregation")
	if rapid.Bool().Draw(t, "evaluates on the way") {
		d.Job.Evaluation = &trainingjob.Evaluation{Steps: rapid.Int64Range(0, 2).Draw(t, "evaluation steps"), Epochs: 1}
	}
	if rapid.Bool().Draw(t, "has learning_rate") {
		d.Job.Training.LearningRate = new(0.1)
	}
	return d
}

func drawTopology(t *rapid.T) *trainingjob.Topology {
	return rapid.SampledFrom([]*trainingjob.Topology{
		nil, {Required: "rack"}, {Preferred: "rack"}, {Unconstrained: true}, {SliceSize: 1, SliceRequired: "rack"}, {Required: "block", SliceSize: 1, SliceRequired: "rack"},
	}).Draw(t, "topology")
}

// throughTheCluster is the input of Read for a definition: rendered, kept as text, and read back.
func throughTheCluster(t *rapid.T, d trainingjob.Definition) trainingjob.Definition {
	data, err := d.ConfigData()
	if err != nil {
		t.Fatal(err)
	}
	live, err := trainingjob.ParseDefinition(&corev1.ConfigMap{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	live.ActiveDeadlineSeconds = d.ActiveDeadlineSeconds // it is in the Job
	return live
}

// importedModel is the state of Read after an import: names only.
func importedModel(t *rapid.T) *trainingJobModel {
	ctx := context.Background()
	schema := trainingJobSchema(ctx)
	state := tfsdk.State{Schema: schema, Raw: tftypes.NewValue(schema.Type().TerraformType(ctx), nil)}
	diags := state.SetAttribute(ctx, path.Root("name"), "job")
	diags.Append(state.SetAttribute(ctx, path.Root("namespace"), "default")...)
	var model trainingJobModel
	diags.Append(model.load(ctx, state.Raw)...)
	if diags.HasError() {
		t.Fatal(diags)
	}
	return &model
}

func TestTrainingJobModelAndDefinition(t *testing.T) {
	ctx := context.Background()
	t.Run("an imported job plans no change", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			d := drawDefinition(t)
			model := importedModel(t)
			if diags := model.readDefinition(ctx, throughTheCluster(t, d)); diags.HasError() {
				t.Fatal(diags)
			}
			got, diags := model.definition(ctx)
			if diags.HasError() {
				t.Fatal(diags)
			}
			if !equality.Semantic.DeepEqual(d, got) {
				t.Fatal(cmp.Diff(d, got))
			}
		})
	})
	t.Run("reading what is as it was leaves the state as it was", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			live := throughTheCluster(t, drawDefinition(t))
			model := importedModel(t)
			if diags := model.readDefinition(ctx, live); diags.HasError() {
				t.Fatal(diags)
			}
			again := *model
			again.defined = maps.Clone(model.defined)
			if diags := again.readDefinition(ctx, live); diags.HasError() {
				t.Fatal(diags)
			}
			for name, value := range model.defined {
				if !again.defined[name].Equal(value) {
					t.Fatalf("%s changed", name)
				}
			}
		})
	})
	t.Run("every change of a definition either replaces the job or is written by an update", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			before, after := drawDefinition(t), drawDefinition(t)
			replaces := slices.ContainsFunc(replacements(before.Queue != nil && after.Queue != nil), func(r replacement[trainingjob.Definition]) bool {
				return !equality.Semantic.DeepEqual(r.of(before), r.of(after))
			})
			if replaces {
				return
			}
			// What stays is in ConfigData, all of it: nothing changes without a trace.
			was, err := before.ConfigData()
			if err != nil {
				t.Fatal(err)
			}
			is, err := after.ConfigData()
			if err != nil {
				t.Fatal(err)
			}
			before.ActiveDeadlineSeconds, after.ActiveDeadlineSeconds = nil, nil // of the Job, which update patches
			if maps.Equal(was, is) && !equality.Semantic.DeepEqual(before, after) {
				t.Fatal(cmp.Diff(before, after))
			}
			if after.Queue != nil && before.Min != after.Min {
				t.Fatal("the queue admitted another minimum")
			}
			if was[trainingjob.JobKey] != is[trainingjob.JobKey] {
				t.Fatal("job.json changed in place")
			}
		})
	})
}

func TestTrainingJobObservation(t *testing.T) {
	failed := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}}
	suspended := &batchv1.Job{Spec: batchv1.JobSpec{Suspend: new(true)}}
	deactivated := workload("group")
	deactivated.Spec.Active = new(false)
	for name, c := range map[string]struct {
		phase trainingjob.Phase
		job   *batchv1.Job
		group *kueue.Workload
		want  trainingjob.Phase
	}{
		"a running job runs":                                       {trainingjob.PhaseRunning, &batchv1.Job{}, nil, trainingjob.PhaseRunning},
		"a Job that failed by its own rules has failed":            {trainingjob.PhaseRunning, failed, nil, trainingjob.PhaseFailed},
		"a run that succeeded did, whatever became of its Job":     {trainingjob.PhaseSucceeded, failed, nil, trainingjob.PhaseSucceeded},
		"without a Job the last word of the master is what counts": {trainingjob.PhaseWaiting, nil, nil, trainingjob.PhaseWaiting},
		"a group that is not admitted is queued":                   {trainingjob.PhasePending, &batchv1.Job{}, workload("group"), trainingjob.PhaseQueued},
		"one that was evicted is queued again":                     {trainingjob.PhaseWaiting, &batchv1.Job{}, workload("group", is(kueue.WorkloadEvicted, "Preempted", "")), trainingjob.PhaseQueued},
		"one that is admitted has its master's phase":              {trainingjob.PhaseRunning, &batchv1.Job{}, workload("group", is(kueue.WorkloadAdmitted, "Admitted", "")), trainingjob.PhaseRunning},
		"a job that has failed waits for nothing":                  {trainingjob.PhaseWaiting, failed, workload("group"), trainingjob.PhaseFailed},
		"a suspended job is not running":                           {trainingjob.PhaseRunning, suspended, nil, trainingjob.PhaseSuspended},
		"a suspended Job that has failed has failed":               {trainingjob.PhaseFailed, suspended, nil, trainingjob.PhaseFailed},
		"a group with a deactivated Workload is suspended":         {trainingjob.PhaseWaiting, &batchv1.Job{}, deactivated, trainingjob.PhaseSuspended},
		"one that has succeeded neither":                           {trainingjob.PhaseSucceeded, &batchv1.Job{}, workload("group"), trainingjob.PhaseSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			var m observedModel
			if diags := m.observe(t.Context(), observation{status: trainingjob.Status{Phase: c.phase}, job: c.job, group: c.group}); diags.HasError() {
				t.Fatal(diags)
			}
			if got := m.Phase.ValueString(); got != string(c.want) {
				t.Errorf("phase %s, want %s", got, c.want)
			}
		})
	}
}

func TestTheMessageOfAJobIsThatOfWhoeverDecidedItsPhase(t *testing.T) {
	failed := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{
		Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "DeadlineExceeded", Message: "Job was active longer than specified deadline",
	}}}}
	waits := trainingjob.Status{Phase: trainingjob.PhaseWaiting, Message: "1 of 2 workers"}
	for name, c := range map[string]struct {
		seen observation
		want string
	}{
		"the master's":                      {observation{status: waits, job: &batchv1.Job{}}, "1 of 2 workers"},
		"none":                              {observation{status: trainingjob.Status{Phase: trainingjob.PhaseRunning}, job: &batchv1.Job{}}, ""},
		"the queue's, of a job that waits":  {observation{status: waits, job: &batchv1.Job{}, group: workload("group", isNot(kueue.WorkloadQuotaReserved, "Pending", "insufficient quota"))}, "Pending: insufficient quota."},
		"the Job's, where its rules ended":  {observation{status: waits, job: failed}, "DeadlineExceeded: Job was active longer than specified deadline."},
		"the master's, that the job failed": {observation{status: trainingjob.Status{Phase: trainingjob.PhaseFailed, Message: "no space"}, job: failed}, "no space"},
	} {
		var m observedModel
		if diags := m.observe(t.Context(), c.seen); diags.HasError() {
			t.Fatal(diags)
		}
		if got := m.Message.ValueString(); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

func TestAWaitEndsOnlyWhenTheWholeJobHasBeenObserved(t *testing.T) {
	running := trainingjob.Status{Phase: trainingjob.PhaseRunning}
	for name, c := range map[string]struct {
		seen observation
		want bool
	}{
		"status alone":                {observation{status: running}, false},
		"status and Job":              {observation{status: running, job: &batchv1.Job{}}, true},
		"status and a suspended Job":  {observation{status: running, job: &batchv1.Job{Spec: batchv1.JobSpec{Suspend: new(true)}}}, false},
		"status and Job, group later": {observation{status: running, job: &batchv1.Job{}, groupPending: true}, false},
		"the end of the run":          {observation{status: trainingjob.Status{Phase: trainingjob.PhaseSucceeded}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.seen.reached(waitForRunning); got != c.want {
				t.Errorf("reached: %v, want %v", got, c.want)
			}
		})
	}
}

func TestProblemsFindTheirAttributes(t *testing.T) {
	t.Run("a field is a path", func(t *testing.T) {
		want := path.Root("volumes").AtListIndex(1).AtName("mount_path")
		if got := pathOf("volumes[1].mount_path"); !got.Equal(want) {
			t.Errorf("%s, want %s", got, want)
		}
	})
	object := func(attributes map[string]tftypes.Value) tftypes.Value {
		kinds := map[string]tftypes.Type{}
		for name, value := range attributes {
			kinds[name] = value.Type()
		}
		return tftypes.NewValue(tftypes.Object{AttributeTypes: kinds}, attributes)
	}
	known, unknown := tftypes.NewValue(tftypes.String, "x"), tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	item := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"a": tftypes.String}}
	config := object(map[string]tftypes.Value{
		"known": known, "unknown": unknown, "absent": tftypes.NewValue(item, nil),
		"inner":   object(map[string]tftypes.Value{"known": known, "unknown": unknown}),
		"list":    tftypes.NewValue(tftypes.List{ElementType: item}, []tftypes.Value{tftypes.NewValue(item, map[string]tftypes.Value{"a": unknown})}),
		"nothing": tftypes.NewValue(tftypes.List{ElementType: item}, tftypes.UnknownValue),
	})
	for field, want := range map[string]bool{
		"known": true, "unknown": false, "absent.a": true, "inner": false, "inner.known": true, "inner.unknown": false,
		"list[0].a": false, "list[0]": false, "list[7].a": true, "nothing[0].a": false,
	} {
		t.Run(field+" is judged only when it is known", func(t *testing.T) {
			if got := isKnown(config, field); got != want {
				t.Errorf("%t, want %t", got, want)
			}
		})
	}
}

func TestPodSettingsHaveAnAttributeForEveryFieldAndNoOther(t *testing.T) {
	want := slices.Sorted(maps.Keys(fieldsIn(&trainingjob.PodSettings{})))
	if got := slices.Sorted(maps.Keys(podAttributes("", ""))); !slices.Equal(got, want) {
		t.Errorf("attributes %v, fields of trainingjob.PodSettings %v", got, want)
	}
}
