package differential

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	volumehelpers "k8s.io/component-helpers/storage/volume"
)

var (
	volumeResource      = corev1.SchemeGroupVersion.WithResource("persistentvolumes")
	volumeClaimResource = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	claimResource       = resourcev1.SchemeGroupVersion.WithResource("resourceclaims")
)

// control reacts to what the scheduler asks of other controllers, which are not here.
func (p *process) control() {
	p.client.PrependReactor("update", "persistentvolumes", p.updateVolume)
	p.client.PrependReactor("update", "persistentvolumeclaims", p.updateVolumeClaim)
	p.client.PrependReactor("create", "resourceclaims", p.createClaim)
	p.client.PrependReactor("update", "resourceclaims", p.updateClaim)
}

// nextVersion is called with the mutex held. The scheduler passes over what has the version that it knows.
func (p *process) nextVersion() string {
	p.version++
	return strconv.Itoa(p.version)
}

// updateVolume completes the binding of a volume that the scheduler has chosen for a claim (persistentvolume controller).
func (p *process) updateVolume(action clienttesting.Action) (bool, runtime.Object, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	pv := action.(clienttesting.UpdateAction).GetObject().(*corev1.PersistentVolume).DeepCopy()
	object, err := p.client.Tracker().Get(volumeClaimResource, pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name)
	if err != nil {
		return true, nil, err
	}
	claim := object.(*corev1.PersistentVolumeClaim).DeepCopy()
	p.bindTogether(claim, pv)
	err = errors.Join(p.client.Tracker().Update(volumeResource, pv.DeepCopy(), ""),
		p.client.Tracker().Update(volumeClaimResource, claim, claim.Namespace))
	return true, pv, err
}

// updateVolumeClaim makes a volume for a claim for which the scheduler has selected a node (external provisioner).
func (p *process) updateVolumeClaim(action clienttesting.Action) (bool, runtime.Object, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	claim := action.(clienttesting.UpdateAction).GetObject().(*corev1.PersistentVolumeClaim).DeepCopy()
	at := slices.IndexFunc(p.static.Nodes, func(n *corev1.Node) bool { return n.Name == claim.Annotations[volumehelpers.AnnSelectedNode] })
	if at < 0 {
		return true, nil, fmt.Errorf("claim %s has no selected node", claim.Name)
	}
	pv := provisioned(claim, p.static.Nodes[at])
	p.bindTogether(claim, pv)
	// The scheduler must know the volume before the claim that names it.
	err := errors.Join(p.client.Tracker().Create(volumeResource, pv, ""),
		p.client.Tracker().Update(volumeClaimResource, claim.DeepCopy(), claim.Namespace))
	return true, claim, err
}

// provisioned is a new volume in the zone of a node.
func provisioned(claim *corev1.PersistentVolumeClaim, node *corev1.Node) *corev1.PersistentVolume {
	name := "provisioned-for-" + claim.Namespace + "-" + claim.Name
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("100Gi")},
			AccessModes: claim.Spec.AccessModes, StorageClassName: *claim.Spec.StorageClassName,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: csiDriver, VolumeHandle: name}},
		},
	}
	if zone := node.Labels[corev1.LabelTopologyZone]; zone != "" {
		pv.Spec.NodeAffinity = onlyIn(corev1.LabelTopologyZone, zone)
	}
	return pv
}

// bindTogether binds a claim and a volume to each other.
func (p *process) bindTogether(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	bindVolume(claim, pv)
	pv.ResourceVersion, claim.ResourceVersion = p.nextVersion(), p.nextVersion()
}

// createClaim names the claim of a pod's extended resources.
func (p *process) createClaim(action clienttesting.Action) (bool, runtime.Object, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	claim := action.(clienttesting.CreateAction).GetObject().(*resourcev1.ResourceClaim).DeepCopy()
	claim.ResourceVersion = p.nextVersion()
	claim.Name = cmp.Or(claim.Name, claim.GenerateName+claim.ResourceVersion)
	claim.UID = types.UID(claim.Namespace + claim.Name)
	return true, claim, p.client.Tracker().Create(claimResource, claim.DeepCopy(), claim.Namespace)
}

// updateClaim stores a claim, or its status.
func (p *process) updateClaim(action clienttesting.Action) (bool, runtime.Object, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	claim := action.(clienttesting.UpdateAction).GetObject().(*resourcev1.ResourceClaim).DeepCopy()
	claim.ResourceVersion = p.nextVersion()
	return true, claim, p.client.Tracker().Update(claimResource, claim.DeepCopy(), claim.Namespace)
}

// stored has the claims and volumes as they now are.
func (p *process) stored(s *Snapshot) error {
	if len(s.Storage.Classes) > 0 {
		list, err := p.client.Tracker().List(volumeClaimResource, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), "")
		if err != nil {
			return err
		}
		s.Storage.Claims = cloned(pointers(list.(*corev1.PersistentVolumeClaimList).Items))
		if list, err = p.client.Tracker().List(volumeResource, corev1.SchemeGroupVersion.WithKind("PersistentVolume"), ""); err != nil {
			return err
		}
		s.Storage.Volumes = cloned(pointers(list.(*corev1.PersistentVolumeList).Items))
	}
	if len(s.Devices.Classes) > 0 {
		list, err := p.client.Tracker().List(claimResource, resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"), "")
		if err != nil {
			return err
		}
		s.Devices.Claims = cloned(pointers(list.(*resourcev1.ResourceClaimList).Items))
	}
	return nil
}

// versioned gives the objects that the scheduler compares by version a first one.
func (p *process) versioned(s *Snapshot) {
	first := p.nextVersion()
	for _, claim := range s.Storage.Claims {
		claim.ResourceVersion = first
	}
	for _, pv := range s.Storage.Volumes {
		pv.ResourceVersion = first
	}
	for _, claim := range s.Devices.Claims {
		claim.ResourceVersion = first
	}
}
