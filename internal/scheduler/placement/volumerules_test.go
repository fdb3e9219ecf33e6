package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
)

// These are the smallest forms of what the comparison with kube-scheduler (e2e/differential, families about volumes) found.

const diskDriver = "disk.example.com"

// networkDisks binds the claims "data" and "other" to volumes of a driver, of which node a can have so many.
func networkDisks(limit int32) *Storage {
	s := disks(storagev1.VolumeBindingImmediate)
	s.Drivers = []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: diskDriver}}}
	s.Nodes = []*storagev1.CSINode{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: diskDriver, Allocatable: &storagev1.VolumeNodeResources{Count: &limit}},
	}}}}
	for _, claim := range s.Claims {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + claim.Name}}
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: diskDriver, VolumeHandle: claim.Name}
		claim.Spec.VolumeName = pv.Name
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volumehelpers.AnnBindCompleted, "yes")
		s.Volumes = append(s.Volumes, pv)
	}
	return s
}

func TestAnAttachedVolumeThatNoPodOfTheNodeHasCountsBesideThePodThatWantsIt(t *testing.T) {
	b := nodes("a")
	b.Storage = networkDisks(1)
	expect(t, goes(New(b.Snapshot), mounting("first", 0, "data")), "a")
	b.Storage.Attachments = []*storagev1.VolumeAttachment{{Spec: storagev1.VolumeAttachmentSpec{
		Attacher: diskDriver, NodeName: "a", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv-data")},
	}}}
	expect(t, goes(New(b.Snapshot), mounting("first", 0, "data")), "exceed max volume count")
}

func TestANodeWithoutADriverTakesNoPodWithItsVolumesWhereTheDriverSaysSo(t *testing.T) {
	b := nodes("b")
	b.Storage = networkDisks(1)
	b.Storage.Drivers[0].Spec.PreventPodSchedulingIfMissing = new(true)
	b.Version = "v1.36.1"
	expect(t, goes(New(b.Snapshot), mounting("pod", 0, "data")), "b")
	b.Version = "v1.37.1"
	expect(t, goes(New(b.Snapshot), mounting("pod", 0, "data")), "1 disk.example.com CSI driver is not installed on the node")
}

func TestTheZonesOfEphemeralVolumesDoNotCount(t *testing.T) {
	b := nodes("a")
	b.Storage = networkDisks(9)
	b.Storage.Volumes[0].Labels = map[string]string{corev1.LabelTopologyZone: "x"}
	b.Nodes[0].Labels[corev1.LabelTopologyZone] = "z"
	expect(t, goes(New(b.Snapshot), mounting("pod", 0, "data")), "no available volume zone")
	pod := mounting("pod", 0, "")
	pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: b.Storage.Claims[0].Spec},
	}}
	b.Storage.Claims[0].Name = "pod-v"
	expect(t, goes(New(b.Snapshot), pod), "a")
}

func TestAPodGoesWhereItsClaimFillsAVolumeLeast(t *testing.T) {
	b := nodes("a", "b")
	b.Storage = disks(storagev1.VolumeBindingWaitForFirstConsumer, "a", "b")
	b.Storage.Volumes[1].Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("4Gi")}
	b.Version = "v1.36.1"
	expect(t, goes(New(b.Snapshot), mounting("pod", 0, "data")), "a") // both are equal
	b.Version = "v1.37.1"
	expect(t, goes(New(b.Snapshot), mounting("pod", 0, "data")), "b")
}

func TestAPodWithAClaimForOnePodTwiceCanTakeItFromAnother(t *testing.T) {
	b := nodes("a")
	b.Storage = networkDisks(9)
	b.Storage.Claims[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	c := New(b.Snapshot)
	expect(t, goes(c, mounting("user", 10, "data")), "a")
	twice := mounting("twice", 20, "data")
	twice.Spec.Volumes = append(twice.Spec.Volumes, twice.Spec.Volumes[0])
	twice.Spec.Volumes[1].Name = "again"
	expect(t, goes(c, twice), "evicts user")
}

func TestAPodWithoutItsClaimWaitsWithKubeSchedulersMessageAndKeepsItsNomination(t *testing.T) {
	b := nodes("a")
	b.Storage = networkDisks(9)
	c := New(b.Snapshot)
	pod := c.Pod(mounting("pod", 0, "missing"))
	c.Nominate(pod, "a")
	if got, want := c.Explain(pod).Message, `0/1 nodes are available: persistentvolumeclaim "missing" not found. not found`; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if c.Schedule(pod); c.Nominated(pod) != "a" {
		t.Error("it lost its nomination")
	}
}

func TestAVolumeThatIsElsewhereAndOneThatIsNowhereAreBothNamed(t *testing.T) {
	b := nodes("a")
	b.Storage = disks(storagev1.VolumeBindingWaitForFirstConsumer, "b")
	b.Storage.Claims[0].Spec.VolumeName = "pv-b"
	metav1.SetMetaDataAnnotation(&b.Storage.Claims[0].ObjectMeta, volumehelpers.AnnBindCompleted, "yes")
	b.Storage.Volumes[0].Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data"}
	pod := mounting("pod", 0, "data")
	pod.Spec.Volumes = append(pod.Spec.Volumes, mounting("", 0, "other").Spec.Volumes...)
	pod.Spec.Volumes[1].Name = "w"
	expect(t, goes(New(b.Snapshot), pod), "1 node(s) didn't find available persistent volumes to bind, 1 node(s) didn't match PersistentVolume's node affinity")
}
