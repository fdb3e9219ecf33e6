package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
)

func TestAClaimGetsTheVolumeThatKubernetesGivesIt(t *testing.T) {
	matched := 0
	for seed := range uint64(20_000) {
		d := drawing{rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // situations, not secrets
		claim, volumes, without := d.claim(), []*corev1.PersistentVolume{}, map[string]*corev1.PersistentVolume{}
		for i := range 1 + d.IntN(4) {
			pv := d.volume(i)
			if volumes = append(volumes, pv); d.IntN(8) == 0 {
				without[pv.Name] = pv
			}
		}
		var on *corev1.Node
		if d.IntN(3) > 0 {
			on = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"zone": d.one("a", "b")}}}
		}
		want, wantErr := volumehelpers.FindMatchingVolume(claim, volumes, on, without, on != nil, true)
		got, err := matchingVolume(claim, volumes, on, without)
		if got != want || (err == nil) != (wantErr == nil) {
			t.Fatalf("seed %d: it gets %v (%v), and by Kubernetes %v (%v)", seed, got, err, want, wantErr)
		}
		if want == nil {
			continue
		}
		matched++
		bound, _, err := volumehelpers.GetBindVolumeToClaim(want, claim)
		if ours := boundTo(got, claim); err != nil || !volumehelpers.IsVolumeBoundToClaim(ours, claim) || *ours.Spec.ClaimRef != *bound.Spec.ClaimRef {
			t.Fatalf("seed %d: bound to %v, and by Kubernetes to %v (%v)", seed, ours.Spec.ClaimRef, bound.Spec.ClaimRef, err)
		}
		if classOfClaim(claim) != volumehelpers.GetPersistentVolumeClaimClass(claim) || hasAccessModes(got, claim) != volumehelpers.CheckAccessModes(claim, got) {
			t.Fatalf("seed %d: class %q, access %t", seed, classOfClaim(claim), hasAccessModes(got, claim))
		}
	}
	if matched < 1000 {
		t.Errorf("only %d claims get a volume", matched)
	}
}

// drawing draws claims and volumes of few values, so that they often suit each other.
type drawing struct{ *rand.Rand }

func (d drawing) one(of ...string) string { return of[d.IntN(len(of))] }

// maybe is one of the texts, or nothing.
func (d drawing) maybe(of ...string) *string {
	if d.IntN(3) > 0 {
		return nil
	}
	return new(d.one(of...))
}

func (d drawing) mode() *corev1.PersistentVolumeMode {
	mode := d.maybe(string(corev1.PersistentVolumeBlock), string(corev1.PersistentVolumeFilesystem))
	if mode == nil {
		return nil
	}
	return new(corev1.PersistentVolumeMode(*mode))
}

func (d drawing) access() (modes []corev1.PersistentVolumeAccessMode) {
	for _, mode := range []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany} {
		if d.IntN(3) > 0 {
			modes = append(modes, mode)
		}
	}
	return modes
}

// annotations have the class at times as it was written before there was a field.
func (d drawing) annotations() map[string]string {
	if class := d.maybe("fast", "slow"); class != nil && d.IntN(2) == 0 {
		return map[string]string{corev1.BetaStorageClassAnnotation: *class}
	}
	return nil
}

func (d drawing) size() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(d.one("1Gi", "2Gi", "2048Mi"))}
}

func (d drawing) claim() *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "1", Annotations: d.annotations()},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: d.maybe("fast"), VolumeMode: d.mode(), AccessModes: d.access(), VolumeAttributesClassName: d.maybe("gold"),
			Resources: corev1.VolumeResourceRequirements{Requests: d.size()},
		},
	}
	if d.IntN(4) == 0 {
		claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"kind": d.one("a", "b", "!")}}
	}
	return claim
}

func (d drawing) volume(i int) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pv-%d", i), Annotations: d.annotations(), Labels: map[string]string{"kind": d.one("a", "b")}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: d.size(), VolumeMode: d.mode(), AccessModes: d.access(), StorageClassName: d.one("", "", "fast"), VolumeAttributesClassName: d.maybe("gold"),
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.PersistentVolumePhase(d.one("Available", "Available", "Bound"))},
	}
	if d.IntN(4) == 0 {
		pv.Spec.ClaimRef = &corev1.ObjectReference{
			APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "ns", Name: d.one("claim", "other"), UID: types.UID(d.one("", "1", "2")),
		}
	}
	if d.IntN(3) == 0 {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{d.one("a", "b")}}},
		}}}}
	}
	if d.IntN(10) == 0 {
		pv.DeletionTimestamp = &metav1.Time{}
	}
	return pv
}
