package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// batchVersion is the group and version of Jobs.
var batchVersion = schema.GroupVersion{Group: "batch", Version: "v1"}

// job is what a master reads of a Job. The types of k8s.io/api/batch/v1 contain those of several other groups, which would
// make the image of every worker half a megabyte larger.
type job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Suspend *bool `json:"suspend,omitempty"`
	} `json:"spec"`
}

func (j *job) suspended() bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }

// DeepCopyObject copies a Job.
func (j *job) DeepCopyObject() runtime.Object {
	copied := *j
	j.DeepCopyInto(&copied.ObjectMeta)
	if j.Spec.Suspend != nil {
		copied.Spec.Suspend = new(*j.Spec.Suspend)
	}
	return &copied
}

func addJob(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(batchVersion.WithKind("Job"), &job{})
	metav1.AddToGroupVersion(scheme, batchVersion)
	return nil
}
