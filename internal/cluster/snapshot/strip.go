package snapshot

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// unread are the fields that no forecast reads, and that may hold secrets, say what only a person may know, or are large.
var unread = map[string]bool{
	"ManagedFields": true, "ResourceVersion": true, "SelfLink": true, "Message": true, "Description": true,
	"Command": true, "Args": true, "Env": true, "EnvFrom": true, "WorkingDir": true, "VolumeMounts": true, "Lifecycle": true,
	"LivenessProbe": true, "ReadinessProbe": true, "StartupProbe": true, "TerminationMessagePath": true, "ImagePullSecrets": true,
	"HostAliases": true, "DNSConfig": true, "ImageID": true, "ContainerID": true, "State": true, "LastTerminationState": true,
	"HostIPs": true, "PodIP": true, "PodIPs": true, "Addresses": true, "NodeInfo": true, "PodCIDR": true, "PodCIDRs": true,
	"ProviderID": true, "ClusterIP": true, "ClusterIPs": true, "ExternalIPs": true, "LoadBalancer": true,
	"ClientConfig":     true,                                                            // of webhooks
	"VolumeAttributes": true, "Parameters": true, "MountOptions": true, "Options": true, // of drivers, which may be credentials
}

// strip empties the fields of an object that no forecast reads. A ConfigMap has what forecasts read only.
func strip(object object) {
	if _, isConfigMap := object.(*corev1.ConfigMap); !isConfigMap {
		stripFields(reflect.ValueOf(object))
	}
}

// readAnnotations are the domains of the annotations that forecasts read. Others may be anything: the change-cause of a
// Deployment, which its ReplicaSets have too, is a command line.
var readAnnotations = words(`kueue.x-k8s.io jobset.sigs.k8s.io leaderworkerset.sigs.k8s.io batch.kubernetes.io resource.kubernetes.io
	pv.kubernetes.io volume.kubernetes.io volume.beta.kubernetes.io storageclass.kubernetes.io storageclass.beta.kubernetes.io
	elastic-training.github.io`)

// stripAnnotations drops those that no forecast reads.
func stripAnnotations(of *metav1.ObjectMeta) {
	maps.DeleteFunc(of.Annotations, func(key, _ string) bool {
		domain, _, _ := strings.Cut(key, "/")
		return !readAnnotations[domain]
	})
}

func stripFields(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			stripFields(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			stripFields(v.Index(i))
		}
	case reflect.Struct:
		if opaque[v.Type()] {
			return
		}
		if of, isMeta := v.Addr().Interface().(*metav1.ObjectMeta); isMeta {
			stripAnnotations(of)
		}
		for i := range v.NumField() {
			if unread[v.Type().Field(i).Name] || v.Type().Field(i).Type == reflect.TypeFor[[]byte]() {
				v.Field(i).SetZero()
			} else {
				stripFields(v.Field(i))
			}
		}
	}
}

// opaque are the structs whose fields are not looked at: amounts, times, and what Pod Security compares with its lists.
var opaque = map[reflect.Type]bool{
	reflect.TypeFor[resource.Quantity](): true, reflect.TypeFor[metav1.Time](): true, reflect.TypeFor[metav1.MicroTime](): true,
	reflect.TypeFor[metav1.Duration](): true, reflect.TypeFor[intstr.IntOrString](): true,
	reflect.TypeFor[corev1.Sysctl](): true, reflect.TypeFor[corev1.SELinuxOptions](): true,
}

// publicDomains are those of labels and annotations of public projects, and of those below them; other domains below
// those of clouds have images of their customers.
var publicDomains = []string{"kubernetes.io", "k8s.io", "x-k8s.io", "elastic-training.github.io", "karpenter.sh", "kubeflow.org", "ray.io"}

var publicKeys = words(`cloud.google.com eks.amazonaws.com k8s.amazonaws.com alpha.eksctl.io kubernetes.azure.com karpenter.k8s.aws
	nvidia.com amd.com`)

// chosenKeys are domains of which the names are the owner's.
var chosenKeys = words(`container.apparmor.security.beta.kubernetes.io node-restriction.kubernetes.io node-role.kubernetes.io`)

// isPublic reports whether a key of labels or annotations is of a public project, and so says nothing about a cluster's
// owner.
func isPublic(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	below := func(public string) bool { return domain == public || strings.HasSuffix(domain, "."+public) }
	return found && !chosenKeys[domain] && (publicKeys[domain] || slices.ContainsFunc(publicDomains, below))
}
