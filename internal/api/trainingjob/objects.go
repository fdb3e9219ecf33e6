// A program that runs in pods only renders no objects, whose types would make the image of every worker larger.

//go:build !podsonly

package trainingjob

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Object is one of a job's objects.
type Object interface {
	metav1.Object
	runtime.Object
}

// Objects make up a job. The Job is created first, and suspended: it owns the others, which are therefore created
// with its UID, and it starts its master only when it is resumed, with everything in place.
type Objects struct {
	Job            *batchv1.Job
	ConfigMap      *corev1.ConfigMap
	Status         *corev1.ConfigMap
	Model          *corev1.ConfigMap
	Credentials    *corev1.Secret
	ServiceAccount *corev1.ServiceAccount // nil, with Role and RoleBinding, when the user names an account
	Role           *rbacv1.Role
	RoleBinding    *rbacv1.RoleBinding
	Lease          *coordinationv1.Lease
	Service        *corev1.Service
	MinJob         *batchv1.Job // nil without a queue; Reach completes it when the Service has its address
}

// Render writes the objects of a job. The definition is valid (Definition.Problems is empty), and the credentials are
// those of the job's Secret wherever the ConfigMap is used.
func Render(d Definition, c Credentials) (*Objects, error) {
	job, err := d.batchJob()
	if err != nil {
		return nil, err
	}
	data, err := d.ConfigData()
	if err != nil {
		return nil, err
	}
	data[SignatureKey] = Sign(data, c)
	status, err := json.Marshal(Status{Phase: PhasePending})
	if err != nil {
		return nil, fmt.Errorf("encode the first status: %w", err)
	}
	name := d.Job.Name
	o := &Objects{
		Job: job,
		ConfigMap: &corev1.ConfigMap{
			TypeMeta: typeMeta("v1", "ConfigMap"), ObjectMeta: d.meta(ConfigMapName(name)), Data: data,
		},
		Status: &corev1.ConfigMap{
			TypeMeta: typeMeta("v1", "ConfigMap"), ObjectMeta: d.meta(StatusName(name)),
			Data: map[string]string{StatusKey: string(status)},
		},
		Model: &corev1.ConfigMap{
			TypeMeta: typeMeta("v1", "ConfigMap"), ObjectMeta: d.meta(ModelName(name)),
		},
		Credentials: &corev1.Secret{
			TypeMeta: typeMeta("v1", "Secret"), ObjectMeta: d.meta(CredentialsName(name)),
			Type: corev1.SecretTypeOpaque,
			Data: map[string][]byte{
				TLSCertificateKey: c.Certificate, TLSPrivateKey: c.PrivateKey, TokenKey: []byte(c.Token),
			},
		},
		Lease: &coordinationv1.Lease{
			TypeMeta: typeMeta("coordination.k8s.io/v1", "Lease"), ObjectMeta: d.meta(MasterName(name)),
		},
		Service: d.Service(),
	}
	if d.Queue != nil {
		group := groupName(name, c)
		d.Queue.addToGroup(&o.Job.Spec.Template, group, d.Min+1)
		if o.MinJob, err = d.minJob(group); err != nil {
			return nil, err
		}
	}
	if d.ServiceAccountName == "" {
		o.ServiceAccount = &corev1.ServiceAccount{
			TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: d.meta(ServiceAccountName(name)),
		}
		o.Role, o.RoleBinding = d.role(), d.roleBinding()
	}
	return o, nil
}

// Parts are the objects that the Job owns, in the order in which they are created: the minimum after the Service.
func (o *Objects) Parts() []Object {
	parts := []Object{o.ConfigMap, o.Status, o.Model, o.Credentials}
	if o.ServiceAccount != nil {
		parts = append(parts, o.ServiceAccount, o.Role, o.RoleBinding)
	}
	parts = append(parts, o.Lease, o.Service)
	if o.MinJob != nil {
		parts = append(parts, o.MinJob)
	}
	return parts
}

// NamedParts are the parts of a job with nothing but their names, in the order of Parts: enough to find and delete
// them. With ownAccount false there are no RBAC objects, with queued false there is no minimum.
func NamedParts(job JobRef, ownAccount, queued bool) []Object {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: job.Namespace} }
	o := &Objects{
		ConfigMap:   &corev1.ConfigMap{ObjectMeta: named(ConfigMapName(job.Name))},
		Status:      &corev1.ConfigMap{ObjectMeta: named(StatusName(job.Name))},
		Model:       &corev1.ConfigMap{ObjectMeta: named(ModelName(job.Name))},
		Credentials: &corev1.Secret{ObjectMeta: named(CredentialsName(job.Name))},
		Lease:       &coordinationv1.Lease{ObjectMeta: named(MasterName(job.Name))},
		Service:     &corev1.Service{ObjectMeta: named(MasterName(job.Name))},
	}
	if ownAccount {
		account := named(ServiceAccountName(job.Name))
		o.ServiceAccount, o.Role, o.RoleBinding = &corev1.ServiceAccount{ObjectMeta: account}, &rbacv1.Role{ObjectMeta: account}, &rbacv1.RoleBinding{ObjectMeta: account}
	}
	if queued {
		o.MinJob = &batchv1.Job{ObjectMeta: named(MinJobName(job.Name))}
	}
	return o.Parts()
}

// Own makes the Job the owner of every part.
func (o *Objects) Own(job JobRef) {
	job.Own(o.Parts())
	if o.MinJob != nil {
		o.MinJob.Spec.Template.Labels[LabelJobUID] = string(job.UID)
	}
}

// ConfigData is the data of ConfigMap NAME-job.
func (d Definition) ConfigData() (map[string]string, error) {
	template, err := d.WorkerTemplate()
	if err != nil {
		return nil, err
	}
	data := map[string]string{ModelKey: d.ModelText}
	for key, value := range map[string]any{
		JobKey: d.job(),
		WorkersKey: Workers{
			Min: d.Min, Max: d.Max, MinPriorityClassName: d.MinPriorityClassName, Queue: d.Queue, Template: template,
		},
		DefinitionKey: d.Settings,
	} {
		if data[key], err = Encode(value); err != nil {
			return nil, fmt.Errorf("encode %s: %w", key, err)
		}
	}
	return data, nil
}

// Encode is a value as indented JSON for a ConfigMap. Characters that HTML escapes stay as they are: pod_overrides are
// read back in the user's spelling, such as "a && b".
func Encode(value any) (string, error) {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return text.String(), err
}

func (d Definition) batchJob() (*batchv1.Job, error) {
	template, err := d.MasterTemplate()
	if err != nil {
		return nil, err
	}
	return &batchv1.Job{
		TypeMeta:   typeMeta("batch/v1", "Job"),
		ObjectMeta: d.meta(d.Job.Name),
		Spec: batchv1.JobSpec{
			Suspend:               new(true),
			Completions:           new(int32(1)),
			Parallelism:           new(int32(1)),
			BackoffLimit:          new(int32(backoffLimit)),
			ActiveDeadlineSeconds: clone(d.ActiveDeadlineSeconds),
			// A new master starts when the old one is gone, never beside it.
			PodReplacementPolicy: new(batchv1.Failed),
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: append([]batchv1.PodFailurePolicyRule{
				{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: onExitCode(RoleMaster, ExitJobFailed)},
			}, d.disruptions(RoleMaster)...)},
			Template: template,
		},
	}, nil
}

// clone is a copy that shares nothing.
func clone[T any](value *T) *T {
	if value == nil {
		return nil
	}
	return new(*value)
}

// disruptions are the ends of a pod that are nobody's fault: it is made again, and they do not count.
func (d Definition) disruptions(role string) []batchv1.PodFailurePolicyRule {
	onCondition := func(condition corev1.PodConditionType) batchv1.PodFailurePolicyRule {
		return batchv1.PodFailurePolicyRule{
			Action:          batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: condition, Status: corev1.ConditionTrue}},
		}
	}
	rules := []batchv1.PodFailurePolicyRule{onCondition(corev1.DisruptionTarget)}
	if d.Queue != nil {
		rules = append(rules, onCondition(terminationTarget))
	}
	return append(rules, batchv1.PodFailurePolicyRule{
		Action: batchv1.PodFailurePolicyActionIgnore, OnExitCodes: onExitCode(role, ExitStopped),
	})
}

func onExitCode(container string, code int32) *batchv1.PodFailurePolicyOnExitCodesRequirement {
	return &batchv1.PodFailurePolicyOnExitCodesRequirement{
		ContainerName: new(container), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code},
	}
}

// Service gives the workers an address of the master that outlives its pod. Not-ready addresses are published: the
// workers must reach a master that has just started.
func (d Definition) Service() *corev1.Service {
	return &corev1.Service{
		TypeMeta: typeMeta("v1", "Service"), ObjectMeta: d.meta(MasterName(d.Job.Name)),
		Spec: corev1.ServiceSpec{
			Type:                     corev1.ServiceTypeClusterIP,
			PublishNotReadyAddresses: true,
			Selector:                 map[string]string{LabelJobName: d.Job.Name, LabelRole: RoleMaster},
			Ports: []corev1.ServicePort{
				{Name: "grpc", Port: MasterPort, TargetPort: intstr.FromInt32(MasterPort), Protocol: corev1.ProtocolTCP},
				{Name: "http", Port: StatusPort, TargetPort: intstr.FromInt32(StatusPort), Protocol: corev1.ProtocolTCP},
			},
		},
	}
}

func (d Definition) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        name,
		Namespace:   d.Job.Namespace,
		Labels:      Merge(d.Labels, objectLabels(d.Job.Name)),
		Annotations: maps.Clone(d.Annotations),
	}
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

// OwnedBy reports whether an object is a part of the Job with that UID.
func OwnedBy(o metav1.Object, job JobRef) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == job.UID })
}

// Own makes the Job the owner of objects and labels each with its UID, so that nothing is left when the Job is deleted
// by hand, and nobody else's object is taken for the job's.
func (j JobRef) Own(objects []Object) {
	for _, o := range objects {
		o.SetOwnerReferences([]metav1.OwnerReference{j.OwnerReference()})
		o.SetLabels(Merge(o.GetLabels(), map[string]string{LabelJobUID: string(j.UID)}))
	}
}
