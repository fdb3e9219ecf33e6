package placement

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
)

const tpu = "example.com/tpu"

// tpus are devices on nodes, which a DeviceClass calls example.com/tpu.
func tpus(perNode map[string]int) *Devices {
	d := &Devices{Classes: []*resourcev1.DeviceClass{{
		ObjectMeta: metav1.ObjectMeta{Name: "tpu"}, Spec: resourcev1.DeviceClassSpec{
			ExtendedResourceName: new(tpu), Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "tpu.example.com"`}}},
		},
	}}}
	for node, count := range perNode {
		slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
			Driver: "tpu.example.com", NodeName: new(node), Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
		}}
		for i := range count {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: string(rune('a' + i))})
		}
		d.Slices = append(d.Slices, slice)
	}
	oneDevice := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "tpu"},
	}}}}
	d.Claims = []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "all"}, Spec: oneDevice}}
	d.Templates = []*resourcev1.ResourceClaimTemplate{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "each"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: oneDevice}}}
	return d
}

func requesting(name string, priority int32, devices string) *corev1.Pod {
	return prioritised(name, priority, amounts("cpu", "1", tpu, devices))
}

func claiming(name, claim, template string) *corev1.Pod {
	p := prioritised(name, 10, amounts("cpu", "1"))
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c"}}
	if claim != "" {
		p.Spec.ResourceClaims[0].ResourceClaimName = &claim
	} else {
		p.Spec.ResourceClaims[0].ResourceClaimTemplateName = &template
	}
	return p
}

// goes schedules a pod and binds it: its node, or the message of the decision.
func goes(c *Cluster, object *corev1.Pod) string {
	pod := c.Pod(object)
	switch d := c.Schedule(pod); d.Kind {
	case Bound:
		c.AddPod(pod, d.Node)
		return d.Node
	case Preempts:
		return "evicts " + d.Victims[0].Name
	}
	return c.Explain(pod).Message
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}

func TestEvictionsFreeNoDevicesInADryRun(t *testing.T) {
	b := nodes("a", "b")
	b.Devices = tpus(map[string]int{"a": 1, "b": 1})
	b.at("a").runs("holds", 0, "1", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests[tpu] = resource.MustParse("1") })
	b.at("b").runs("full", 0, "4")
	c := New(b.Snapshot)
	expect(t, goes(c, requesting("two", 1000, "2")), "cannot allocate all claims")
	expect(t, goes(c, requesting("one", 1000, "1")), "evicts full") // not "holds", which releases its device only after it has stopped
	c.RemovePod(c.PodsOn("a")[0], "a")
	expect(t, goes(c, requesting("late", 1000, "1")), "a")
	if problems := c.Approximate(c.Pod(requesting("new", 0, "1"))); len(problems) > 0 {
		t.Error(problems)
	}
}

func TestClaimsAreCountedAndASharedOneTiesItsPodsToANode(t *testing.T) {
	b := nodes("a", "b")
	b.Devices = tpus(map[string]int{"a": 1, "b": 2})
	c := New(b.Snapshot)
	first := goes(c, claiming("first", "all", ""))
	if second := goes(c, claiming("second", "all", "")); second != first {
		t.Errorf("one claim, and pods on %s and %s", first, second)
	}
	free := 2
	for range free {
		if node := goes(c, claiming("own", "", "each")); node != "a" && node != "b" {
			t.Error(node)
		}
	}
	expect(t, goes(c, claiming("late", "", "each")), "cannot allocate all claims")
	for _, pod := range c.PodsOn(first) {
		if len(pod.wants.shared) > 0 {
			c.RemovePod(pod, first)
		}
	}
	expect(t, goes(c, claiming("later", "", "each")), first)
	expect(t, goes(c, claiming("lost", "missing", "")), "not found")
}

func TestDevicesThatDifferAreNamedAsNotModelled(t *testing.T) {
	b := nodes("a")
	b.Devices = tpus(map[string]int{"a": 2})
	b.Devices.Slices[0].Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "broken"}}
	c := New(b.Snapshot)
	expect(t, strings.Join(c.Approximate(c.Pod(requesting("new", 0, "1"))), "; "), "devices of tpu.example.com, some of which have taints")
}

// disks are local volumes on nodes, and the claims "data" and "other" of their StorageClass.
func disks(mode storagev1.VolumeBindingMode, on ...string) *Storage {
	s := &Storage{Classes: []*storagev1.StorageClass{{
		ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: volumehelpers.NotSupportedProvisioner, VolumeBindingMode: &mode,
	}}}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	for _, node := range on {
		s.Volumes = append(s.Volumes, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv-" + node},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: "local",
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
				}}}},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
		})
	}
	for _, name := range []string{"data", "other"} {
		s.Claims = append(s.Claims, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: new("local"), Resources: corev1.VolumeResourceRequirements{Requests: size},
			},
		})
	}
	return s
}

func mounting(name string, priority int32, claim string) *corev1.Pod {
	p := prioritised(name, priority, amounts("cpu", "1"))
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	return p
}

func TestAClaimThatIsBoundLateTiesLaterPodsToItsVolume(t *testing.T) {
	b := nodes("a", "b", "c")
	b.Storage = disks(storagev1.VolumeBindingWaitForFirstConsumer, "b", "c")
	c := New(b.Snapshot)
	before := c.Clone()
	first := goes(c, mounting("first", 0, "data"))
	if second := goes(c, mounting("second", 0, "data")); second != first || first == "a" {
		t.Errorf("pods of one claim on %s and %s", first, second)
	}
	other := goes(c, mounting("third", 0, "other"))
	if other == first || other == "a" {
		t.Errorf("the volume of %s is taken, and another claim's pod goes to %s", first, other)
	}
	if c.Claims() == before.Claims() || c.Approximate(c.Pod(mounting("new", 0, "data"))) != nil {
		t.Error("what was bound in one cluster is bound in its clone, or nowhere")
	}
	expect(t, goes(c, mounting("lost", 0, "missing")), `persistentvolumeclaim "missing" not found`)
}

func TestAnImmediateClaimIsBoundBeforeItsPodsComeOrNotAtAll(t *testing.T) {
	b := nodes("a", "b")
	b.Storage = disks(storagev1.VolumeBindingImmediate, "b")
	b.Storage.Claims = b.Storage.Claims[:1]
	c := New(b.Snapshot) // when its controller binds it is not known
	expect(t, strings.Join(c.Approximate(c.Pod(mounting("new", 0, "data"))), ""), "volume claim data, which is being bound")
	b.Storage.Claims[0].Spec.VolumeName = "pv-b"
	metav1.SetMetaDataAnnotation(&b.Storage.Claims[0].ObjectMeta, volumehelpers.AnnBindCompleted, "yes")
	expect(t, goes(New(b.Snapshot), mounting("first", 0, "data")), "b")
	b.Storage = disks(storagev1.VolumeBindingImmediate)
	expect(t, goes(New(b.Snapshot), mounting("first", 0, "data")), "pod has unbound immediate PersistentVolumeClaims")
}

func TestAClaimForOnePodIsFreedByEvictingThatPod(t *testing.T) {
	b := nodes("a", "b")
	b.Storage = disks(storagev1.VolumeBindingWaitForFirstConsumer, "a", "b")
	b.Storage.Claims[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	b.Storage.Volumes[0].Spec.AccessModes = append(b.Storage.Volumes[0].Spec.AccessModes, corev1.ReadWriteOncePod)
	c := New(b.Snapshot)
	expect(t, goes(c, mounting("user", 10, "data")), "a")
	expect(t, goes(c, mounting("equal", 10, "data")), "ReadWriteOncePod access mode already in-use")
	expect(t, goes(c, mounting("higher", 20, "data")), "evicts user")
}

func TestANodeHasSoManyVolumesOfADriver(t *testing.T) {
	b := nodes("a", "b")
	b.Storage = disks(storagev1.VolumeBindingImmediate)
	b.Storage.Nodes = []*storagev1.CSINode{{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "disk.example.com", Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(1))}}}},
	}}
	for _, claim := range b.Storage.Claims {
		claim.Spec.VolumeName = "pv-" + claim.Name
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volumehelpers.AnnBindCompleted, "yes")
		b.Storage.Volumes = append(b.Storage.Volumes, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName, Labels: map[string]string{}}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: claim.Name}},
		}})
	}
	b.at("b").runs("full", 0, "4")
	c := New(b.Snapshot)
	expect(t, goes(c, mounting("first", 0, "data")), "a")
	expect(t, goes(c, mounting("same", 0, "data")), "a")
	expect(t, goes(c, mounting("second", 0, "other")), "node(s) exceed max volume count")
	b.Storage.Volumes[1].Labels[corev1.LabelTopologyZone] = "x__y"
	b.Nodes[0].Labels[corev1.LabelTopologyZone] = "z"
	expect(t, goes(New(b.Snapshot), mounting("zoned", 0, "other")), "node(s) had no available volume zone")
}
