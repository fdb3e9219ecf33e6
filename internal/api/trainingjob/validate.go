package trainingjob

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// MaxNameLength of a job leaves room for "-worker-" and five digits in the 63 characters of a pod's host name and
// label.
const MaxNameLength = 50

// Problem is something wrong with one field, in a sentence.
type Problem struct {
	Field   string // dotted, as in job.json and in HCL: "training.grads_to_wait"
	Message string
}

func (p Problem) String() string { return p.Field + " " + p.Message }

// NameProblem reports what is wrong with a job's name, or "".
func NameProblem(name string) string {
	switch errs := validation.IsDNS1123Label(name); {
	case name == "":
		return "is empty; name the job"
	case len(errs) > 0:
		return fmt.Sprintf("is %q; it must consist of lower case letters, digits and \"-\", and begin and end with a letter or digit", name)
	case len(name) > MaxNameLength:
		return fmt.Sprintf("has %d characters; at most %d fit, because \"-worker-12345\" is added to name its pods", len(name), MaxNameLength)
	}
	// A Service's name may not begin with a digit, and NAME-master is one.
	if errs := validation.IsDNS1035Label(name); len(errs) > 0 {
		return fmt.Sprintf("is %q; it must begin with a letter, because the master's Service is named after it", name)
	}
	return ""
}

// Problems are what the job cannot run with.
func (j Job) Problems() []Problem {
	var out problems
	if m := NameProblem(j.Name); m != "" {
		out.add("name", "%s", m)
	}
	if errs := validation.IsDNS1123Label(j.Namespace); j.Namespace != "" && len(errs) > 0 {
		out.add("namespace", "is %q, which no namespace can be called", j.Namespace)
	}
	if j.Output != "" && !path.IsAbs(j.Output) {
		out.add("output", "is %q; it must be an absolute path of a directory in a volume", j.Output)
	}
	out.elastic(j)
	if j.Restarts() {
		out.restarts(j)
		return out
	}
	switch {
	case j.Model.File == "" && j.Model.Name == "":
		out.add("model", "names neither a file nor a built-in model; set one")
	case j.Model.File != "" && j.Model.Name != "":
		out.add("model", "names both a file and the built-in model %q; set one", j.Model.Name)
	case j.Model.Name != "" && !slices.Contains(BuiltInModels(), j.Model.Name):
		out.add("model.name", "is %q; the built-in models are %s", j.Model.Name, quoted(BuiltInModels()))
	}
	if j.Data == (Data{}) {
		out.add("data", "is not set; it names the training data (only a job whose workers.elastic is %q has none)", ElasticRestart)
	} else {
		out.data(j)
		out.between("data.records_per_task", int64(j.Data.RecordsPerTask), 1, MaxRecordsPerTask)
	}
	out.evaluation(j)
	out.checkpoint(j)
	if j.Training == (Training{}) {
		out.add("training", "is not set; give at least minibatch_size (only a job whose workers.elastic is %q has none)", ElasticRestart)
		return out
	}
	if a := j.Training.Aggregation; a != "" && !slices.Contains(Aggregations, a) {
		out.add("training.aggregation", "is %q; gradients are added at the %s, or %s chooses", a, `"master" or by "allreduce" between the workers`, `"auto"`)
	}
	out.between("training.epochs", int64(j.Training.Epochs), 1, MaxEpochs)
	out.between("training.minibatch_size", int64(j.Training.MinibatchSize), 1, MaxMinibatchSize)
	out.between("training.grads_to_wait", int64(j.Training.GradsToWait), 1, MaxGradsToWait)
	if r := j.Training.LearningRate; r != nil && (!(*r > 0) || math.IsInf(*r, 1)) {
		out.add("training.learning_rate", "is %g; it must be a positive number", *r)
	}
	return out
}

// restarts is what a command that is started again can have: its script reads the records, and keeps the state, itself.
func (p *problems) restarts(j Job) {
	for _, own := range []struct {
		field string
		set   bool
		who   string
	}{
		{"model.name", j.Model.Name != "", "trains a model of its own; give the script as model.content, or as a file of the image in workers.command"},
		{"data", j.Data != Data{}, "reads its records itself"},
		{"training", j.Training != Training{}, "has its own numbers; pass them in workers.command or workers.env"},
		{"checkpoint", j.Checkpoint != nil && *j.Checkpoint != Checkpoint{}, "writes its checkpoints itself"},
		{"evaluation", j.Evaluation != nil, "evaluates its model itself"},
	} {
		if own.set {
			p.add(own.field, "has no effect with workers.elastic = %q: the command %s", ElasticRestart, own.who)
		}
	}
	if j.Command[0] == "" {
		p.add("workers.command", "names no program; give what runs on every worker, as in [\"python3\", \"train.py\"]")
	}
	if r := j.Restart; r != nil { // 0 is the default
		p.between("workers.restart_interval_seconds", r.IntervalSeconds, 0, MaxRestartIntervalSeconds)
	}
}

// elastic is what a mode other than the usual one requires: its script reads the records, and keeps the state, itself.
func (p *problems) elastic(j Job) {
	switch {
	case j.Elastic != "" && !slices.Contains(ElasticModes, j.Elastic):
		p.add("workers.elastic", "is %q; gradients are exchanged by the workers and the master (%q) or by the script itself (%q, or %q for any script that torchrun can start)",
			j.Elastic, ElasticGradients, ElasticCollectives, ElasticRestart)
	case j.Elastic != "" && len(j.Command) == 0:
		p.add("workers.elastic", "is %q, and the job has no command: only a script exchanges gradients itself", j.Elastic)
	case j.Restart != nil && !j.Restarts():
		p.add("workers.restart_interval_seconds", "is set, and workers.elastic is %q; only a command that is restarted (%q) has it", cmp.Or(j.Elastic, ElasticGradients), ElasticRestart)
	case j.ProcessesPerWorker != 0 && !j.OwnGroup():
		p.add("workers.processes", "is %d, and workers.elastic is %q; only a script with a process group of its own (%q, %q) can have several on a worker",
			j.ProcessesPerWorker, cmp.Or(j.Elastic, ElasticGradients), ElasticCollectives, ElasticRestart)
	case j.ProcessesPerWorker < 0 || j.ProcessesPerWorker > MaxProcesses:
		p.between("workers.processes", int64(j.ProcessesPerWorker), 1, MaxProcesses)
	case j.Step != 0 && !j.OwnGroup():
		p.add("workers.step", "is %d, and workers.elastic is %q; only a script with a process group of its own can need a multiple of workers", j.Step, cmp.Or(j.Elastic, ElasticGradients))
	case j.Step < 0 || j.Step > MaxWorkers:
		p.between("workers.step", int64(j.Step), 1, MaxWorkers)
	case !j.Collectives():
	case !strings.HasPrefix(j.Data.Training, "indices://"):
		p.add("data.training", "is %q; a script with collectives of its own reads the records itself: name them indices://NAME?records=N", j.Data.Training)
	case j.Data.Validation != "":
		p.add("data.validation", "is %q; a script with collectives of its own evaluates the model itself: remove it", j.Data.Validation)
	case j.Output == "":
		p.add("output", "is not set; a script with collectives of its own writes its checkpoints there, in a volume that all workers mount")
	}
}

func (p *problems) checkpoint(j Job) {
	c := j.Checkpoint
	if c == nil {
		return
	}
	if c.Steps < 0 {
		p.add("checkpoint.interval_steps", "is %d; give a number of steps, or 0 for one checkpoint each epoch", c.Steps)
	}
	p.between("checkpoint.interval_steps", max(c.Steps, 0), 0, MaxSteps)
	if c.KeepMax != nil && *c.KeepMax < 0 {
		p.add("checkpoint.max_to_keep", "is %d; give how many of the newest checkpoints are kept, or 0 for all", *c.KeepMax)
	}
	p.between("checkpoint.max_to_keep", int64(max(j.Keep(), 0)), 0, MaxKeep)
	switch {
	case c.Directory == "":
	case j.Output == "":
		p.add("checkpoint.directory", "is %q, and output is not set: without it the newest checkpoint is kept in ConfigMap NAME-model", c.Directory)
	case !path.IsAbs(c.Directory):
		p.add("checkpoint.directory", "is %q; it must be an absolute path of a directory in a volume", c.Directory)
	}
}

func (p *problems) evaluation(j Job) {
	e := j.Evaluation
	if e == nil {
		return
	}
	p.between("evaluation.interval_steps", max(e.Steps, 0), 0, MaxSteps)
	p.between("evaluation.interval_epochs", max(e.Epochs, 0), 0, MaxEpochs)
	switch {
	case e.Steps < 0:
		p.add("evaluation.interval_steps", "is %d; give the number of steps between two evaluations", e.Steps)
	case e.Epochs < 0:
		p.add("evaluation.interval_epochs", "is %d; give the number of epochs between two evaluations", e.Epochs)
	case e.Steps == 0 && e.Epochs == 0:
		p.add("evaluation", "says neither after how many steps nor after how many epochs; without it the validation data are evaluated once, at the end")
	case j.Data.Validation == "":
		p.add("evaluation", "is set, and data.validation is not: there is nothing to evaluate")
	}
}

// Warnings are sentences about what will run, but perhaps not as it was meant.
func (j Job) Warnings() []Problem {
	var out problems
	r, b := j.Data.RecordsPerTask, j.Training.MinibatchSize
	if r > 0 && b > 0 && r%b != 0 {
		out.add("data.records_per_task", "is %d, no multiple of minibatch_size %d: a minibatch never spans two tasks, so the last one of every task has only %d records", r, b, r%b)
	}
	return out
}

// Problems are what the workers cannot be made with.
func (w Workers) Problems() []Problem {
	var out problems
	out.size(w.Min, w.Max)
	if len(w.Template.Spec.Containers) == 0 || !slices.ContainsFunc(w.Template.Spec.Containers, isWorker) {
		out.add("template", "has no container %q, which does the work", RoleWorker)
	}
	if err := checkTemplate(corev1.PodTemplateSpec{}, w.Template, RoleWorker); err != nil && len(out) == 0 {
		out.add("template", "cannot be used: %s", err)
	}
	return out
}

// Problems are what the job cannot be rendered or run with.
func (d Definition) Problems() []Problem {
	out := problems(d.job().Problems())
	switch n, named := len(d.ModelText), d.Job.Model.Name != ""; {
	case n == 0 && !named && d.Job.Restarts(): // the command is in the image
	case n == 0 && !named:
		out.add("model", "has neither file nor name; give the model file's text, as file = file(\"model.py\") does, or name a built-in model: %s", quoted(BuiltInModels()))
	case n > 0 && named:
		out.add("model", "has both a file and the built-in model %q; set one", d.Job.Model.Name)
	case n > MaxModelConfigMapBytes:
		out.add("model.content", "has %d bytes; at most %d fit into a ConfigMap", n, MaxModelConfigMapBytes)
	}
	if d.Image == "" {
		out.add("image", "is empty; name the trainer's image")
	}
	out.size(d.Min, d.Max)
	if n := d.Job.Multiple(); n > 1 && d.Min%n != 0 {
		out.add("workers.min", "is %d; it must be a multiple of workers.step = %d", d.Min, n)
	}
	out.queue(d)
	out.topology(d)
	out = append(out, VolumeProblems(d.Volumes, []string{jobVolume, credentialsVolume, tokenVolume, scratchVolume, scriptVolume}, []string{ConfigDir, CredentialsDir, tokenDir, scratchDir, ScriptSharedDir})...)
	for role, s := range d.pods() {
		out.pod(role, s)
		out = append(out, InitContainerProblems(role+".init_containers", s.InitContainers, d.containersOf(role), d.mountable(role), len(s.PodOverrides) > 0)...)
	}
	if n := d.ActiveDeadlineSeconds; n != nil && *n < 1 {
		out.add("active_deadline_seconds", "is %d; it must be at least 1", *n)
	}
	if len(out) > 0 {
		return out
	}
	for role, template := range map[string]func() (corev1.PodTemplateSpec, error){
		"master": d.MasterTemplate, "workers": d.WorkerTemplate,
	} {
		made, err := template()
		if err != nil {
			out.add(role+".pod_overrides", "cannot be used: %s", err)
		}
		out.overridesTopology(d, role, made)
	}
	slices.SortFunc(out, func(a, b Problem) int { return strings.Compare(a.Field, b.Field) })
	return out
}

// Warnings are sentences about what will run, but perhaps not as it was meant.
func (d Definition) Warnings() []Problem {
	out := problems(d.Job.Warnings())
	k, ranks := d.Job.Training.GradsToWait, d.Max*d.Job.Processes()
	switch {
	case k <= 0 || ranks <= k || d.Job.Restarts():
	case d.Job.Processes() > 1:
		out.add("workers.max", "is %d, with %d processes each, but a step has only grads_to_wait = %d gradients to compute; the rest of the %d processes would idle", d.Max, d.Job.Processes(), k, ranks)
	default:
		out.add("workers.max", "is %d, but a step has only grads_to_wait = %d gradients to compute; the rest of the workers would idle", d.Max, k)
	}
	role, overrides := RoleMaster, d.Master.PodOverrides
	if d.Job.OwnGroup() {
		role, overrides = RoleWorker, d.Workers.PodOverrides
	}
	if d.Job.Output != "" && len(overrides) == 0 {
		out.written("output", d.Job.Output, d.Volumes, role)
		if c := d.Job.Checkpoint; c != nil && c.Directory != "" {
			out.written("checkpoint.directory", c.Directory, d.Volumes, role)
		}
	}
	out.image(d)
	out.queueWarning(d.Queue)
	out.topologyWarning(d)
	return out
}

func (d Definition) pods() map[string]PodSettings {
	return map[string]PodSettings{"master": d.Master, "workers": d.Workers}
}

// containerOf is the role, and so the container, of the pods that an attribute is about.
func containerOf(attribute string) string {
	if attribute == "master" {
		return RoleMaster
	}
	return RoleWorker
}

// containersOf are the names of the containers that the pods of an attribute have without the user's.
func (d Definition) containersOf(attribute string) []string {
	if attribute == "master" && len(d.Job.Command) > 0 && !d.Job.OwnGroup() {
		return []string{RoleMaster, scriptContainer}
	}
	return []string{containerOf(attribute)}
}

// mountable are the names of the volumes that the pods of an attribute have.
func (d Definition) mountable(attribute string) []string {
	var names []string
	for _, v := range d.Volumes {
		if v.mountedBy(containerOf(attribute)) {
			names = append(names, v.Name)
		}
	}
	return names
}

type problems []Problem

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (p *problems) size(minimum, maximum int) {
	p.between("workers.min", int64(minimum), 1, MaxWorkers)
	p.between("workers.max", int64(max(maximum, 0)), 0, MaxWorkers)
	if maximum < minimum {
		p.add("workers.max", "is %d, below workers.min = %d; the job could never reach its minimum", maximum, minimum)
	}
}

func quoted(values []string) string {
	q := make([]string, len(values))
	for i, v := range values {
		q[i] = fmt.Sprintf("%q", v)
	}
	return strings.Join(q, " or ")
}
