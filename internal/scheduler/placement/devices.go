package placement

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Devices are offered by drivers in ResourceSlices (dynamic resource allocation). Pods get them by claims or, as
// extended resources, by the name in a DeviceClass.
type Devices struct {
	Classes   []*resourcev1.DeviceClass
	Slices    []*resourcev1.ResourceSlice
	Claims    []*resourcev1.ResourceClaim
	Templates []*resourcev1.ResourceClaimTemplate
}

// devices is the state of the plugin DynamicResources, if all devices of a driver on a node are equivalent: then the
// plugin only counts them. If they are not, the pods that request them have a problem.
type devices struct {
	slots     *slots
	classes   map[string]*deviceClass
	extended  map[int]*deviceClass // by the slot of what pods request
	claims    map[string]*resourcev1.ResourceClaim
	templates map[string]*resourcev1.ResourceClaimTemplate
	offered   map[string]map[int]int64 // by node, then by driver: its slot
	problems  map[string]string        // by driver
	drivers   []string
}

// deviceClass is a DeviceClass whose devices are those of a driver.
type deviceClass struct {
	name    string
	driver  string
	slot    int // of the driver
	problem string
}

// deviceID names a device.
type deviceID struct{ driver, pool, device string }

func newDevices(d *Devices, pods []*corev1.Pod, s *slots) *devices {
	if d == nil {
		return nil
	}
	v := &devices{
		slots: s, classes: map[string]*deviceClass{}, extended: map[int]*deviceClass{}, claims: map[string]*resourcev1.ResourceClaim{},
		templates: map[string]*resourcev1.ResourceClaimTemplate{}, offered: map[string]map[int]int64{}, problems: map[string]string{},
	}
	for _, claim := range d.Claims {
		v.claims[claim.Namespace+"/"+claim.Name] = claim
	}
	for _, template := range d.Templates {
		v.templates[template.Namespace+"/"+template.Name] = template
	}
	v.offer(d.Slices, v.taken(d.Claims, pods))
	v.name(d.Classes)
	return v
}

// name reads the classes. Where several have one extended resource, the newest counts, and of those the first by name
// (extendedresourcecache).
func (v *devices) name(classes []*resourcev1.DeviceClass) {
	classes = slices.Clone(classes)
	slices.SortFunc(classes, func(a, b *resourcev1.DeviceClass) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(b.Name, a.Name))
	})
	for _, object := range classes {
		driver, known := driverOf(object)
		if len(object.Spec.Selectors) == 0 && len(v.drivers) < 2 { // all devices there are
			driver, known = strings.Join(v.drivers, ""), true
		}
		class := &deviceClass{name: object.Name, driver: driver, slot: v.driverSlot(driver)}
		switch {
		case !known:
			class.problem = "DeviceClass " + object.Name + ", which selects devices by more than their driver"
		case v.problems[driver] != "":
			class.problem = v.problems[driver]
		}
		v.classes[object.Name] = class
		v.extended[v.slots.slot(corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix+object.Name))] = class
		if name := object.Spec.ExtendedResourceName; name != nil {
			v.extended[v.slots.slot(corev1.ResourceName(*name))] = class
		}
	}
}

// driverSlot is the slot in which the devices of a driver are counted. No resource has such a name.
func (v *devices) driverSlot(driver string) int {
	return v.slots.slot(corev1.ResourceName("devices of " + driver))
}

// byDriver is the expression by which most classes select devices.
var byDriver = regexp.MustCompile(`^\s*device\.driver\s*==\s*["']([^"']+)["']\s*$`)

// driverOf is the driver whose devices a class selects; known is false if it selects by more than that, or less.
func driverOf(class *resourcev1.DeviceClass) (driver string, known bool) {
	for _, selector := range class.Spec.Selectors {
		var match []string
		if selector.CEL != nil {
			match = byDriver.FindStringSubmatch(selector.CEL.Expression)
		}
		if match == nil || driver != "" && driver != match[1] {
			return driver, false
		}
		driver = match[1]
	}
	return driver, driver != ""
}

// offer counts the devices of each node. Of a pool only the newest generation counts: older slices are about to go.
func (v *devices) offer(list []*resourcev1.ResourceSlice, taken map[deviceID]bool) {
	type pool struct{ driver, name string }
	newest := map[pool]int64{}
	for _, slice := range list {
		key := pool{slice.Spec.Driver, slice.Spec.Pool.Name}
		newest[key] = max(newest[key], slice.Spec.Pool.Generation)
	}
	counted, wanted := map[pool]int64{}, map[pool]int64{}
	for _, slice := range list {
		spec := &slice.Spec
		key := pool{spec.Driver, spec.Pool.Name}
		if spec.Pool.Generation < newest[key] {
			continue
		}
		counted[key]++
		if !slices.Contains(v.drivers, key.driver) {
			v.drivers = append(v.drivers, key.driver)
		}
		wanted[key] = spec.Pool.ResourceSliceCount
		if problem := unlike(slice); problem != "" {
			v.problems[spec.Driver] = problem
			continue
		}
		on := v.offered[*spec.NodeName]
		if on == nil {
			on = map[int]int64{}
			v.offered[*spec.NodeName] = on
		}
		for _, device := range spec.Devices {
			if !taken[deviceID{spec.Driver, spec.Pool.Name, device.Name}] {
				on[v.driverSlot(spec.Driver)]++
			}
		}
	}
	for key, count := range counted {
		if count != wanted[key] {
			v.problems[key.driver] = "devices of " + key.driver + ", of which pool " + key.name + " is not complete"
		}
	}
}

// unlike is the reason why the devices of a slice are not equivalent; "" if they are.
func unlike(slice *resourcev1.ResourceSlice) string {
	of := "devices of " + slice.Spec.Driver
	if slice.Spec.NodeName == nil {
		return of + ", which are not tied to one node each"
	}
	for i := range slice.Spec.Devices {
		device := &slice.Spec.Devices[i]
		switch {
		case len(device.ConsumesCounters) > 0:
			return of + ", which share counters"
		case len(device.Taints) > 0:
			return of + ", some of which have taints"
		case len(device.BindingConditions) > 0:
			return of + ", which have conditions for binding"
		case device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations:
			return of + ", which several pods can share"
		}
	}
	return ""
}

// taken are the devices of claims but those of pods on nodes, which are counted with their pods.
func (v *devices) taken(claims []*resourcev1.ResourceClaim, pods []*corev1.Pod) map[deviceID]bool {
	counted := map[string]bool{}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" || Finished(pod) {
			continue
		}
		if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
			counted[pod.Namespace+"/"+status.ResourceClaimName] = true
		}
		for i := range pod.Spec.ResourceClaims {
			counted[claimKey(pod, &pod.Spec.ResourceClaims[i])] = true
		}
	}
	taken := map[deviceID]bool{}
	for _, claim := range claims {
		if claim.Status.Allocation == nil || counted[claim.Namespace+"/"+claim.Name] {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			taken[deviceID{result.Driver, result.Pool, result.Device}] = true
		}
	}
	return taken
}

// claimKey names the ResourceClaim of a pod; one that is still to be made has no name.
func claimKey(pod *corev1.Pod, claim *corev1.PodResourceClaim) string {
	namespace := cmp.Or(pod.Namespace, corev1.NamespaceDefault)
	if claim.ResourceClaimName != nil {
		return namespace + "/" + *claim.ResourceClaimName
	}
	for _, status := range pod.Status.ResourceClaimStatuses {
		if status.Name == claim.Name && status.ResourceClaimName != nil {
			return namespace + "/" + *status.ResourceClaimName
		}
	}
	return ""
}

// wants is a pod's requests to drivers besides its extended resources.
type wants struct {
	own    map[int]int64 // by claims of its own: by driver
	shared []string      // claims that it names, which other pods may name too
	// missing is an object without which the scheduler does not look for a node.
	missing string
	problem string
}

// of is a pod's requests for devices; nil if there are none.
func (v *devices) of(pod *corev1.Pod, requests quantities) *wants {
	if v == nil {
		return nil
	}
	w, wanted := &wants{own: map[int]int64{}}, len(pod.Spec.ResourceClaims) > 0
	for slot, class := range v.extended {
		if requests.at(slot) <= 0 {
			continue
		}
		wanted = true
		w.trouble(class.problem)
		for i := range pod.Spec.InitContainers {
			if amount, ok := pod.Spec.InitContainers[i].Resources.Requests[v.slots.names[slot]]; ok && !amount.IsZero() {
				w.trouble("devices of " + class.driver + " in init containers")
			}
		}
	}
	for i := range pod.Spec.ResourceClaims {
		claim := &pod.Spec.ResourceClaims[i]
		key := claimKey(pod, claim)
		switch object := v.claims[key]; {
		case claim.ResourceClaimName != nil && object == nil:
			w.missing = "resourceclaim \"" + *claim.ResourceClaimName + "\" not found"
		case claim.ResourceClaimName != nil:
			w.shared = append(w.shared, key)
			w.demand(v, &object.Spec) // for its problems; the claim itself holds the devices
		case object != nil && object.Status.Allocation != nil:
			for _, result := range object.Status.Allocation.Devices.Results {
				w.own[v.driverSlot(result.Driver)]++
			}
		case claim.ResourceClaimTemplateName != nil:
			template := v.templates[cmp.Or(pod.Namespace, corev1.NamespaceDefault)+"/"+*claim.ResourceClaimTemplateName]
			if template == nil {
				w.missing = "resourceclaimtemplate \"" + *claim.ResourceClaimTemplateName + "\" not found"
				continue
			}
			for slot, count := range w.demand(v, &template.Spec.Spec) {
				w.own[slot] += count
			}
		default:
			w.trouble("resource claim " + claim.Name + ", which has another source than a claim or a template")
		}
	}
	if !wanted {
		return nil
	}
	return w
}

func (w *wants) trouble(problem string) {
	if w.problem == "" {
		w.problem = problem
	}
}

// demand is the devices that a claim requests, by driver.
func (w *wants) demand(v *devices, spec *resourcev1.ResourceClaimSpec) map[int]int64 {
	demand := map[int]int64{}
	if len(spec.Devices.Constraints) > 0 {
		w.trouble("a resource claim with constraints")
	}
	for i := range spec.Devices.Requests {
		exactly := spec.Devices.Requests[i].Exactly
		if exactly == nil || exactly.AllocationMode == resourcev1.DeviceAllocationModeAll || len(exactly.Selectors) > 0 ||
			exactly.AdminAccess != nil && *exactly.AdminAccess || exactly.Capacity != nil {
			w.trouble("a resource claim that asks for more than a number of devices of a class")
			continue
		}
		class := v.classes[exactly.DeviceClassName]
		if class == nil {
			w.missing = fmt.Sprintf("request %s: device class %s does not exist", spec.Devices.Requests[i].Name, exactly.DeviceClassName)
			continue
		}
		w.trouble(class.problem)
		demand[class.slot] += max(exactly.Count, 1)
	}
	return demand
}

// sharedClaim is a claim that pods name: where its devices are, and how many pods on nodes have it.
type sharedClaim struct {
	node  string
	users int
}

// byDevices are the slots of extended resources that a node has as devices, as no device plugin offers them there.
func (c *Cluster) byDevices(allocatable quantities) map[int]*deviceClass {
	if c.devices == nil || len(c.devices.extended) == 0 {
		return nil
	}
	slots := maps.Clone(c.devices.extended)
	maps.DeleteFunc(slots, func(slot int, _ *deviceClass) bool { return allocatable.at(slot) > 0 })
	return slots
}

// devicesInUse is the number of devices of a driver in use by the pods of a node.
func (n *node) devicesInUse(driver int) int64 {
	used := n.requested.at(driver)
	for slot, class := range n.byDevices {
		if class.slot == driver {
			used += n.requested.at(slot)
		}
	}
	return used
}

// allocate is the filter of the plugin DynamicResources. It knows neither of victims nor of nominated pods: their
// devices are not free before they have stopped, and not taken before they are bound (it has no PreFilterExtensions).
func (cy *cycle) allocate(n *node) filterStatus {
	w := cy.pod.wants
	if w == nil {
		return feasible
	}
	requested := maps.Clone(w.own)
	for slot, class := range n.byDevices {
		requested[class.slot] += max(cy.pod.requests.at(slot), 0)
	}
	for _, key := range w.shared {
		switch claim := cy.c.shared[key]; {
		case claim.users == 0:
			for slot, count := range w.demand(cy.c.devices, &cy.c.devices.claims[key].Spec) {
				requested[slot] += count
			}
		case claim.node != n.name:
			return claimElsewhere
		}
	}
	for driver, count := range requested {
		if count > 0 && count > n.allocatable.at(driver)-n.devicesInUse(driver) {
			return devicesTaken
		}
	}
	return feasible
}

// consume counts the users of shared claims: the first one's node has their devices, and when the last one is gone they
// are free.
func (c *Cluster) consume(pod *Pod, n *node, by int) {
	if pod.wants == nil {
		return
	}
	for _, key := range pod.wants.shared {
		claim := c.shared[key]
		claim.users += by
		first, last := by > 0 && claim.users == 1, by < 0 && claim.users == 0
		if first {
			claim.node = n.name
		}
		if first || last {
			for slot, count := range (&wants{}).demand(c.devices, &c.devices.claims[key].Spec) {
				n.requested = n.requested.add(make(quantities, slot+1), 0)
				n.requested[slot] += int64(by) * count
			}
		}
		c.shared[key] = claim
	}
}
