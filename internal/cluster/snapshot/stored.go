//go:build !offline

package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
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
		VersionedParams(&metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, Force: new(true), FieldManager: "forecast"}, metav1.ParameterCodec).
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
