package task

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	_ "github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob/strategicmerge" // for pod_overrides
)

const (
	// MaxNameLength leaves room for "-1000-abcde" in the 63 characters of a pod's host name.
	MaxNameLength = 50
	// maxNodes keeps what the ranks write about themselves within one ConfigMap.
	maxNodes = 1000
	// MaxConfigMapBytes is what the API server takes in one ConfigMap: scripts and workdir's files together.
	MaxConfigMapBytes = 1 << 20
)

// exitKilled is SIGKILL's: also that of a pod that did not stop in time, and of a container without memory.
const exitKilled = 137

// Problems are what the task cannot be rendered or run with, in order of their attributes.
func (t Task) Problems() []Problem {
	var p problems
	if m := NameProblem(t.Name); m != "" {
		p.add("name", "%s", m)
	}
	if errs := validation.IsDNS1123Label(t.Namespace); t.Namespace != "" && len(errs) > 0 {
		p.add("namespace", "is %q, which no namespace can be called", t.Namespace)
	}
	if strings.TrimSpace(t.Run) == "" {
		p.add("run", "is empty; say what the task runs")
	}
	if t.NumNodes < 1 || t.NumNodes > maxNodes {
		p.add("num_nodes", "is %d; it must be 1 to %d", t.NumNodes, maxNodes)
	}
	if t.Rejoin && t.NumNodes == 1 {
		p.add("rejoin", "is true, and num_nodes is 1: there are no other nodes to rejoin; remove it, or set num_nodes")
	}
	if t.Image == "" {
		p.add("image", "is empty; name the image in which the task runs")
	}
	if t.gang() && t.TrainerImage == "" {
		p.add("supervisor_image", "is empty; a task of %d nodes needs the image that holds their supervisor", t.NumNodes)
	}
	p.variables(t)
	p.workdir(t.Workdir)
	p = append(p, trainingjob.VolumeProblems(t.Volumes, []string{filesVolume, scratchVolume}, []string{filesDir, scratchDir})...)
	p.resources(t)
	p.queue(t)
	p.topology(t)
	p.recovery(t.Recovery)
	p.labels("labels", t.Labels)
	for _, key := range slices.Sorted(maps.Keys(t.Annotations)) {
		if errs := validation.IsQualifiedName(strings.ToLower(key)); len(errs) > 0 {
			p.add("annotations", "has the key %q: %s", key, errs[0])
		}
	}
	if g := t.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		p.add("termination_grace_period_seconds", "is %d; it cannot be negative", *g)
	}
	if s := t.TTLSecondsAfterFinished; s != nil && *s < 0 {
		p.add("ttl_seconds_after_finished", "is %d; it cannot be negative", *s)
	}
	if s := t.ActiveDeadlineSeconds; s != nil && *s < 1 {
		p.add("active_deadline_seconds", "is %d; it must be at least 1", *s)
	}
	p = append(p, t.SecurityContext.Problems("security_context", false)...)
	p = append(p, trainingjob.InitContainerProblems("init_containers", t.InitContainers, []string{ContainerName, gangContainer}, t.volumeNames(), len(t.PodOverrides) > 0)...)
	if len(p) == 0 {
		p.rendered(t)
	}
	slices.SortStableFunc(p, func(a, b Problem) int { return strings.Compare(a.Field, b.Field) })
	return p
}

// Warnings are sentences about what will run, but perhaps not as it was meant.
func (t Task) Warnings() []Problem {
	var p problems
	if t.Queue == "" && t.PriorityClass != "" {
		p.add("queue.workload_priority_class", "is %q, but without a queue no workload is made that could have it; the pods' own priority is priority_class_name", t.PriorityClass)
	}
	if slices.Contains(t.Recovery.RecoverOnExitCodes, ExitStopped) {
		p.add("recovery.recover_on_exit_codes", "has %d, which is never counted: it is what a pod ends with that was asked to stop", ExitStopped)
	}
	return p
}

func (t Task) volumeNames() []string {
	var names []string
	for _, v := range t.Volumes {
		names = append(names, v.Name)
	}
	return names
}

type problems []Problem

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

// NameProblem reports what is wrong with a task's name, or "".
func NameProblem(name string) string {
	switch errs := validation.IsDNS1123Label(name); {
	case name == "":
		return "is empty; name the task"
	case len(errs) > 0:
		return fmt.Sprintf("is %q; it must consist of lower case letters, digits and \"-\", and begin and end with a letter or digit", name)
	case len(name) > MaxNameLength:
		return fmt.Sprintf("has %d characters; at most %d fit, because a rank and five letters are added to name its pods", len(name), MaxNameLength)
	}
	return ""
}

func (p *problems) variables(t Task) {
	set := map[string]string{}
	check := func(field, name string) {
		switch other, twice := set[name]; {
		case !trainingjob.EnvName.MatchString(name):
			p.add(field, "has a variable named %q; use letters, digits and \"_\"", name)
		case reservedVariable(name):
			p.add(field, "sets %s, which the task sets itself", name)
		case twice:
			p.add(field, "sets %s, which %s sets too", name, other)
		}
		set[name] = field
	}
	for _, name := range slices.Sorted(maps.Keys(t.Envs)) {
		check("env", name)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Secrets)) {
		check("secrets", name)
		if key := t.Secrets[name]; key.SecretName == "" || key.Key == "" {
			p.add("secrets", "has %s = { secret_name = %q, key = %q }; name a Secret and a key in it", name, key.SecretName, key.Key)
		}
	}
	for _, name := range t.SecretValues {
		check("secrets_wo", name)
	}
}

func reservedVariable(name string) bool {
	return strings.HasPrefix(name, "SKYPILOT_") || strings.HasPrefix(name, "ELASTIC_") || strings.HasPrefix(name, "MY_POD_") || name == "MY_JOB_UID"
}

func (p *problems) workdir(files map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch {
		case name == "" || name == "." || path.IsAbs(name) || path.Clean(name) != name || strings.HasPrefix(name, "..") || strings.ContainsAny(name, "\x00:\\"):
			p.add("workdir", "has the file %q; write a relative path without \"..\", \":\" and \"\\\"", name)
		case !utf8.ValidString(files[name]):
			p.add("workdir", "has the file %q, which is no text; put binary files in the image or in a volume", name)
		}
		for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if _, file := files[dir]; file {
				p.add("workdir", "has %q both as a file and as the directory of %q", dir, name)
			}
		}
	}
}

func (p *problems) resources(t Task) {
	if t.CPUs != "" {
		if _, err := parseCPUs(t.CPUs); err != nil {
			p.add("cpus", "%s", err)
		}
	}
	if t.Memory != "" {
		if _, err := parseMemory(t.Memory); err != nil {
			p.add("memory", "%s", err)
		}
	}
	if len(t.Accelerators) > 0 {
		if _, err := t.place(nil); err != nil {
			p.add("accelerators", "cannot be asked for: %s", err)
		}
	}
	p.labels("node_selector", t.NodeSelector)
}

func (p *problems) queue(t Task) {
	for _, of := range []struct{ field, kind, name string }{{"queue.name", "LocalQueue", t.Queue}, {"queue.workload_priority_class", "WorkloadPriorityClass", t.PriorityClass}} {
		switch {
		case of.name == "":
		case len(of.name) > validation.LabelValueMaxLength:
			p.add(of.field, "has %d characters; a label of the Job names the %s, and holds %d", len(of.name), of.kind, validation.LabelValueMaxLength)
		case len(validation.IsDNS1123Subdomain(of.name)) > 0:
			p.add(of.field, "is %q, which no %s can be called: lower case letters, digits, \"-\" and \".\", beginning and ending with a letter or digit", of.name, of.kind)
		}
	}
}

func (p *problems) topology(t Task) {
	if t.Topology == nil {
		return
	}
	if t.Queue == "" {
		p.add("topology", "is set, and queue.name is not: only Kueue places pods by a topology; name a LocalQueue in queue.name, or remove topology")
	}
	*p = append(*p, t.Topology.Problems(t.NumNodes, "num_nodes")...)
	if key := trainingjob.OwnTopologyAnnotation(t.Annotations); key != "" {
		p.add("annotations", "sets %q, which attribute topology sets; remove one of the two", key)
	}
}

func (p *problems) recovery(r Recovery) {
	const restarts, codes = "recovery.max_restarts_on_errors", "recovery.recover_on_exit_codes"
	if r.MaxRestartsOnErrors < 0 {
		p.add(restarts, "is %d; it cannot be negative", r.MaxRestartsOnErrors)
	}
	for i, code := range r.RecoverOnExitCodes {
		if problem := ExitCodeProblem(code); problem != "" {
			p.add(codes, "%s", problem)
		} else if slices.Contains(r.RecoverOnExitCodes[:i], code) {
			p.add(codes, "has %d twice", code)
		}
	}
}

// ExitCodeProblem reports why a task cannot be run again for ever after an exit code, or "".
func ExitCodeProblem(code int) string {
	switch {
	case code < 1 || code > 255:
		return fmt.Sprintf("has %d; an exit code that is an error is 1 to 255", code)
	case code == exitKilled:
		return fmt.Sprintf("has %d, which is what a container ends with that used too much memory or was killed; it would be run again for ever", code)
	}
	return ""
}

func (p *problems) labels(field string, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		switch errs := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(labels[key])); {
		case len(errs) > 0:
			p.add(field, "has %q = %q, which is no label: %s", key, labels[key], errs[0])
		case field == "labels" && (key == LabelQueue || key == LabelPriorityClass):
			p.add(field, "has %q; say it by %s", key, map[string]string{LabelQueue: "queue.name", LabelPriorityClass: "queue.workload_priority_class"}[key])
		case field == "labels" && ReservedLabel(key):
			p.add(field, "sets %q, which the task sets itself", key)
		}
	}
}

// ReservedLabel reports whether a label of pods or objects is set by us, by Kueue or by Kubernetes' Job controller.
func ReservedLabel(key string) bool {
	_, ours := objectLabels("")[key]
	domain, _, _ := strings.Cut(key, "/")
	return ours || slices.Contains([]string{"elastic-training.github.io", "batch.kubernetes.io", "kueue.x-k8s.io"}, domain) || key == "controller-uid" || key == "job-name"
}

// rendered are the problems that show only in what is rendered.
func (p *problems) rendered(t Task) {
	template, err := t.podTemplate(nil)
	if err != nil {
		p.add("accelerators", "cannot be asked for: %s", err)
		return
	}
	if _, err := t.overridden(template); err != nil {
		p.add("pod_overrides", "cannot be used: %s", err)
	}
	data, err := t.configData()
	if err != nil {
		p.add("workdir", "cannot be kept: %s", err)
		return
	}
	size := 0
	for key, text := range data {
		size += len(key) + len(text)
	}
	if size > MaxConfigMapBytes {
		p.add("workdir", "and the scripts have %d bytes together; a ConfigMap holds %d: put large files in the image or in a volume", size, MaxConfigMapBytes)
	}
}

// overridden applies the user's patch and refuses a pod that the task could not work with.
func (t Task) overridden(ours corev1.PodTemplateSpec) (corev1.PodTemplateSpec, error) {
	out, err := trainingjob.PatchTemplate(ours, t.PodOverrides)
	if err != nil {
		return out, err
	}
	for _, key := range slices.Sorted(maps.Keys(ours.Labels)) {
		if out.Labels[key] != ours.Labels[key] {
			return out, fmt.Errorf("they change label %q, by which the task finds its pods; leave it out", key)
		}
	}
	if t.Topology != nil {
		own := maps.Clone(out.Annotations)
		maps.DeleteFunc(own, func(key, value string) bool { return ours.Annotations[key] == value })
		if key := trainingjob.OwnTopologyAnnotation(own); key != "" {
			return out, fmt.Errorf("they set annotation %q, which attribute topology sets; remove one of the two", key)
		}
	}
	if out.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return out, fmt.Errorf("they set restartPolicy %q; only Never works, the Job makes new pods", out.Spec.RestartPolicy)
	}
	for _, want := range slices.Concat(ours.Spec.Containers, ours.Spec.InitContainers) {
		if want.Name != ContainerName && want.Name != gangContainer {
			continue // the user's own
		}
		i := slices.IndexFunc(slices.Concat(out.Spec.Containers, out.Spec.InitContainers), func(c corev1.Container) bool {
			return c.Name == want.Name && equality.Semantic.DeepEqual(c.Command, want.Command) && equality.Semantic.DeepEqual(c.Args, want.Args)
		})
		if i < 0 {
			return out, fmt.Errorf("they remove container %q or change its command, which does the work; say what to run by run", want.Name)
		}
	}
	return out, nil
}
