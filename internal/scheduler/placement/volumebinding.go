package placement

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bindVolumes binds the claims of a pod that is bound to a node: what waited for it is tied to the node's volumes from
// then on (AssumePodVolumes).
func (c *Cluster) bindVolumes(pod *Pod, n *node) {
	m := c.mounts(pod)
	if m == nil || len(m.unbound) == 0 {
		return
	}
	list, ok := c.bindings(m, n)
	if !ok {
		return
	}
	v := c.ownVolumes()
	for _, b := range list {
		claim := b.claim.DeepCopy()
		key := claim.Namespace + "/" + claim.Name
		if b.pv == nil {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, selectedNode, n.name)
			v.claims[key] = claim
			continue
		}
		if other := v.equal(b, n, list); other != "" {
			v.open = fmt.Sprintf("volume claim %s may be bound to volume %s or %s, which are as large and not in the same places", claim.Name, b.pv.Name, other)
		}
		v.bind(key, claim, b.pv)
	}
}

// volumeScores is the plugin VolumeBinding's score: how little of the existing volumes that a pod would get on a node
// its claims request. Of several classes it is the mean (volumebinding, Score with the default shape). What is
// provisioned counts only where drivers report their capacity, which is not modelled.
func (c *Cluster) volumeScores(pod *Pod, nodes []int, scores []int64) bool {
	if !c.rules.volumeScores {
		return false
	}
	m := c.mounts(pod)
	if m == nil || len(m.unbound) == 0 {
		return false
	}
	for i, at := range nodes {
		list, _ := c.bindings(m, c.nodes[at])
		scores[i] = unused(list)
	}
	return true
}

// unused is the percentage of volumes that their claims do not request.
func unused(list []binding) int64 {
	type use struct{ requested, capacity int64 }
	classes := map[string]use{}
	for _, b := range list {
		if b.pv != nil {
			u := classes[b.pv.Spec.StorageClassName]
			requested, capacity := b.claim.Spec.Resources.Requests[corev1.ResourceStorage], b.pv.Spec.Capacity[corev1.ResourceStorage]
			classes[b.pv.Spec.StorageClassName] = use{u.requested + requested.Value(), u.capacity + capacity.Value()}
		}
	}
	if len(classes) == 0 {
		return 0
	}
	var sum int64
	for _, u := range classes {
		if u.capacity > 0 && u.requested <= u.capacity {
			sum += maxScore - u.requested*100/u.capacity
		}
	}
	return int64(math.Round(float64(sum) / float64(len(classes))))
}

// candidates are all volumes that a claim could be bound to, whatever the node.
func (v *volumes) candidates(claim *corev1.PersistentVolumeClaim) (found []*corev1.PersistentVolume) {
	for _, pv := range v.persistent {
		match, err := matchingVolume(claim, []*corev1.PersistentVolume{pv}, nil, nil)
		if err == nil && match != nil && hasAccessModes(pv, claim) {
			found = append(found, pv)
		}
	}
	return found
}

// bind ties a claim to a volume.
func (v *volumes) bind(key string, claim *corev1.PersistentVolumeClaim, to *corev1.PersistentVolume) {
	pv := boundTo(to, claim)
	at := slices.IndexFunc(v.persistent, func(other *corev1.PersistentVolume) bool { return other.Name == pv.Name })
	v.persistent[at] = pv
	claim.Spec.VolumeName = pv.Name
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, bindCompleted, "yes")
	v.claims[key] = claim
}

// equal names a volume that a claim could have got as well, and that is not for the same nodes; "" for none. Which of
// equals is taken is decided by the order of a cache.
func (v *volumes) equal(b binding, n *node, list []binding) string {
	if isBoundTo(b.pv, b.claim) {
		return ""
	}
	without := map[string]*corev1.PersistentVolume{}
	for _, other := range list {
		if other.pv != nil {
			without[other.pv.Name] = other.pv
		}
	}
	size := b.pv.Spec.Capacity[corev1.ResourceStorage]
	for {
		other, err := matchingVolume(b.claim, v.persistent, n.object, without)
		if err != nil || other == nil || size.Cmp(other.Spec.Capacity[corev1.ResourceStorage]) != 0 {
			return ""
		}
		if !equality.Semantic.DeepEqual(other.Spec.NodeAffinity, b.pv.Spec.NodeAffinity) || len(list) > 1 {
			return other.Name
		}
		without[other.Name] = other
	}
}

// OpenVolumes names the bound volumes among equal ones that differ in topology; "" if there are none.
func (c *Cluster) OpenVolumes() string {
	if c.volumes == nil {
		return ""
	}
	return c.volumes.open
}

// Claims describes what claims that pods share are bound to, in an order that is the same for the same.
func (c *Cluster) Claims() string {
	var lines []string
	for key, claim := range c.shared {
		if claim.users > 0 {
			lines = append(lines, key+" on "+claim.node)
		}
	}
	if c.volumes != nil {
		for key, claim := range c.volumes.claims {
			if claim.Spec.VolumeName != "" || claim.Annotations[selectedNode] != "" {
				lines = append(lines, key+" "+claim.Spec.VolumeName+" "+claim.Annotations[selectedNode])
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// zoneLabels are those by which a volume is tied to zones (volumezone.topologyLabels), with what they are called now.
var zoneLabels = map[string]string{
	corev1.LabelFailureDomainBetaZone: corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	corev1.LabelTopologyZone: corev1.LabelTopologyZone, corev1.LabelTopologyRegion: corev1.LabelTopologyRegion,
}

// inZone is the filter of the plugin VolumeZone: a node with zones has to be in one of the volume's.
func inZone(pv *corev1.PersistentVolume, node *corev1.Node) bool {
	zoned := false
	for label := range zoneLabels {
		_, has := node.Labels[label]
		zoned = zoned || has
	}
	if !zoned {
		return true
	}
	for label, now := range zoneLabels {
		zones, limited := pv.Labels[label]
		if !limited {
			continue
		}
		zone, has := node.Labels[label]
		if !has {
			zone, has = node.Labels[now]
		}
		if !has || !slices.Contains(strings.Split(zones, "__"), zone) {
			return false
		}
	}
	return true
}

// Extras describes what a node has besides its object: devices, and how many volumes it may have.
func (c *Cluster) Extras(node string) string {
	var lines []string
	if c.devices != nil {
		for slot, count := range c.devices.offered[node] {
			lines = append(lines, fmt.Sprint(c.slots.names[slot], " ", count))
		}
	}
	if c.storage != nil {
		for driver, limit := range c.storage.limits[node] {
			lines = append(lines, fmt.Sprint(driver, " at most ", limit))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
