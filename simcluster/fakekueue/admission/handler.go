package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation"
)

// maxReview is more than two objects of the largest size that etcd takes.
const maxReview = 8 << 20

// A Cluster answers what the decisions need to know besides the object.
type Cluster struct {
	// DefaultQueue reports whether a namespace has a LocalQueue named default.
	DefaultQueue func(namespace string) bool
	// Owner reads a controller of an object that is being created.
	Owner OwnerReader
}

// A review decides about one request.
type review func(ctx context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

// Handler serves the webhooks at Kueue's own paths (Paths).
func Handler(cluster Cluster) http.Handler {
	mux := http.NewServeMux()
	for path, decide := range cluster.reviews() {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { serve(w, r, decide) })
	}
	return mux
}

// Paths of the webhooks.
const (
	MutateJobPath            = "/mutate-batch-v1-job"
	ValidateJobPath          = "/validate-batch-v1-job"
	MutatePodPath            = "/mutate--v1-pod"
	ValidatePodPath          = "/validate--v1-pod"
	MutateClusterQueuePath   = "/mutate-kueue-x-k8s-io-v1beta2-clusterqueue"
	ValidateClusterQueuePath = "/validate-kueue-x-k8s-io-v1beta2-clusterqueue"
	ValidateCohortPath       = "/validate-kueue-x-k8s-io-v1beta2-cohort"
	MutateFlavorPath         = "/mutate-kueue-x-k8s-io-v1beta2-resourceflavor"
	ValidateFlavorPath       = "/validate-kueue-x-k8s-io-v1beta2-resourceflavor"
)

func (c Cluster) reviews() map[string]review {
	return map[string]review{
		MutateJobPath:          c.mutateJob,
		MutatePodPath:          c.mutatePod,
		MutateClusterQueuePath: keepInUse,
		MutateFlavorPath:       keepInUse,
		ValidateJobPath: validating(func(request *admissionv1.AdmissionRequest, job, old *batchv1.Job) field.ErrorList {
			return ValidateJob(job, old, c.DefaultQueue(request.Namespace))
		}),
		ValidatePodPath: validating(func(request *admissionv1.AdmissionRequest, pod, old *corev1.Pod) field.ErrorList {
			return ValidatePod(pod, old, c.DefaultQueue(request.Namespace))
		}),
		ValidateClusterQueuePath: validating(func(_ *admissionv1.AdmissionRequest, queue, old *kueue.ClusterQueue) field.ErrorList {
			if old != nil {
				return validation.ValidateClusterQueueUpdate(queue, old)
			}
			return validation.ValidateClusterQueue(queue)
		}),
		ValidateCohortPath: validating(func(_ *admissionv1.AdmissionRequest, cohort, _ *kueue.Cohort) field.ErrorList {
			return validation.ValidateCohort(cohort)
		}),
		ValidateFlavorPath: validating(func(_ *admissionv1.AdmissionRequest, flavor, _ *kueue.ResourceFlavor) field.ErrorList {
			return validation.ValidateResourceFlavor(flavor)
		}),
	}
}

func serve(w http.ResponseWriter, r *http.Request, decide review) {
	var in admissionv1.AdmissionReview
	err := json.NewDecoder(io.LimitReader(r.Body, maxReview)).Decode(&in)
	if err == nil && in.Request == nil {
		err = fmt.Errorf("there is no request in it")
	}
	if err != nil {
		http.Error(w, fmt.Sprintf("the body is not an AdmissionReview: %v", err), http.StatusBadRequest)
		return
	}
	response := decide(r.Context(), in.Request)
	response.UID = in.Request.UID
	out, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: in.TypeMeta, Response: response})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// The API server notices by itself when its answer does not arrive.
	_, _ = w.Write(out)
}

func (c Cluster) mutateJob(ctx context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	job, err := decode[batchv1.Job](request.Object.Raw)
	if err != nil {
		return failed(http.StatusBadRequest, err)
	}
	job.Namespace = request.Namespace
	queued, err := Queued(ctx, job, c.Owner)
	if err != nil {
		return failed(http.StatusInternalServerError, err)
	}
	return patched(DefaultJob(job, c.DefaultQueue(request.Namespace), queued))
}

func (c Cluster) mutatePod(ctx context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	pod, err := decode[corev1.Pod](request.Object.Raw)
	if err != nil {
		return failed(http.StatusBadRequest, err)
	}
	pod.Namespace = request.Namespace
	queued, err := Queued(ctx, pod, c.Owner)
	if err != nil {
		return failed(http.StatusInternalServerError, err)
	}
	patch, err := DefaultPod(pod, c.DefaultQueue(request.Namespace), queued)
	if err != nil {
		return failed(http.StatusInternalServerError, err)
	}
	return patched(patch)
}

// keepInUse gives a queue or flavor the finalizer that keeps it while something refers to it.
func keepInUse(_ context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	object, err := decode[metav1.PartialObjectMetadata](request.Object.Raw)
	if err != nil {
		return failed(http.StatusBadRequest, err)
	}
	return patched(withFinalizer(object.Finalizers, kueue.ResourceInUseFinalizer))
}

// validating makes a review of a validation; a request that creates has no old object.
func validating[T any](validate func(request *admissionv1.AdmissionRequest, object, old *T) field.ErrorList) review {
	return func(_ context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		object, err := decode[T](request.Object.Raw)
		if err != nil {
			return failed(http.StatusBadRequest, err)
		}
		var old *T
		if len(request.OldObject.Raw) > 0 {
			if old, err = decode[T](request.OldObject.Raw); err != nil {
				return failed(http.StatusBadRequest, err)
			}
		}
		if err := validate(request, object, old).ToAggregate(); err != nil {
			return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: err.Error()}}
		}
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
}

func decode[T any](raw []byte) (*T, error) {
	object := new(T)
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, fmt.Errorf("the request's object: %w", err)
	}
	return object, nil
}

func patched(patch Patch) *admissionv1.AdmissionResponse {
	if len(patch) == 0 {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return failed(http.StatusInternalServerError, err)
	}
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: text, PatchType: ptr.To(admissionv1.PatchTypeJSONPatch)}
}

func failed(code int32, err error) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: code, Message: err.Error()}}
}
