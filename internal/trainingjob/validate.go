package trainingjob

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/format"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/zoo"
)

// MaxNameLength of a job leaves room for "-worker-" and five digits in the 63 characters of a pod's host name and label.
const MaxNameLength = 50

// Problem is something wrong with one field, in a sentence.
type Problem struct {
	Field   string // dotted, as in job.json and in HCL: "training.grads_to_wait"
	Message string
}

func (p Problem) String() string { return p.Field + " " + p.Message }

// NameProblem says what is wrong with a job's name, or "".
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
	switch {
	case j.Model.File == "" && j.Model.Name == "":
		out.add("model", "names neither a file nor a built-in model; set one")
	case j.Model.File != "" && j.Model.Name != "":
		out.add("model", "names both a file and the built-in model %q; set one", j.Model.Name)
	case j.Model.Name != "" && !zoo.Has(j.Model.Name):
		out.add("model.name", "is %q; the built-in models are %s", j.Model.Name, quoted(zoo.Names()))
	}
	if j.Data.Training == "" {
		out.add("data.training", "is empty; name a file, a directory or synthetic://digits?records=10000&seed=1")
	}
	out.command(j)
	out.source("data.training", j.Data.Training)
	out.source("data.validation", j.Data.Validation)
	if !slices.Contains(format.Names(), j.Data.Format) && (j.Data.Format != "" || !unstored(j.Data)) {
		out.add("data.format", "is %q; this version reads %s", j.Data.Format, quoted(format.Names()))
	}
	if !slices.Contains(codec.Names(), j.Data.Codec) && (j.Data.Codec != "" || !unstored(j.Data)) {
		out.add("data.codec", "is %q; this version knows %s", j.Data.Codec, quoted(codec.Names()))
	}
	out.csv(j.Data)
	if a := j.Training.Aggregation; a != "" && !slices.Contains(Aggregations, a) {
		out.add("training.aggregation", "is %q; gradients are added at the %s, or %s chooses", a, `"master" or by "allreduce" between the workers`, `"auto"`)
	}
	if c := j.Checkpoint; c != nil {
		if c.Steps < 0 {
			out.add("checkpoint.steps", "is %d; give a number of steps, or 0 for one checkpoint each epoch", c.Steps)
		}
		if c.KeepMax != nil && *c.KeepMax < 0 {
			out.add("checkpoint.keep_max", "is %d; give how many of the newest checkpoints are kept, or 0 for all", *c.KeepMax)
		}
		switch {
		case c.Directory == "":
		case j.Output == "":
			out.add("checkpoint.directory", "is %q, and output is not set: without it the newest checkpoint is kept in ConfigMap NAME-model", c.Directory)
		case !path.IsAbs(c.Directory):
			out.add("checkpoint.directory", "is %q; it must be an absolute path of a directory in a volume", c.Directory)
		}
	}
	if e := j.Evaluation; e != nil {
		switch {
		case e.Steps < 0:
			out.add("evaluation.steps", "is %d; give the number of steps between two evaluations", e.Steps)
		case e.Epochs < 0:
			out.add("evaluation.epochs", "is %d; give the number of epochs between two evaluations", e.Epochs)
		case e.Steps == 0 && e.Epochs == 0:
			out.add("evaluation", "says neither after how many steps nor after how many epochs; without it the validation data are evaluated once, at the end")
		case j.Data.Validation == "":
			out.add("evaluation", "is set, and data.validation is not: there is nothing to evaluate")
		}
	}
	out.positive("data.records_per_task", j.Data.RecordsPerTask)
	out.positive("training.epochs", j.Training.Epochs)
	out.positive("training.minibatch_size", j.Training.MinibatchSize)
	out.positive("training.grads_to_wait", j.Training.GradsToWait)
	if r := j.Training.LearningRate; r != nil && (!(*r > 0) || math.IsInf(*r, 1)) {
		out.add("training.learning_rate", "is %g; it must be a positive number", *r)
	}
	if j.Output != "" && !path.IsAbs(j.Output) {
		out.add("output", "is %q; it must be an absolute path of a directory in a volume", j.Output)
	}
	return out
}

// command checks the job's command, and what goes with one alone.
func (p *problems) command(j Job) {
	if len(j.Command) == 0 {
		for _, d := range [][2]string{{"data.training", j.Data.Training}, {"data.validation", j.Data.Validation}} {
			if field, source := d[0], d[1]; strings.HasPrefix(source, indicesScheme) {
				p.add(field, "is %q: indices are dealt to a script that has the records; set workers.command, or name records that a model file can read", source)
			}
		}
		return
	}
	if a := j.Training.Aggregation; a != "" && a != AggregationMaster {
		p.add("training.aggregation", "is %q, and the job's command computes it: what its framework adds, and where, is its own matter", a)
	}
	if j.Command[0] == "" {
		p.add("workers.command", "names no program; give what runs the script, as in [\"python3\"]")
	}
	if j.Model.Name != "" {
		p.add("workers.command", "is %q, and the model is the built-in %q, which elastic-trainer computes itself; give the script as model.file", strings.Join(j.Command, " "), j.Model.Name)
	}
}

// indicesScheme begins the names of data sets that only a script has.
const indicesScheme = "indices://"

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
	case n == 0 && !named:
		out.add("model", "has neither file nor name; give the model file's text, as file = file(\"model.py\") does, or name a built-in model: %s", quoted(zoo.Names()))
	case n > 0 && named:
		out.add("model", "has both a file and the built-in model %q; set one", d.Job.Model.Name)
	case n > MaxModelConfigMapBytes:
		out.add("model.file", "has %d bytes; at most %d fit into a ConfigMap", n, MaxModelConfigMapBytes)
	}
	if d.Image == "" {
		out.add("image", "is empty; name the trainer's image")
	}
	out.size(d.Min, d.Max)
	out.queue(d)
	out = append(out, VolumeProblems(d.Volumes, []string{jobVolume, credentialsVolume, scratchVolume}, []string{ConfigDir, CredentialsDir, scratchDir})...)
	for role, s := range d.pods() {
		out.pod(role, s)
	}
	if len(out) > 0 {
		return out
	}
	for role, template := range map[string]func() (corev1.PodTemplateSpec, error){
		"master": d.MasterTemplate, "workers": d.WorkerTemplate,
	} {
		if _, err := template(); err != nil {
			out.add(role+".pod_overrides", "cannot be used: %s", err)
		}
	}
	slices.SortFunc(out, func(a, b Problem) int { return strings.Compare(a.Field, b.Field) })
	return out
}

// Warnings are sentences about what will run, but perhaps not as it was meant.
func (d Definition) Warnings() []Problem {
	out := problems(d.Job.Warnings())
	if k := d.Job.Training.GradsToWait; k > 0 && d.Max > k {
		out.add("workers.max", "is %d, but a step has only grads_to_wait = %d gradients to compute; the rest of the workers would idle", d.Max, k)
	}
	if d.Job.Output != "" && len(d.Master.PodOverrides) == 0 {
		out.written("output", d.Job.Output, d.Volumes)
		if c := d.Job.Checkpoint; c != nil && c.Directory != "" {
			out.written("checkpoint.directory", c.Directory, d.Volumes)
		}
	}
	out.queueWarning(d.Queue)
	return out
}

func (d Definition) pods() map[string]PodSettings {
	return map[string]PodSettings{"master": d.Master, "workers": d.Workers}
}

type problems []Problem

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (p *problems) positive(field string, n int) {
	if n < 1 {
		p.add(field, "is %d; it must be at least 1", n)
	}
}

func (p *problems) size(minimum, maximum int) {
	p.positive("workers.min", minimum)
	if maximum < minimum {
		p.add("workers.max", "is %d, below workers.min = %d; the job could never reach its floor", maximum, minimum)
	}
}

func (p *problems) source(field, source string) {
	scheme, rest, ok := strings.Cut(source, "://")
	if !ok {
		if source != "" && !path.IsAbs(source) {
			p.add(field, "is %q; it must be an absolute path in the image or in a volume", source)
		}
		return
	}
	if scheme+"://" == indicesScheme {
		return // the data set is the script's; Problems asks for one
	}
	if scheme == "s3" || scheme == "gs" {
		if bucket, _, _ := strings.Cut(rest, "/"); bucket == "" || strings.ContainsAny(bucket, "@:?#") {
			p.add(field, "is %q; write %s://BUCKET/PREFIX: credentials come from the pods' environment, not from here", source, scheme)
		}
		return
	}
	if scheme != "synthetic" {
		p.add(field, "is %q; this version reads files, directories, s3://, gs://, synthetic:// and, with a command, indices://", source)
		return
	}
	if u, err := url.Parse(source); err != nil || u.Host == "" {
		p.add(field, "is %q; after synthetic:// the name of a generator is expected, as in synthetic://digits?records=10000&seed=1, not %q", source, rest)
	}
}

// csv looks at what only CSV has.
func (p *problems) csv(d Data) {
	if d.CSV == nil {
		return
	}
	if d.Format != "csv" {
		p.add("data.csv", "is set, and data.format is %q; set format = \"csv\" or leave csv out", d.Format)
	}
	for _, feature := range slices.Sorted(maps.Keys(d.CSV.Columns)) {
		columns := d.CSV.Columns[feature]
		if feature == "" || len(columns) == 0 || slices.Contains(columns, "") {
			p.add("data.csv.columns", "gives feature %q the columns %q; name one column for each of its elements", feature, columns)
		}
	}
	for _, column := range slices.Sorted(maps.Keys(d.CSV.Words)) {
		words := d.CSV.Words[column]
		if column == "" || len(words) == 0 {
			p.add("data.csv.words", "gives column %q the words %q; list its words in the order of their numbers", column, words)
		}
	}
}

// VolumeProblems are what volumes cannot be mounted with, beside volumes of ours that have these names and in whose
// directories nothing else may be mounted.
func VolumeProblems(volumes []Volume, ourNames, ourDirs []string) []Problem {
	var p problems
	names, paths := map[string]bool{}, map[string]string{}
	for _, name := range ourNames {
		names[name] = true
	}
	for i, v := range volumes {
		field := fmt.Sprintf("volumes[%d]", i)
		if len(validation.IsDNS1123Label(v.Name)) > 0 {
			p.add(field+".name", "is %q; it must consist of lower case letters, digits and \"-\"", v.Name)
		} else if names[v.Name] {
			p.add(field+".name", "is %q, which another volume of the job is called", v.Name)
		}
		names[v.Name] = true
		sources := 0
		for _, set := range []bool{v.PVC != "", v.HostPath != "", v.EmptyDir != nil, v.ConfigMap != ""} {
			if set {
				sources++
			}
		}
		if sources != 1 {
			p.add(field, "(%q) has %d sources; set exactly one of pvc, host_path, empty_dir and config_map", v.Name, sources)
		}
		if v.Mount != "" && !slices.Contains([]string{MountAll, MountMaster, MountWorkers}, v.Mount) {
			p.add(field+".mount", "is %q; it must be %s", v.Mount, quoted([]string{MountAll, MountMaster, MountWorkers}))
		}
		switch other, taken := paths[v.MountPath]; {
		case !path.IsAbs(v.MountPath) || path.Clean(v.MountPath) != strings.TrimSuffix(v.MountPath, "/") || v.MountPath == "/":
			p.add(field+".mount_path", "is %q; it must be an absolute path without \"..\", and not the root", v.MountPath)
		case slices.ContainsFunc(ourDirs, func(dir string) bool { return within(v.MountPath, dir) }):
			p.add(field+".mount_path", "is %q, where the job's own files are; choose another", v.MountPath)
		case taken:
			p.add(field+".mount_path", "is %q, where volume %q is mounted", v.MountPath, other)
		}
		paths[v.MountPath] = v.Name
		if v.HostPath != "" && !path.IsAbs(v.HostPath) {
			p.add(field+".host_path", "is %q; it must be an absolute path of the node", v.HostPath)
		}
	}
	return p
}

// envName is what a shell can refer to; Kubernetes allows a little more.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (p *problems) pod(role string, s PodSettings) {
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !envName.MatchString(name) {
			p.add(role+".env", "has a variable named %q; use letters, digits and \"_\"", name)
		}
		if slices.ContainsFunc(downwardEnv, func(v struct{ name, field string }) bool { return v.name == name }) {
			p.add(role+".env", "sets %s, which the job sets from the pod itself", name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		if ReservedLabel(key) {
			p.add(role+".labels", "sets %q, which the job sets itself", key)
		}
	}
	if g := s.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		p.add(role+".termination_grace_period_seconds", "is %d; it cannot be negative", *g)
	}
	if s.Resources == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Resources.Requests)) {
		request := s.Resources.Requests[name]
		limit, limited := s.Resources.Limits[name]
		if limited && limit.Cmp(request) < 0 {
			p.add(role+".resources", "requests %s = %s but limits it to %s; a limit cannot be below its request", name, request.String(), limit.String())
		}
	}
}

// written says what is wrong with the place of a directory that the master writes.
func (p *problems) written(attribute, dir string, volumes []Volume) {
	i := slices.IndexFunc(volumes, func(v Volume) bool { return v.mountedBy(RoleMaster) && within(dir, v.MountPath) })
	switch {
	case i < 0:
		p.add(attribute, "is %q, in no volume that the master mounts: a pod's own file system is read-only, so nothing could be written there", dir)
	case volumes[i].EmptyDir != nil:
		p.add(attribute, "is %q in volume %q, an empty_dir: the model and all checkpoints are lost with the master's pod", dir, volumes[i].Name)
	case volumes[i].ConfigMap != "" || (volumes[i].ReadOnly != nil && *volumes[i].ReadOnly):
		p.add(attribute, "is %q in volume %q, which is read-only", dir, volumes[i].Name)
	}
}

// within says whether a path is dir or below it.
func within(name, dir string) bool {
	name, dir = path.Clean(name), path.Clean(dir)
	return name == dir || strings.HasPrefix(name, dir+"/")
}

// unstored says that none of the records are in files, whose format and codec would have to be known.
func unstored(d Data) bool {
	made := func(source string) bool {
		return strings.HasPrefix(source, "synthetic://") || strings.HasPrefix(source, indicesScheme)
	}
	return made(d.Training) && (d.Validation == "" || made(d.Validation))
}

func quoted(values []string) string {
	q := make([]string, len(values))
	for i, v := range values {
		q[i] = fmt.Sprintf("%q", v)
	}
	return strings.Join(q, " or ")
}
