package forecast

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// Devices are what drivers offer by ResourceSlices (dynamic resource allocation). Pods get them by claims or, as
// extended resources, by what a DeviceClass calls them.
type Devices struct {
	Classes []*resourcev1.DeviceClass
	Slices  []*resourcev1.ResourceSlice
	Claims  []*resourcev1.ResourceClaim
}

// deviceID names a device.
type deviceID struct{ driver, pool, device string }

// withDevices is the snapshot with devices as extended resources of their nodes, where no device plugin offers those
// (pkg/scheduler/framework/plugins/dynamicresources, extended resources). names are the resources that come from
// devices.
func withDevices(s *Snapshot, n *notes) (with *Snapshot, names map[corev1.ResourceName]bool) {
	names = map[corev1.ResourceName]bool{}
	if len(s.Devices.Classes) == 0 || len(s.Devices.Slices) == 0 {
		return s, names
	}
	taken := s.Devices.taken(s.Pods)
	offered := map[string]corev1.ResourceList{} // by node
	for _, class := range s.Devices.Classes {
		resources := []corev1.ResourceName{corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix + class.Name)}
		if class.Spec.ExtendedResourceName != nil {
			resources = append(resources, corev1.ResourceName(*class.Spec.ExtendedResourceName))
		}
		driver, known := driverOf(class)
		for _, slice := range s.Devices.newest() {
			if slice.Spec.NodeName == nil || driver != "" && slice.Spec.Driver != driver {
				continue
			}
			free := int64(0)
			for _, device := range slice.Spec.Devices {
				if !taken[deviceID{slice.Spec.Driver, slice.Spec.Pool.Name, device.Name}] {
					free++
				}
			}
			for _, name := range resources {
				names[name] = true
				if offered[*slice.Spec.NodeName] == nil {
					offered[*slice.Spec.NodeName] = corev1.ResourceList{}
				}
				sum := offered[*slice.Spec.NodeName][name]
				sum.Add(*resource.NewQuantity(free, resource.DecimalSI))
				offered[*slice.Spec.NodeName][name] = sum
				if !known {
					n.lateFor(name, Reason{Code: NotModelled, Object: "DeviceClass " + class.Name, Text: "DeviceClass " + class.Name +
						" selects devices by an expression that is not evaluated; all devices of its driver are counted"})
				}
			}
		}
	}
	copied := *s
	copied.Nodes = slices.Clone(s.Nodes)
	for i, node := range copied.Nodes {
		for name, quantity := range offered[node.Name] {
			if _, plugged := s.Nodes[i].Status.Allocatable[name]; plugged {
				continue
			}
			if copied.Nodes[i] == s.Nodes[i] {
				copied.Nodes[i] = node.DeepCopy()
			}
			copied.Nodes[i].Status.Allocatable[name] = quantity
		}
	}
	return &copied, names
}

// taken are the devices that claims hold, except those that were made for extended resources of pods: these are counted
// by what the pods request.
func (d Devices) taken(pods []*corev1.Pod) map[deviceID]bool {
	extended := map[[2]string]bool{}
	for _, pod := range pods {
		if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
			extended[[2]string{pod.Namespace, status.ResourceClaimName}] = true
		}
	}
	taken := map[deviceID]bool{}
	for _, claim := range d.Claims {
		if claim.Status.Allocation == nil || extended[[2]string{claim.Namespace, claim.Name}] {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			taken[deviceID{result.Driver, result.Pool, result.Device}] = true
		}
	}
	return taken
}

// newest are the slices of the newest generation of each pool: older ones are about to go.
func (d Devices) newest() []*resourcev1.ResourceSlice {
	generation := map[[2]string]int64{}
	for _, slice := range d.Slices {
		pool := [2]string{slice.Spec.Driver, slice.Spec.Pool.Name}
		generation[pool] = max(generation[pool], slice.Spec.Pool.Generation)
	}
	return slices.DeleteFunc(slices.Clone(d.Slices), func(slice *resourcev1.ResourceSlice) bool {
		return slice.Spec.Pool.Generation < generation[[2]string{slice.Spec.Driver, slice.Spec.Pool.Name}]
	})
}

// byDriver is the expression by which most classes select devices.
var byDriver = regexp.MustCompile(`^\s*device\.driver\s*==\s*["']([^"']+)["']\s*$`)

// driverOf is the driver whose devices a class selects, "" for all; known is false where it selects by more than that.
func driverOf(class *resourcev1.DeviceClass) (driver string, known bool) {
	known = true
	for _, selector := range class.Spec.Selectors {
		var match []string
		if selector.CEL != nil {
			match = byDriver.FindStringSubmatch(selector.CEL.Expression)
		}
		if match == nil {
			known = false
			continue
		}
		driver = match[1]
	}
	return driver, known
}

// noteDevices says what is not known of the devices that a planned pod gets as extended resources.
func (f *forecast) noteDevices(pod *placement.Pod, its PodForecast) {
	for name := range scheduler.PodRequests(&pod.Object().Spec) {
		if !f.devices[name] {
			continue
		}
		for _, reason := range f.notes.late[name] {
			f.notes.add(reason.Code, reason.Object, "%s", reason.Text)
		}
		if its.State != Starts || len(its.After) > 0 {
			f.notes.add(NotModelled, "resource "+string(name), "%s comes from devices that a driver manages; whether an eviction frees one is not modelled", name)
		}
	}
}
