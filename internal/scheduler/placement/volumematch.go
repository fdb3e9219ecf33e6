package placement

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// These rules are those of k8s.io/component-helpers/storage/volume, which imports client-go's scheme: a quarter of what
// elastic-sim would compile besides. The tests of this package compare them with it.
const (
	bindCompleted = "pv.kubernetes.io/bind-completed"
	// selectedNode is kube-scheduler's mark of the node for which a volume is being provisioned.
	selectedNode  = "volume.kubernetes.io/selected-node"
	noProvisioner = "kubernetes.io/no-provisioner"
)

// classOfClaim is the name of a claim's StorageClass; "" for none. The annotation is older than the field, and counts first.
func classOfClaim(claim *corev1.PersistentVolumeClaim) string {
	if class, found := claim.Annotations[corev1.BetaStorageClassAnnotation]; found {
		return class
	}
	return valueOf(claim.Spec.StorageClassName)
}

func classOfVolume(pv *corev1.PersistentVolume) string {
	if class, found := pv.Annotations[corev1.BetaStorageClassAnnotation]; found {
		return class
	}
	return pv.Spec.StorageClassName
}

func valueOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// provisions reports whether volumes are made for claims of a class.
func provisions(class *storagev1.StorageClass) bool {
	return class != nil && class.Provisioner != noProvisioner
}

// reachable reports whether a volume can be mounted on nodes with these labels.
func reachable(pv *corev1.PersistentVolume, of map[string]string) bool {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return true
	}
	matches, err := corev1helpers.MatchNodeSelectorTerms(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: of}}, pv.Spec.NodeAffinity.Required)
	return err == nil && matches
}

// isBoundTo reports whether a volume names a claim as its own.
func isBoundTo(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && ref.Name == claim.Name && ref.Namespace == claim.Namespace && (ref.UID == "" || ref.UID == claim.UID)
}

// boundTo is a volume as a claim's own.
func boundTo(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	pv = pv.DeepCopy()
	pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	return pv
}

// matchingVolume is the volume that a claim gets on a node, or without one on any: its own, or else the smallest that is
// free. nil for none. Volumes in without are not considered.
func matchingVolume(claim *corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume, on *corev1.Node, without map[string]*corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	selector := labels.Everything()
	if claim.Spec.Selector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(claim.Spec.Selector); err != nil {
			return nil, err
		}
	}
	var smallest *corev1.PersistentVolume
	for _, pv := range volumes {
		own := isBoundTo(pv, claim)
		switch {
		case without[pv.Name] != nil, pv.Spec.ClaimRef != nil && !own, !suits(pv, claim):
		case own && on != nil && !reachable(pv, on.Labels):
			return nil, nil //nolint:nilnil // it has no other
		case own:
			return pv, nil
		case pv.Status.Phase != corev1.VolumeAvailable, !selector.Matches(labels.Set(pv.Labels)), classOfVolume(pv) != classOfClaim(claim):
		case on != nil && (!reachable(pv, on.Labels) || !hasAccessModes(pv, claim)):
		case smallest == nil || sizeOf(smallest, pv) > 0:
			smallest = pv
		}
	}
	return smallest, nil
}

// suits reports whether a volume is large enough for a claim, of its mode and attributes, and there to stay.
func suits(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	has, wants := pv.Spec.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return has.Cmp(wants) >= 0 && modeOf(pv.Spec.VolumeMode) == modeOf(claim.Spec.VolumeMode) && pv.DeletionTimestamp == nil &&
		valueOf(pv.Spec.VolumeAttributesClassName) == valueOf(claim.Spec.VolumeAttributesClassName)
}

func modeOf(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if mode == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *mode
}

func sizeOf(pv, other *corev1.PersistentVolume) int {
	size := pv.Spec.Capacity[corev1.ResourceStorage]
	return size.Cmp(other.Spec.Capacity[corev1.ResourceStorage])
}

// hasAccessModes reports whether a volume has all access modes of a claim.
func hasAccessModes(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	has := map[corev1.PersistentVolumeAccessMode]bool{}
	for _, mode := range pv.Spec.AccessModes {
		has[mode] = true
	}
	for _, mode := range claim.Spec.AccessModes {
		if !has[mode] {
			return false
		}
	}
	return true
}
