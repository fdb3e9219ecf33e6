package differential

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// Devices are those that drivers offer (dynamic resource allocation), and the claims for them.
type Devices struct {
	Classes   []*resourcev1.DeviceClass
	Slices    []*resourcev1.ResourceSlice
	Claims    []*resourcev1.ResourceClaim
	Templates []*resourcev1.ResourceClaimTemplate
}

func (d Devices) clone() Devices {
	return Devices{cloned(d.Classes), cloned(d.Slices), cloned(d.Claims), cloned(d.Templates)}
}

func (d Devices) objects() (objects []runtime.Object) {
	objects = appendObjects(objects, d.Classes)
	objects = appendObjects(objects, d.Slices)
	objects = appendObjects(objects, d.Claims)
	return appendObjects(objects, d.Templates)
}

func (d Devices) forEngine() *placement.Devices {
	return &placement.Devices{Classes: d.Classes, Slices: d.Slices, Claims: d.Claims, Templates: d.Templates}
}

// The drivers and classes of snapshots. The devices of a driver are equivalent.
var (
	deviceDrivers = []string{"tpu.example.com", "nic.example.com"}
	deviceClasses = []string{"tpu", "nic"}
)

// mapped is the extended resource that is another name for a class.
const mapped corev1.ResourceName = "example.com/tpu"

// drivers makes the drivers' classes, and the devices on nodes.
func (g *generator) drivers() {
	d := &g.made.Devices
	for i, driver := range deviceDrivers {
		class := &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: deviceClasses[i], UID: types.UID("class-" + deviceClasses[i]), CreationTimestamp: metav1.NewTime(epoch)},
			Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
				CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)},
			}}},
		}
		if name := string(mapped); i == 0 && g.chance(0.8) {
			class.Spec.ExtendedResourceName = &name
		}
		d.Classes = append(d.Classes, class)
		for _, node := range g.made.Nodes {
			if g.chance(0.75) {
				d.Slices = append(d.Slices, g.slice(driver, node))
			}
		}
	}
	for i, count := range []int64{1, 2} {
		name := fmt.Sprintf("template-%d", i)
		for _, namespace := range []string{"default", "other"} {
			d.Templates = append(d.Templates, &resourcev1.ResourceClaimTemplate{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(namespace + name)},
				Spec:       resourcev1.ResourceClaimTemplateSpec{Spec: requestOf(pick(g.rng, deviceClasses...), count)},
			})
		}
	}
}

func (g *generator) slice(driver string, node *corev1.Node) *resourcev1.ResourceSlice {
	name := node.Name + "-" + driver
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node.Name, Pool: resourcev1.ResourcePool{Name: node.Name, ResourceSliceCount: 1},
		},
	}
	for i := range g.within(span{1, 4}) {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("device-%d", i)})
	}
	return slice
}

// requestOf is a claim for a number of devices of a class.
func requestOf(class string, count int64) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name: "request", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count},
	}}}}
}

// claim has a pod that waits request devices: by a claim of its own, by one that pods share, or as extended resource.
func (g *generator) claim(pod *corev1.Pod) {
	switch g.IntN(6) {
	case 0, 1:
		g.requestMapped(pod)
		return
	case 2:
		if shared := g.sharedClaim(pod.Namespace); shared != nil {
			g.useClaim(pod, shared, false)
			return
		}
	case 3:
		g.useClaim(pod, g.resourceClaim(pod.Namespace, "shared", requestOf(g.someClass(), int64(g.within(span{1, 2})))), false)
		return
	}
	template := pick(g.rng, g.made.Devices.Templates...)
	for template.Namespace != pod.Namespace {
		template = pick(g.rng, g.made.Devices.Templates...)
	}
	g.useClaim(pod, g.resourceClaim(pod.Namespace, pod.Name, *template.Spec.Spec.DeepCopy()), true)
	pod.Spec.ResourceClaims[len(pod.Spec.ResourceClaims)-1].ResourceClaimTemplateName = &template.Name
}

func (g *generator) requestMapped(pod *corev1.Pod) {
	container := &pod.Spec.Containers[0]
	if container.Resources.Requests == nil {
		container.Resources.Requests = corev1.ResourceList{}
	}
	if container.Resources.Limits == nil {
		container.Resources.Limits = corev1.ResourceList{}
	}
	amount := *resource.NewQuantity(int64(pick(g.rng, 1, 1, 2, 3)), resource.DecimalSI)
	container.Resources.Requests[mapped], container.Resources.Limits[mapped] = amount, amount
}

func (g *generator) someClass() string {
	if g.chance(0.03) {
		return "missing"
	}
	return pick(g.rng, deviceClasses...)
}

// sharedClaim is a claim of a namespace that other pods have; nil for none.
func (g *generator) sharedClaim(namespace string) *resourcev1.ResourceClaim {
	var shared []*resourcev1.ResourceClaim
	for _, claim := range g.made.Devices.Claims {
		if claim.Namespace == namespace && len(claim.OwnerReferences) == 0 {
			shared = append(shared, claim)
		}
	}
	if len(shared) == 0 {
		return nil
	}
	return pick(g.rng, shared...)
}

func (g *generator) resourceClaim(namespace, name string, spec resourcev1.ResourceClaimSpec) *resourcev1.ResourceClaim {
	g.serial++
	name = fmt.Sprintf("%s-%03d", name, g.serial)
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(namespace + name)}, Spec: spec}
	g.made.Devices.Claims = append(g.made.Devices.Claims, claim)
	return claim
}

// useClaim names a claim in a pod. own: it was made for the pod by a template.
func (g *generator) useClaim(pod *corev1.Pod, claim *resourcev1.ResourceClaim, own bool) {
	reference := corev1.PodResourceClaim{Name: fmt.Sprintf("claim-%d", len(pod.Spec.ResourceClaims))}
	if own {
		yes := true
		claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: &yes}}
		pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: reference.Name, ResourceClaimName: &claim.Name})
	} else {
		reference.ResourceClaimName = &claim.Name
	}
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, reference)
	pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: reference.Name})
}

// hold gives a pod that runs devices of its node, as far as there are any.
func (g *generator) hold(pod *corev1.Pod, node *corev1.Node) {
	if finished(pod) {
		return
	}
	i, count := g.IntN(len(deviceClasses)), int64(g.within(span{1, 2}))
	free := g.freeDevices(deviceDrivers[i], node)
	if int64(len(free)) < count {
		return
	}
	spec := requestOf(deviceClasses[i], count)
	claim := g.resourceClaim(pod.Namespace, pod.Name, spec)
	allocate(claim, deviceDrivers[i], node, free[:count], pod)
	switch g.IntN(3) {
	case 0:
		g.useClaim(pod, claim, false)
	case 1:
		if i == 0 && g.made.Devices.Classes[0].Spec.ExtendedResourceName != nil {
			g.holdMapped(pod, claim, count)
			return
		}
		fallthrough
	default:
		g.useClaim(pod, claim, true)
		pod.Spec.ResourceClaims[len(pod.Spec.ResourceClaims)-1].ResourceClaimTemplateName = &g.made.Devices.Templates[0].Name
	}
}

// holdMapped makes a claim that of a pod's extended resource, as kube-scheduler does.
func (g *generator) holdMapped(pod *corev1.Pod, claim *resourcev1.ResourceClaim, count int64) {
	yes := true
	claim.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: &yes}}
	container := &pod.Spec.Containers[0]
	if container.Resources.Requests == nil {
		container.Resources.Requests = corev1.ResourceList{}
	}
	container.Resources.Requests[mapped] = *resource.NewQuantity(count, resource.DecimalSI)
	pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
		ResourceClaimName: claim.Name,
		RequestMappings: []corev1.ContainerExtendedResourceRequest{{
			ContainerName: container.Name, ResourceName: string(mapped), RequestName: "request",
		}},
	}
}

// freeDevices are the devices of a driver on a node that no claim has.
func (g *generator) freeDevices(driver string, node *corev1.Node) []string {
	taken := map[string]bool{}
	for _, claim := range g.made.Devices.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.Driver == driver && result.Pool == node.Name {
				taken[result.Device] = true
			}
		}
	}
	var free []string
	for _, slice := range g.made.Devices.Slices {
		if slice.Spec.Driver != driver || *slice.Spec.NodeName != node.Name {
			continue
		}
		for _, device := range slice.Spec.Devices {
			if !taken[device.Name] {
				free = append(free, device.Name)
			}
		}
	}
	return free
}

// allocate gives a claim devices of a node, for a pod.
func allocate(claim *resourcev1.ResourceClaim, driver string, node *corev1.Node, names []string, pod *corev1.Pod) {
	allocation := &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node.Name}}},
	}}}}
	for _, name := range names {
		allocation.Devices.Results = append(allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: "request", Driver: driver, Pool: node.Name, Device: name,
		})
	}
	claim.Status.Allocation = allocation
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}}
}
