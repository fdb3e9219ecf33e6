package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// maxOwners is how far Kueue follows a chain of controllers (managedOwnersChainLimit).
const maxOwners = 10

// An OwnerReader reads the metadata of a Job or pod that controls another object. It must see what was created before
// that object: a cache that may lag behind has to ask the API server for what it does not know.
type OwnerReader func(ctx context.Context, namespace string, owner *metav1.OwnerReference) (metav1.Object, error)

// knownOwner reports whether Kueue's integrations that are played here cover an owner's kind.
func knownOwner(owner *metav1.OwnerReference) bool {
	return owner.APIVersion == batchv1.SchemeGroupVersion.String() && owner.Kind == "Job" ||
		owner.APIVersion == corev1.SchemeGroupVersion.String() && owner.Kind == "Pod"
}

// ownerKnown reports whether an object's controller is of a kind that Kueue manages, in a queue or not.
func ownerKnown(object metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(object)
	return owner != nil && knownOwner(owner)
}

// Queued reports whether one of the controllers above an object waits in a queue of its own, so that the object does
// not.
func Queued(ctx context.Context, object metav1.Object, read OwnerReader) (bool, error) {
	var seen []types.UID
	for range maxOwners {
		owner := metav1.GetControllerOfNoCopy(object)
		if owner == nil || !knownOwner(owner) || slices.Contains(seen, owner.UID) {
			return false, nil
		}
		seen = append(seen, owner.UID)
		parent, err := read(ctx, object.GetNamespace(), owner)
		if apierrors.IsNotFound(err) {
			return false, fmt.Errorf("workload owner not found: %w", err)
		}
		if err != nil {
			return false, err
		}
		if parent.GetUID() != owner.UID {
			return false, nil
		}
		if parent.GetLabels()[kueue.QueueLabel] != "" {
			return true, nil
		}
		object = parent
	}
	return false, errors.New("managed owners chain limit reached")
}
