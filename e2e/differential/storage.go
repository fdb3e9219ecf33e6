package differential

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// Storage is the volume claims of a snapshot, and what they are bound to.
type Storage struct {
	Claims      []*corev1.PersistentVolumeClaim
	Volumes     []*corev1.PersistentVolume
	Classes     []*storagev1.StorageClass
	Nodes       []*storagev1.CSINode
	Drivers     []*storagev1.CSIDriver
	Attachments []*storagev1.VolumeAttachment
}

func (s Storage) clone() Storage {
	return Storage{cloned(s.Claims), cloned(s.Volumes), cloned(s.Classes), cloned(s.Nodes), cloned(s.Drivers), cloned(s.Attachments)}
}

func (s Storage) objects() (objects []runtime.Object) {
	objects = appendObjects(objects, s.Classes)
	objects = appendObjects(objects, s.Drivers)
	objects = appendObjects(objects, s.Nodes)
	objects = appendObjects(objects, s.Volumes)
	objects = appendObjects(objects, s.Claims)
	return appendObjects(objects, s.Attachments)
}

func (s Storage) forEngine() *placement.Storage {
	return &placement.Storage{
		Claims: s.Claims, Volumes: s.Volumes, Classes: s.Classes, Nodes: s.Nodes, Drivers: s.Drivers, Attachments: s.Attachments,
	}
}

// The classes and the driver of snapshots.
const (
	csiDriver      = "csi.example.com"
	networkClass   = "network"   // volumes are made when the first pod comes
	localClass     = "local"     // volumes exist; a claim gets one when the first pod comes
	immediateClass = "immediate" // claims are bound at once
)

// storage makes the classes, what the nodes' drivers can do, and volumes that wait for claims.
func (g *generator) storage() {
	s := &g.made.Storage
	delayed, atOnce := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	class := func(name, provisioner string, mode *storagev1.VolumeBindingMode) *storagev1.StorageClass {
		c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Provisioner: provisioner, VolumeBindingMode: mode}
		s.Classes = append(s.Classes, c)
		return c
	}
	network := class(networkClass, csiDriver, &delayed)
	if g.chance(0.5) {
		network.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{
			Key: corev1.LabelTopologyZone, Values: g.someZones(),
		}}}}
	}
	class(localClass, volumehelpers.NotSupportedProvisioner, &delayed)
	class(immediateClass, csiDriver, &atOnce)
	if g.chance(0.9) {
		driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: csiDriver, UID: csiDriver}}
		if g.chance(0.3) {
			yes := true
			driver.Spec.PreventPodSchedulingIfMissing = &yes
		}
		s.Drivers = append(s.Drivers, driver)
	}
	for _, node := range g.made.Nodes {
		if g.chance(0.9) {
			s.Nodes = append(s.Nodes, g.csiNode(node))
		}
		for range g.within(span{0, 2}) {
			g.localVolume(node)
		}
	}
}

func (g *generator) someZones() []string {
	some := []string{pick(g.rng, zones...)}
	if other := pick(g.rng, zones...); !slices.Contains(some, other) {
		some = append(some, other)
	}
	return some
}

func (g *generator) csiNode(node *corev1.Node) *storagev1.CSINode {
	object := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: types.UID("csi-" + node.Name)}}
	if g.chance(0.85) {
		driver := storagev1.CSINodeDriver{Name: csiDriver, NodeID: node.Name}
		if g.chance(0.8) {
			count := int32(g.within(span{1, 4}))
			driver.Allocatable = &storagev1.VolumeNodeResources{Count: &count}
		}
		object.Spec.Drivers = []storagev1.CSINodeDriver{driver}
	}
	return object
}

// localVolume is a volume on a node that waits for a claim.
func (g *generator) localVolume(node *corev1.Node) {
	pv := g.volume(localClass, pick(g.rng, "10Gi", "20Gi", "50Gi"))
	if hostname := node.Labels[corev1.LabelHostname]; hostname != "" && g.chance(0.8) {
		pv.Spec.NodeAffinity = onlyIn(corev1.LabelHostname, hostname)
	} else if g.chance(0.7) {
		pv.Spec.NodeAffinity = onlyIn(corev1.LabelTopologyZone, pick(g.rng, zones...))
	}
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data/" + pv.Name}}
}

func onlyIn(label string, values ...string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpIn, Values: values}},
	}}}}
}

// volume is a volume of the driver that is available. No two are of the same size, as the order of the scheduler's cache
// would choose between them.
func (g *generator) volume(class, size string) *corev1.PersistentVolume {
	g.serial++
	name := fmt.Sprintf("volume-%03d", g.serial)
	capacity := resource.MustParse(size)
	capacity.Add(*resource.NewQuantity(int64(g.serial)<<20, resource.BinarySI))
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: capacity}, StorageClassName: class,
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: csiDriver, VolumeHandle: name,
			}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
	if g.chance(0.1) {
		pv.Spec.AccessModes = pv.Spec.AccessModes[:1]
	}
	g.made.Storage.Volumes = append(g.made.Storage.Volumes, pv)
	return pv
}

// mount gives a pod volume claims: new ones, or one that another pod has. node is where it runs; nil: it waits.
func (g *generator) mount(pod *corev1.Pod, node *corev1.Node) {
	for i := range g.within(span{1, 2}) {
		name := fmt.Sprintf("volume-%d", i)
		source := corev1.VolumeSource{}
		if g.chance(0.1) {
			source.Ephemeral = &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}
			claim := g.volumeClaim(pod.Namespace, pod.Name+"-"+name, node)
			source.Ephemeral.VolumeClaimTemplate.Spec = *claim.Spec.DeepCopy()
			source.Ephemeral.VolumeClaimTemplate.Spec.VolumeName = ""
			yes := true
			claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: &yes}}
		} else {
			source.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: g.claimFor(pod, node)}
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	}
}

// claimFor names a claim of the pod's namespace that it uses.
func (g *generator) claimFor(pod *corev1.Pod, node *corev1.Node) string {
	if node == nil && g.chance(0.02) {
		return "missing"
	}
	var others []string
	for _, claim := range g.made.Storage.Claims {
		twice := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
		})
		if twice && claim.Spec.VolumeName == "" { // it would be bound twice
			continue
		}
		if claim.Namespace == pod.Namespace && len(claim.OwnerReferences) == 0 && (node == nil || claim.Spec.VolumeName != "") {
			others = append(others, claim.Name)
		}
	}
	if len(others) > 0 && g.chance(0.35) {
		return pick(g.rng, others...)
	}
	g.serial++
	return g.volumeClaim(pod.Namespace, fmt.Sprintf("claim-%03d", g.serial), node).Name
}

// volumeClaim is a claim for a pod on a node, which is bound, or for one that waits.
func (g *generator) volumeClaim(namespace, name string, node *corev1.Node) *corev1.PersistentVolumeClaim {
	class := pick(g.rng, networkClass, networkClass, localClass, localClass, immediateClass)
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(namespace + "-" + name)},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(pick(g.rng, "5Gi", "15Gi", "30Gi"))}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	if g.chance(0.35) {
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	}
	g.made.Storage.Claims = append(g.made.Storage.Claims, claim)
	switch {
	case node != nil, class == immediateClass && g.chance(0.9), g.chance(0.35):
		g.bound(claim, node)
	case g.chance(0.03):
		claim.Status.Phase, claim.Spec.VolumeName = corev1.ClaimLost, "gone"
	}
	if node == nil && g.chance(0.02) {
		at := metav1.NewTime(epoch)
		claim.DeletionTimestamp, claim.Finalizers = &at, []string{"kubernetes.io/pvc-protection"}
	}
	return claim
}

// bound binds a claim to a volume of its own, which is reachable from the node, or from a zone.
func (g *generator) bound(claim *corev1.PersistentVolumeClaim, node *corev1.Node) {
	pv := g.volume(*claim.Spec.StorageClassName, "50Gi")
	zone := pick(g.rng, zones...)
	if node != nil && node.Labels[corev1.LabelTopologyZone] != "" {
		zone = node.Labels[corev1.LabelTopologyZone]
	}
	switch g.IntN(5) {
	case 0:
		pv.Labels = map[string]string{pick(g.rng, corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone): zone}
	case 1:
		pv.Labels = map[string]string{corev1.LabelTopologyZone: zone + "__" + pick(g.rng, zones...)}
	case 2, 3:
		pv.Spec.NodeAffinity = onlyIn(corev1.LabelTopologyZone, zone)
	}
	bindVolume(claim, pv)
	if node != nil && g.chance(0.7) || g.chance(0.1) {
		at := node
		if at == nil {
			at = pick(g.rng, g.made.Nodes...)
		}
		g.made.Storage.Attachments = append(g.made.Storage.Attachments, &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "attach-" + pv.Name, UID: types.UID("attach-" + pv.Name)},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: csiDriver, NodeName: at.Name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name},
			},
			Status: storagev1.VolumeAttachmentStatus{Attached: true},
		})
	}
}

// bindVolume does what the controller for volumes does with a claim and its volume.
func bindVolume(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	pv.Status.Phase = corev1.VolumeBound
	metav1.SetMetaDataAnnotation(&pv.ObjectMeta, volumehelpers.AnnBoundByController, "yes")
	claim.Spec.VolumeName = pv.Name
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volumehelpers.AnnBindCompleted, "yes")
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volumehelpers.AnnBoundByController, "yes")
	claim.Status.Phase = corev1.ClaimBound
}
