package truth

import "fmt"

// deviceFeatures are devices, which are claimed or requested as extended resources, and volumes.
var deviceFeatures = []feature{
	{3, (*drawing).extended},
	{2, (*drawing).claimed},
	{3, (*drawing).volume},
}

// publish puts devices on some nodes.
func (d *drawing) publish(driver string) {
	for _, node := range nodeNames[:1+d.IntN(len(nodeNames))] {
		devices := "{name: d0}"
		if d.oneIn(2) {
			devices = "{name: d0}, {name: d1}"
		}
		d.first = append(d.first, objectOf("{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: %[1]s-%[2]s}, spec: {driver: %[2]s, nodeName: %[1]s, pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}, devices: [%[3]s]}}",
			node, driver, devices))
	}
}

// extended are devices that pods request as a resource.
func (d *drawing) extended() {
	const driver, resource = "tpu.example.com", "example.com/tpu"
	d.first = append(d.first, objectOf(`{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: tpu}, spec: {extendedResourceName: %s, selectors: [{cel: {expression: "device.driver == '%s'"}}]}}`, resource, driver))
	d.publish(driver)
	set(container(d.anyPlanned()), fmt.Sprint(1+d.IntN(2)), "resources", "limits", resource)
	if resident := d.anyResident(); resident != nil && d.oneIn(2) {
		set(container(resident), "1", "resources", "limits", resource)
	}
}

// claimed are devices that pods claim, each for itself or one for all.
func (d *drawing) claimed() {
	const driver = "fpga.example.com"
	d.first = append(d.first, objectOf(`{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: fpga}, spec: {selectors: [{cel: {expression: "device.driver == '%s'"}}]}}`, driver))
	d.publish(driver)
	const devices = "{devices: {requests: [{name: r, exactly: {deviceClassName: fpga}}]}}"
	planned := d.anyPlanned()
	claim := "resourceClaimTemplateName: each"
	if d.oneIn(3) {
		claim = "resourceClaimName: all"
		shared := objectOf("{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: all}, spec: %s}", devices)
		shared.SetNamespace(planned.GetNamespace())
		d.first = append(d.first, shared)
	} else {
		each := objectOf("{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: each}, spec: {spec: %s}}", devices)
		each.SetNamespace(planned.GetNamespace())
		d.first = append(d.first, each)
	}
	podSpec(planned)["resourceClaims"] = yamlOf("[{name: c, %s}]", claim)
	set(container(planned), yamlOf("[{name: c}]"), "resources", "claims")
}

// volume is one on some nodes, which is bound before pods come or when the first does.
func (d *drawing) volume() {
	name, planned := d.name("data"), d.anyPlanned()
	mode := one(d, "Immediate", "WaitForFirstConsumer")
	d.first = append(d.first, objectOf("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %s}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: %s}", name, mode))
	for range 1 + d.IntN(2) {
		d.first = append(d.first, objectOf("{apiVersion: v1, kind: PersistentVolume, metadata: {name: %s}, spec: {capacity: {storage: 1Gi}, accessModes: [%s], storageClassName: %s, local: {path: /tmp}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}]}}}}",
			d.name("volume"), "ReadWriteMany", name, one(d, "cpu-1", "cpu-2, gpu-1", "cpu-3, cpu-4", "gpu-2")))
	}
	claim := objectOf("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {accessModes: [ReadWriteMany], storageClassName: %s, resources: {requests: {storage: 1Gi}}}}", name, name)
	claim.SetNamespace(planned.GetNamespace())
	d.first = append(d.first, claim)
	podSpec(planned)["volumes"] = yamlOf("[{name: v, persistentVolumeClaim: {claimName: %s}}]", name)
	container(planned)["volumeMounts"] = yamlOf("[{name: v, mountPath: /data}]")
}
