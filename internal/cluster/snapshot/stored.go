package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/manifest"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/podadmission"
)

// stored is the API server's answer about the object of a job: whether it would store it or, where an object of the
// name exists, what becomes of that. nil if there was no dry run, or no answer.
func stored(ctx context.Context, client *cluster.Client, job forecast.Job) *forecast.Stored {
	object, read := job.Object.(*unstructured.Unstructured)
	if !read {
		return nil
	}
	api, plural := restOf(client.Kubernetes(), object)
	if api == nil || job.Noun == podGroup {
		return nil
	}
	object = asWritten(object)
	text, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	created := api.Post().Namespace(object.GetNamespace()).Resource(plural).
		VersionedParams(&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ParameterCodec).
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(text).Do(ctx)
	if !apierrors.IsAlreadyExists(created.Error()) {
		if refusal := objectRefusal(created.Error()); refusal != nil {
			return &forecast.Stored{Refusal: refusal}
		}
		return nil
	}
	applied, err := api.Patch(types.ApplyPatchType).Namespace(object.GetNamespace()).Resource(plural).Name(object.GetName()).
		VersionedParams(&metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, Force: new(true), FieldManager: dryRunManager}, metav1.ParameterCodec).
		SetHeader("Accept", "application/json").Body(text).Do(ctx).Raw()
	if err != nil {
		return &forecast.Stored{Refusal: objectRefusal(err), Exists: true}
	}
	live := &unstructured.Unstructured{}
	if err := live.UnmarshalJSON(applied); err != nil { // which reads whole numbers as such, unlike encoding/json
		return &forecast.Stored{Exists: true}
	}
	return &forecast.Stored{Exists: true, Live: live}
}

// ofLive is a job with the pods that its object has once it is applied: of one that exists, fields stay that the applied
// one does not have, unless they were applied before. exists is false where that is not known.
func ofLive(job forecast.Job) (live forecast.Job, exists bool) {
	if job.Stored == nil || job.Stored.Live == nil || job.Noun == "DaemonSet" { // whose pods depend on the nodes, too
		return job, false
	}
	object := job.Stored.Live
	contents, err := manifest.NewSet([]*unstructured.Unstructured{object}, manifest.Given{Namespace: job.Namespace}).Read(object)
	if err != nil || len(contents.Jobs) != 1 || len(contents.Jobs[0].Pods()) != len(job.Pods()) {
		return job, false
	}
	job.Stages = contents.Jobs[0].Stages
	return job, true
}

// merged is a job as it is applied, or, where fields stay, as its object then is.
func merged(applied, live forecast.Job) forecast.Job {
	differs := !slices.EqualFunc(applied.Pods(), live.Pods(), func(a, b forecast.Pod) bool {
		return equality.Semantic.DeepEqual(a.Spec, b.Spec) && maps.Equal(withoutUID(a.Labels), withoutUID(b.Labels))
	})
	if !differs {
		return applied
	}
	if removesFields(applied.Stored.Live) {
		live.Approximate = append(slices.Clone(live.Approximate), "it exists with fields that the applied one does not have, and whether they stay depends on how it is applied")
	}
	return live
}

// withoutUID are the labels of a pod that do not come from the Job that exists.
func withoutUID(labels map[string]string) map[string]string {
	labels = maps.Clone(labels)
	delete(labels, batchv1.ControllerUidLabel)
	delete(labels, "controller-uid")
	return labels
}

// removesFields reports whether an object was applied before, so that the same kind of apply removes fields.
func removesFields(object *unstructured.Unstructured) bool {
	_, byKubectl := object.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	return byKubectl || slices.ContainsFunc(object.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "" && m.Manager != dryRunManager
	})
}

// dryRunManager is the field manager of a dry run. Nobody applies anything by this name.
const dryRunManager = "forecast"

// podGroup is the noun of a job that consists of several objects.
const podGroup = "pod group"

// restOf is where the API server has objects of a kind of Kubernetes that create pods; nil for other kinds.
func restOf(kube kubernetes.Interface, object *unstructured.Unstructured) (api rest.Interface, plural string) {
	plural = strings.ToLower(object.GetKind()) + "s"
	switch object.GroupVersionKind().GroupVersion().String() + " " + plural {
	case "v1 pods", "v1 replicationcontrollers":
		return kube.CoreV1().RESTClient(), plural
	case "batch/v1 jobs", "batch/v1 cronjobs":
		return kube.BatchV1().RESTClient(), plural
	case "apps/v1 deployments", "apps/v1 replicasets", "apps/v1 statefulsets", "apps/v1 daemonsets":
		return kube.AppsV1().RESTClient(), plural
	}
	return nil, ""
}

// asWritten is an object without what an API server has added to it.
func asWritten(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	delete(object.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	if object.GetGenerateName() != "" { // the name that it was read with is made up
		object.SetName("")
	}
	return object
}

// mayChange matches refusals that depend on objects that may be planned, or that the forecast computes, or that say
// nothing about the object.
var mayChange = regexp.MustCompile(`exceeded quota|no PriorityClass with name|RuntimeClass "[^"]*" not found|namespaces "[^"]*" not found|no API token found|` +
	`error looking up service account|cannot (create|patch|get) resource`)

// objectRefusal is what an error says about an object; nil if it says nothing.
func objectRefusal(err error) *podadmission.Refusal {
	switch {
	case err == nil, mayChange.MatchString(err.Error()):
		return nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err) && !strings.Contains(err.Error(), "dry run"):
		return &podadmission.Refusal{Message: fmt.Sprint(err)}
	}
	return nil
}
