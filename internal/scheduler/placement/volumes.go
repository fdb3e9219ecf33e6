package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Storage is what decides where pods with volume claims may run.
type Storage struct {
	Claims      []*corev1.PersistentVolumeClaim
	Volumes     []*corev1.PersistentVolume
	Classes     []*storagev1.StorageClass
	Nodes       []*storagev1.CSINode
	Drivers     []*storagev1.CSIDriver
	Attachments []*storagev1.VolumeAttachment
}

// storage is what of Storage does not change.
type storage struct {
	classes map[string]*storagev1.StorageClass
	drivers map[string]*storagev1.CSIDriver
	limits  map[string]map[string]int32 // by node, then by driver
	// attached are the volumes that are attached to a node.
	attached map[string][]volumeID
	// installed are the drivers of a node.
	installed map[string]map[string]bool
}

// volumeID names a volume of a driver.
type volumeID struct{ driver, handle string }

// volumes are claims and what they are bound to. Clones of a cluster share them until either changes them.
type volumes struct {
	owner      *byte
	claims     map[string]*corev1.PersistentVolumeClaim // by namespace and name
	persistent []*corev1.PersistentVolume
	users      map[string]int // of claims: pods on nodes
	// open notes that there were several equal volumes, which differ in topology.
	open string
}

func newStorage(s *Storage, owner *byte) (*storage, *volumes) {
	if s == nil {
		return nil, nil
	}
	fixed := &storage{
		classes: map[string]*storagev1.StorageClass{}, drivers: map[string]*storagev1.CSIDriver{}, limits: map[string]map[string]int32{},
		attached: map[string][]volumeID{}, installed: map[string]map[string]bool{},
	}
	v := &volumes{owner: owner, claims: map[string]*corev1.PersistentVolumeClaim{}, persistent: slices.Clone(s.Volumes), users: map[string]int{}}
	for _, class := range s.Classes {
		fixed.classes[class.Name] = class
	}
	for _, driver := range s.Drivers {
		fixed.drivers[driver.Name] = driver
	}
	for _, claim := range s.Claims {
		if claim.Spec.StorageClassName == nil && claim.Spec.VolumeName == "" {
			claim = claim.DeepCopy()
			fixed.defaults(claim)
		}
		v.claims[claim.Namespace+"/"+claim.Name] = claim
	}
	for _, node := range s.Nodes {
		fixed.installed[node.Name] = map[string]bool{}
		for _, driver := range node.Spec.Drivers {
			fixed.installed[node.Name][driver.Name] = true
			if driver.Allocatable == nil || driver.Allocatable.Count == nil {
				continue
			}
			if fixed.limits[node.Name] == nil {
				fixed.limits[node.Name] = map[string]int32{}
			}
			fixed.limits[node.Name][driver.Name] = *driver.Allocatable.Count
		}
	}
	for _, attachment := range s.Attachments {
		if name := attachment.Spec.Source.PersistentVolumeName; name != nil {
			if pv := v.volume(*name); pv != nil && pv.Spec.CSI != nil && attachment.Spec.Attacher != "" {
				node := attachment.Spec.NodeName
				fixed.attached[node] = append(fixed.attached[node], volumeID{attachment.Spec.Attacher, pv.Spec.CSI.VolumeHandle})
			}
		}
	}
	return fixed, v
}

func (v *volumes) volume(name string) *corev1.PersistentVolume {
	if at := slices.IndexFunc(v.persistent, func(pv *corev1.PersistentVolume) bool { return pv.Name == name }); at >= 0 {
		return v.persistent[at]
	}
	return nil
}

// ownVolumes are the volumes as this cluster's own to change.
func (c *Cluster) ownVolumes() *volumes {
	if c.volumes.owner != c.owner {
		clone := *c.volumes
		clone.owner, clone.claims, clone.users = c.owner, maps.Clone(clone.claims), maps.Clone(clone.users)
		clone.persistent = slices.Clone(clone.persistent)
		c.volumes = &clone
	}
	return c.volumes
}

// claimsOf are the volume claims of a pod, by name; each of a pod alone is made for it (generic ephemeral volumes).
func claimsOf(pod *Pod) (keys []string, ephemeral map[string]*corev1.PersistentVolumeClaimTemplate) {
	volumes := pod.object.Spec.Volumes
	for i := range volumes {
		switch v := &volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			keys = append(keys, pod.namespace+"/"+v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			key := pod.String() + "-" + v.Name
			if ephemeral == nil {
				ephemeral = map[string]*corev1.PersistentVolumeClaimTemplate{}
			}
			keys, ephemeral[key] = append(keys, key), v.Ephemeral.VolumeClaimTemplate
		}
	}
	return keys, ephemeral
}

// mount counts the users of volume claims.
func (c *Cluster) mount(pod *Pod, by int) {
	if c.volumes == nil || len(pod.object.Spec.Volumes) == 0 {
		return
	}
	keys, _ := claimsOf(pod)
	if len(keys) == 0 {
		return
	}
	v := c.ownVolumes()
	for _, key := range keys {
		v.users[key] += by
	}
}

// mounts are the volume claims of a pod that looks for a node.
type mounts struct {
	keys []string
	// unready is why no node comes into question now; "" where some may. unreadyAt is the plugin that says so first.
	unready   string
	unreadyAt preFilter
	bound     []*corev1.PersistentVolume
	// zoned are those of bound that VolumeZone looks at: it passes over ephemeral volumes.
	zoned []*corev1.PersistentVolume
	// unbound are claims that are bound, or provisioned, when the first pod comes (WaitForFirstConsumer).
	unbound []*corev1.PersistentVolumeClaim
	// exclusive are claims that only one pod may have (ReadWriteOncePod).
	exclusive []string
	problem   string
}

// preFilter is a step in which kube-scheduler looks at the claims of a pod before it looks at nodes, in their order.
type preFilter int

const (
	restrictionsPreFilter preFilter = iota + 1
	claimsPreFilter                 // VolumeBinding, podHasPVCs
	bindingPreFilter                // VolumeBinding
	zonePreFilter
)

// reject notes why no node comes into question: the first step that rejects the pod counts.
func (m *mounts) reject(at preFilter, why string) {
	if m.unready == "" || at < m.unreadyAt {
		m.unready, m.unreadyAt = why, at
	}
}

// mounts reads the claims of a pod as they are now; nil where it has none, or volumes are not known.
func (c *Cluster) mounts(pod *Pod) *mounts {
	if c.volumes == nil || len(pod.object.Spec.Volumes) == 0 {
		return nil
	}
	keys, ephemeral := claimsOf(pod)
	if len(keys) == 0 {
		return nil
	}
	m := &mounts{keys: keys}
	for _, key := range keys {
		claim := c.volumes.claims[key]
		if template := ephemeral[key]; claim == nil && template != nil {
			claim = &corev1.PersistentVolumeClaim{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
			claim.Namespace, claim.Name = pod.namespace, key[len(pod.namespace)+1:]
			c.storage.defaults(claim)
		}
		if claim == nil {
			m.reject(restrictionsPreFilter, "persistentvolumeclaim \""+key[len(pod.namespace)+1:]+"\" not found")
			continue
		}
		m.read(c, key, claim, ephemeral[key] != nil)
	}
	return m
}

// defaults gives a claim without one the default StorageClass, as the API server does.
func (s *storage) defaults(claim *corev1.PersistentVolumeClaim) {
	if claim.Spec.StorageClassName != nil {
		return
	}
	var newest *storagev1.StorageClass
	for _, class := range s.classes {
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" {
			continue
		}
		if newest == nil || class.CreationTimestamp.After(newest.CreationTimestamp.Time) ||
			class.CreationTimestamp.Equal(&newest.CreationTimestamp) && class.Name < newest.Name {
			newest = class
		}
	}
	if newest != nil {
		claim.Spec.StorageClassName = &newest.Name
	}
}

// read sorts a claim (volumeBinder.GetPodVolumeClaims).
func (m *mounts) read(c *Cluster, key string, claim *corev1.PersistentVolumeClaim, ephemeral bool) {
	if slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) && !ephemeral && !slices.Contains(m.exclusive, key) {
		m.exclusive = append(m.exclusive, key)
	}
	class := c.storage.classes[classOfClaim(claim)]
	delayed := class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	static := !provisions(class)
	_, complete := claim.Annotations[bindCompleted]
	switch {
	case claim.Status.Phase == corev1.ClaimLost:
		m.reject(claimsPreFilter, fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", claim.Name, claim.Spec.VolumeName))
	case claim.DeletionTimestamp != nil:
		m.reject(claimsPreFilter, fmt.Sprintf("persistentvolumeclaim %q is being deleted", claim.Name))
	case claim.Spec.VolumeName != "" && complete:
		pv := c.volumes.volume(claim.Spec.VolumeName)
		if pv == nil {
			m.reject(zonePreFilter, fmt.Sprintf("persistentvolume %q not found", claim.Spec.VolumeName))
			return
		}
		if migrated(pv) {
			m.problem = "volume " + pv.Name + ", which a CSI driver takes over"
		}
		m.bound = append(m.bound, pv)
		if !ephemeral {
			m.zoned = append(m.zoned, pv)
		}
	case !delayed || claim.Spec.VolumeName != "":
		m.reject(bindingPreFilter, "pod has unbound immediate PersistentVolumeClaims")
		if len(c.volumes.candidates(claim)) > 0 || !static || claim.Spec.VolumeName != "" {
			m.problem = "volume claim " + claim.Name + ", which is being bound"
		}
	default:
		m.unbound = append(m.unbound, claim)
		if !static && (c.storage.drivers[class.Provisioner] == nil || !ephemeral && !m.ofPod(key, claim)) {
			m.problem = "volume claim " + claim.Name + ", for which " + class.Provisioner + " makes a volume when the pod comes"
		}
	}
	if class != nil && c.storage.drivers[class.Provisioner] != nil {
		if capacity := c.storage.drivers[class.Provisioner].Spec.StorageCapacity; delayed && capacity != nil && *capacity {
			m.problem = "volume claim " + claim.Name + ", which needs free capacity of " + class.Provisioner
		}
	}
}

// ofPod reports whether a claim is for one pod only, as those of StatefulSets and of ephemeral volumes are.
func (m *mounts) ofPod(key string, claim *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(m.exclusive, key) || claim.UID == ""
}

// migrated reports whether a CSI driver may have taken over what an in-tree plugin did, which changes where the volume
// is.
func migrated(pv *corev1.PersistentVolume) bool {
	s := &pv.Spec.PersistentVolumeSource
	return s.GCEPersistentDisk != nil || s.AWSElasticBlockStore != nil || s.AzureDisk != nil || s.AzureFile != nil || s.Cinder != nil ||
		s.VsphereVolume != nil || s.PortworxVolume != nil
}

// uses reports whether a pod has one of the claims that only one pod may have.
func (m *mounts) uses(pod *Pod) bool {
	if len(m.exclusive) == 0 {
		return false
	}
	keys, _ := claimsOf(pod)
	return slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(m.exclusive, key) })
}

// mountable is the status by the plugins VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone, in their
// order.
func (cy *cycle) mountable(t *trial) filterStatus {
	m := cy.mounts
	if cy.inUse(t) {
		return volumeInUse
	}
	if v := cy.attachable(t); v != feasible {
		return v
	}
	for _, pv := range m.bound {
		if !reachable(pv, t.object.Labels) {
			return volumeConflict
		}
	}
	if _, ok := cy.c.bindings(m, t.node); !ok {
		return volumeUnmatched
	}
	for _, pv := range m.zoned {
		if !inZone(pv, t.object) {
			return volumeZone
		}
	}
	return feasible
}

// inUse reports whether a pod on a node has a claim that only one pod may have, beside those of a node that are gone.
// Like the original it counts a claim in use once, however many pods have it, and counts the pods of a node by the
// claims' names alone, whatever their namespace (volumerestrictions, preFilterState).
func (cy *cycle) inUse(t *trial) bool {
	count := 0
	for _, key := range cy.mounts.exclusive {
		if cy.c.volumes.users[key] > 0 {
			count++
		}
	}
	if count == 0 {
		return false // The plugin is skipped.
	}
	for _, pod := range t.gone {
		count -= cy.mounts.references(pod)
	}
	for _, nominated := range t.nominatedPods {
		count += cy.mounts.references(nominated)
	}
	return count > 0
}

// references is how many volumes of a pod have the name of one of the claims that only one pod may have.
func (m *mounts) references(pod *Pod) (count int) {
	for i := range pod.object.Spec.Volumes {
		source := pod.object.Spec.Volumes[i].PersistentVolumeClaim
		if source != nil && slices.ContainsFunc(m.exclusive, func(key string) bool {
			return key[strings.IndexByte(key, '/')+1:] == source.ClaimName
		}) {
			count++
		}
	}
	return count
}

// attachable is the filter of the plugin NodeVolumeLimits: whether a node has the pod's drivers, where that matters,
// and can have more of their volumes. As in the original a volume that is attached but that no pod on the node has
// counts twice.
func (cy *cycle) attachable(t *trial) filterStatus {
	more, has := map[volumeID]bool{}, map[volumeID]bool{}
	cy.c.attach(cy.pod, more)
	if cy.c.missingDriver(more, t.name) != "" {
		return driverMissing
	}
	limits := cy.c.storage.limits[t.name]
	if len(limits) == 0 {
		return feasible
	}
	for _, o := range t.pods {
		if !slices.Contains(t.gone, o.pod) {
			cy.c.attach(o.pod, has)
		}
	}
	for _, nominated := range t.nominatedPods {
		cy.c.attach(nominated, has)
	}
	counts := map[string]int{}
	for id := range has {
		delete(more, id)
		counts[id.driver]++
	}
	for _, id := range cy.c.storage.attached[t.name] {
		if !has[id] {
			counts[id.driver]++
		}
	}
	adds := map[string]int{}
	for id := range more {
		adds[id.driver]++
	}
	for driver, count := range adds {
		if limit, limited := limits[driver]; limited && counts[driver]+count > int(limit) {
			return volumeLimit
		}
	}
	return feasible
}

// missingDriver names a driver of some volumes that a node does not have, and without which it takes no pod; "" for
// none (checkCSIDriverOnNode).
func (c *Cluster) missingDriver(ids map[volumeID]bool, node string) (missing string) {
	if !c.rules.missingDrivers {
		return ""
	}
	for id := range ids {
		driver := c.storage.drivers[id.driver]
		if driver == nil || driver.Spec.PreventPodSchedulingIfMissing == nil || !*driver.Spec.PreventPodSchedulingIfMissing {
			continue
		}
		if !c.storage.installed[node][id.driver] && (missing == "" || id.driver < missing) {
			missing = id.driver
		}
	}
	return missing
}

// attach adds the volumes of CSI drivers that a pod has.
func (c *Cluster) attach(pod *Pod, to map[volumeID]bool) {
	keys, _ := claimsOf(pod)
	for _, key := range keys {
		claim := c.volumes.claims[key]
		if claim == nil {
			continue
		}
		if pv := c.volumes.volume(claim.Spec.VolumeName); pv != nil {
			if pv.Spec.CSI != nil {
				to[volumeID{pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle}] = true
			}
			continue
		}
		if class := c.storage.classes[classOfClaim(claim)]; provisions(class) {
			to[volumeID{class.Provisioner, "for " + key}] = true
		}
	}
}

// binding is a claim and the volume that it gets; nil for one that is provisioned.
type binding struct {
	claim *corev1.PersistentVolumeClaim
	pv    *corev1.PersistentVolume
}

// bindings are what the unbound claims of a pod get on a node (FindPodVolumes); false: not all of them get something.
func (c *Cluster) bindings(m *mounts, n *node) (list []binding, ok bool) {
	claims := slices.Clone(m.unbound)
	slices.SortStableFunc(claims, func(a, b *corev1.PersistentVolumeClaim) int {
		x, y := a.Spec.Resources.Requests[corev1.ResourceStorage], b.Spec.Resources.Requests[corev1.ResourceStorage]
		return x.Cmp(y)
	})
	chosen := map[string]*corev1.PersistentVolume{}
	for _, claim := range claims {
		if selected := claim.Annotations[selectedNode]; selected != "" && selected != n.name {
			return nil, false
		} else if selected == "" {
			pv, err := matchingVolume(claim, c.volumes.persistent, n.object, chosen)
			if err != nil {
				return nil, false
			}
			if pv != nil {
				chosen[pv.Name] = pv
				list = append(list, binding{claim, pv})
				continue
			}
		}
		class := c.storage.classes[classOfClaim(claim)]
		if !provisions(class) || class.Provisioner == "" ||
			!inTopologies(class.AllowedTopologies, n.object.Labels) {
			return nil, false
		}
		list = append(list, binding{claim: claim})
	}
	return list, true
}

// inTopologies reports whether a node is in one of a StorageClass' topologies, where it has any.
func inTopologies(terms []corev1.TopologySelectorTerm, labels map[string]string) bool {
	if len(terms) == 0 {
		return true
	}
	return slices.ContainsFunc(terms, func(term corev1.TopologySelectorTerm) bool {
		for _, e := range term.MatchLabelExpressions {
			if value, has := labels[e.Key]; !has || !slices.Contains(e.Values, value) {
				return false
			}
		}
		return len(term.MatchLabelExpressions) > 0
	})
}
