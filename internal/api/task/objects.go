package task

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/gang"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// Keys of ConfigMap NAME-task. The workdir's files are file-0, file-1 and so on, in order of their paths.
const (
	definitionKey = "definition.json"
	startKey      = "start.sh"
	setupKey      = "setup.sh"
	runKey        = "run.sh"
)

func fileKey(i int) string { return "file-" + strconv.Itoa(i) }

// ExitStopped is what a pod ends with that was signalled to stop; the Job does not count it as a failure.
const ExitStopped = 143

// Objects make up a task. The Job is created first, and suspended: it owns the others, which are created with its UID.
// Kueue lets it start; without a queue the provider does, when all the others exist.
type Objects struct {
	Job       *batchv1.Job
	ConfigMap *corev1.ConfigMap
	Secret    *corev1.Secret // nil without secret values
	// Of a gang, else nil. The last three are nil too when the user names an account.
	Gang           *corev1.ConfigMap
	ServiceAccount *corev1.ServiceAccount
	Role           *rbacv1.Role
	RoleBinding    *rbacv1.RoleBinding
}

// Given is what Render needs and no Task holds.
type Given struct {
	// Secrets has a value for each name of Task.SecretValues.
	Secrets map[string]string
	// Flavors are the node labels of the flavors that Kueue may choose from for a queued task. nil where they are not
	// known: then the pod's affinity selects the accelerator among all others of the table, which makes it long.
	Flavors []map[string]string
}

// Render writes the objects of a task, of which Task.Problems finds nothing wrong.
func Render(t Task, given Given) (*Objects, error) {
	job, err := t.batchJob(given.Flavors)
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", t.Name, err)
	}
	data, err := t.configData()
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", t.Name, err)
	}
	o := &Objects{
		Job: job,
		// Nothing in it can change while the Job lives, and kubelets need not watch what says so.
		ConfigMap: &corev1.ConfigMap{TypeMeta: typeMeta("v1", "ConfigMap"), ObjectMeta: t.meta(ConfigMapName(t.Name)), Immutable: new(true), Data: data},
	}
	if len(t.SecretValues) > 0 {
		o.Secret = &corev1.Secret{
			TypeMeta: typeMeta("v1", "Secret"), ObjectMeta: t.meta(SecretName(t.Name)),
			Type: corev1.SecretTypeOpaque, Data: map[string][]byte{},
		}
		for _, name := range t.SecretValues {
			value, ok := given.Secrets[name]
			if !ok {
				return nil, fmt.Errorf("task %s: the value of secret %s is not given", t.Name, name)
			}
			o.Secret.Data[name] = []byte(value)
		}
	}
	if !t.gang() {
		return o, nil
	}
	o.Gang = &corev1.ConfigMap{TypeMeta: typeMeta("v1", "ConfigMap"), ObjectMeta: t.meta(gang.BoardName(t.Name))}
	if t.ServiceAccountName == "" {
		name := ServiceAccountName(t.Name)
		o.ServiceAccount = &corev1.ServiceAccount{TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: t.meta(name)}
		o.Role = &rbacv1.Role{TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "Role"), ObjectMeta: t.meta(name), Rules: GangRules(t.Name)}
		o.RoleBinding = &rbacv1.RoleBinding{
			TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "RoleBinding"), ObjectMeta: t.meta(name),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: t.Namespace}},
		}
	}
	return o, nil
}

// GangRules are all that the ranks of a gang may do: see each other's pods, and agree in one ConfigMap. The creator of
// the Role must hold them too.
func GangRules(task string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}},
		// List and watch are allowed with the field selector metadata.name=NAME-gang only.
		{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{gang.BoardName(task)},
			Verbs: []string{"get", "list", "watch", "patch"},
		},
	}
}

// Parts are the objects that the Job owns, in the order in which they are created.
func (o *Objects) Parts() []Object {
	parts := []Object{o.ConfigMap}
	if o.Secret != nil {
		parts = append(parts, o.Secret)
	}
	if o.Gang != nil {
		parts = append(parts, o.Gang)
	}
	if o.ServiceAccount != nil {
		parts = append(parts, o.ServiceAccount, o.Role, o.RoleBinding)
	}
	return parts
}

// NamedParts are the parts of a task with nothing but their names, in the order of Parts: enough to find and delete
// them.
func NamedParts(t Task) []Object {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: t.Namespace} }
	o := &Objects{ConfigMap: &corev1.ConfigMap{ObjectMeta: named(ConfigMapName(t.Name))}}
	if len(t.SecretValues) > 0 {
		o.Secret = &corev1.Secret{ObjectMeta: named(SecretName(t.Name))}
	}
	if t.gang() {
		o.Gang = &corev1.ConfigMap{ObjectMeta: named(gang.BoardName(t.Name))}
		if t.ServiceAccountName == "" {
			account := named(ServiceAccountName(t.Name))
			o.ServiceAccount, o.Role, o.RoleBinding = &corev1.ServiceAccount{ObjectMeta: account}, &rbacv1.Role{ObjectMeta: account}, &rbacv1.RoleBinding{ObjectMeta: account}
		}
	}
	return o.Parts()
}

// Own makes the Job the owner of every part, so that `kubectl delete job` leaves nothing.
func (o *Objects) Own(job JobRef) { job.Own(o.Parts()) }

func (t Task) batchJob(flavors []map[string]string) (*batchv1.Job, error) {
	template, err := t.podTemplate(flavors)
	if err != nil {
		return nil, err
	}
	if template, err = t.overridden(template); err != nil {
		return nil, err
	}
	nodes := int32(t.NumNodes)
	job := &batchv1.Job{
		TypeMeta:   typeMeta("batch/v1", "Job"),
		ObjectMeta: t.meta(t.Name),
		Spec: batchv1.JobSpec{
			Suspend:                 new(true),
			Completions:             &nodes,
			Parallelism:             &nodes,
			BackoffLimit:            new(int32(min(t.Recovery.MaxRestartsOnErrors, math.MaxInt32))),
			TTLSecondsAfterFinished: t.TTLSecondsAfterFinished,
			ActiveDeadlineSeconds:   t.ActiveDeadlineSeconds,
			// A pod is replaced when it is gone, never beside one that is still stopping: what it had is free by then.
			PodReplacementPolicy: new(batchv1.Failed),
			PodFailurePolicy:     t.podFailurePolicy(),
			Template:             template,
		},
	}
	if t.gang() {
		job.Spec.CompletionMode = new(batchv1.IndexedCompletion)
	}
	maps.Copy(job.Labels, t.queueLabels())
	return job, nil
}

// podFailurePolicy defines what is no failure of the task: that a pod was evicted, that it was terminated, and the
// exit codes of which the user says so. All else counts towards the backoff limit. Suspension by Kueue needs no rule:
// the Job controller does not count the pods that it deletes.
func (t Task) podFailurePolicy() *batchv1.PodFailurePolicy {
	codes := []int32{ExitStopped}
	for _, code := range t.Recovery.RecoverOnExitCodes {
		codes = append(codes, int32(code))
	}
	slices.Sort(codes) // the API server refuses them in any other order
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
		}},
		{Action: batchv1.PodFailurePolicyActionIgnore, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			ContainerName: new(ContainerName), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: slices.Compact(codes),
		}},
	}}
}

// queueLabels are Kueue's, on the Job and not on its pods: with them there Kueue would queue each pod by itself.
func (t Task) queueLabels() map[string]string {
	labels := map[string]string{}
	if t.Queue != "" {
		labels[LabelQueue] = t.Queue
	}
	if t.PriorityClass != "" {
		labels[LabelPriorityClass] = t.PriorityClass
	}
	return labels
}

// configData is the data of ConfigMap NAME-task.
func (t Task) configData() (map[string]string, error) {
	definition, err := t.encode()
	if err != nil {
		return nil, err
	}
	data := map[string]string{definitionKey: definition, startKey: start, runKey: t.Run}
	if t.Setup != "" {
		data[setupKey] = t.Setup
	}
	for i, name := range t.workdirFiles() {
		data[fileKey(i)] = t.Workdir[name]
	}
	return data, nil
}

func (t Task) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: t.Namespace, Labels: trainingjob.Merge(t.Labels, objectLabels(t.Name)), Annotations: maps.Clone(t.Annotations)}
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

func count(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
