package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// ValidateLocalQueue reports why a queue would be refused.
func ValidateLocalQueue(queue *kueue.LocalQueue) field.ErrorList {
	path := field.NewPath("spec")
	errs := metadata(&queue.ObjectMeta, true)
	if queue.Spec.ClusterQueue != "" {
		errs = append(errs, reference(queue.Spec.ClusterQueue, path.Child("clusterQueue"))...)
	}
	return append(errs, stopPolicy(queue.Spec.StopPolicy, path.Child("stopPolicy"))...)
}

// ValidateLocalQueueUpdate reports why a change of a queue would be refused. Its ClusterQueue is immutable, but the API
// server lets it be set where there was none, and be removed.
func ValidateLocalQueueUpdate(updated, existing *kueue.LocalQueue) field.ErrorList {
	errs := ValidateLocalQueue(updated)
	if was, is := existing.Spec.ClusterQueue, updated.Spec.ClusterQueue; was != "" && is != "" && was != is {
		errs = append(errs, immutable(field.NewPath("spec", "clusterQueue"), was, is, "make another LocalQueue"))
	}
	return errs
}
