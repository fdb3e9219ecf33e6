package fakekubelet

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	podresource "k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/pkg/kubelet/envvars"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// A podView is a pod with what its node knows about it: everything the downward
// API can be requested.
type podView struct {
	pod         *corev1.Pod
	podIP       string
	hostIP      string
	allocatable corev1.ResourceList // of the node: limits that were not set are reported as this
}

// An objectLookup returns the data of a config map or secret of the pod's namespace;
// found is false when there is no such object.
type objectLookup func(name string) (data map[string][]byte, found bool, err error)

// containerEnvironment computes a container's variables in the kubelet's order
// of precedence: services, envFrom, then env, each later one winning. The
// result is sorted by name. Errors name the missing object or key; they are what
// CreateContainerConfigError reports.
func containerEnvironment(view podView, c *corev1.Container, services map[string]string, configMap, secret objectLookup) (map[string]string, error) {
	result := map[string]string{}
	for _, from := range c.EnvFrom {
		if err := addEnvFrom(result, from, configMap, secret); err != nil {
			return nil, err
		}
	}
	// References in values see the service variables, and the variables before them.
	references := expansion.MappingFuncFor(result, services)
	for _, e := range c.Env {
		value := expansion.Expand(e.Value, references)
		if e.ValueFrom != nil {
			var (
				set bool
				err error
			)
			if value, set, err = variableSource(view, c, e.ValueFrom, configMap, secret); err != nil {
				return nil, fmt.Errorf("variable %s: %w", e.Name, err)
			}
			if !set {
				continue
			}
		}
		result[e.Name] = value
	}
	for name, value := range services {
		if _, ok := result[name]; !ok {
			result[name] = value
		}
	}
	return result, nil
}

func addEnvFrom(result map[string]string, from corev1.EnvFromSource, configMap, secret objectLookup) error {
	var (
		kind, name string
		optional   *bool
		lookup     objectLookup
	)
	switch {
	case from.ConfigMapRef != nil:
		kind, name, optional, lookup = "configmap", from.ConfigMapRef.Name, from.ConfigMapRef.Optional, configMap
	case from.SecretRef != nil:
		kind, name, optional, lookup = "secret", from.SecretRef.Name, from.SecretRef.Optional, secret
	default:
		return nil
	}
	data, found, err := lookup(name)
	if err != nil {
		return fmt.Errorf("%s %q: %w", kind, name, err)
	}
	if !found && !isTrue(optional) {
		return fmt.Errorf("%s %q not found", kind, name)
	}
	for key, value := range data {
		variable := from.Prefix + key
		if len(validation.IsRelaxedEnvVarName(variable)) > 0 {
			continue // as the kubelet: a key that is no variable name is left out
		}
		result[variable] = string(value)
	}
	return nil
}

// variableSource resolves valueFrom; set is false for an optional reference to
// what does not exist.
func variableSource(view podView, c *corev1.Container, from *corev1.EnvVarSource, configMap, secret objectLookup) (value string, set bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = podField(view, from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err = resourceField(view, c.Name, from.ResourceFieldRef)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		return keyValue("configmap", ref.Name, ref.Key, isTrue(ref.Optional), view.pod.Namespace, configMap)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		return keyValue("secret", ref.Name, ref.Key, isTrue(ref.Optional), view.pod.Namespace, secret)
	default:
		return "", false, errors.New("valueFrom has none of fieldRef, resourceFieldRef, configMapKeyRef and secretKeyRef")
	}
}

func keyValue(kind, name, key string, optional bool, namespace string, lookup objectLookup) (value string, set bool, err error) {
	data, found, err := lookup(name)
	switch {
	case err != nil:
		return "", false, fmt.Errorf("%s %q: %w", kind, name, err)
	case !found && optional:
		return "", false, nil
	case !found:
		return "", false, fmt.Errorf("%s %q not found", kind, name)
	}
	bytes, ok := data[key]
	switch {
	case !ok && optional:
		return "", false, nil
	case !ok:
		return "", false, fmt.Errorf("couldn't find key %s in %s %s/%s", key, kind, namespace, name)
	}
	return string(bytes), true, nil
}

// podField is the downward API's fieldRef, in environment variables and volumes.
func podField(view podView, fieldPath string) (string, error) {
	switch fieldPath {
	case "spec.nodeName":
		return view.pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return view.pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return view.hostIP, nil
	case "status.podIP", "status.podIPs":
		return view.podIP, nil
	}
	return fieldpath.ExtractFieldPathAsString(view.pod, fieldPath)
}

// resourceField is the downward API's resourceFieldRef: a request or limit of the container that ref names, or of
// container. A limit that is not set is the node's allocatable amount.
func resourceField(view podView, container string, ref *corev1.ResourceFieldSelector) (string, error) {
	return podresource.ExtractResourceValueByContainerNameAndNodeAllocatable(ref, view.pod, cmp.Or(ref.ContainerName, container), view.allocatable)
}

// serviceEnvironment computes the variables that announce services, in the form of
// Docker links: those of the pod's namespace if links is set,
// and always the API server's. That one is announced where it really listens, on
// 127.0.0.1:apiServerPort, because nothing forwards its cluster IP's port 443.
func serviceEnvironment(services []*corev1.Service, namespace string, links bool, apiServerPort int) map[string]string {
	// In order of names, so that names that differ only in case give the same variables every time.
	services = slices.SortedFunc(slices.Values(services), func(a, b *corev1.Service) int { return strings.Compare(a.Name, b.Name) })
	announced := slices.DeleteFunc(services, func(s *corev1.Service) bool {
		apiServer := s.Namespace == corev1.NamespaceDefault && s.Name == "kubernetes"
		return !links || apiServer || s.Namespace != namespace || len(s.Spec.Ports) == 0
	})
	announced = append(announced, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"},
		Spec: corev1.ServiceSpec{
			ClusterIP: "127.0.0.1",
			Ports:     []corev1.ServicePort{{Name: "https", Protocol: corev1.ProtocolTCP, Port: int32(apiServerPort)}},
		},
	})
	result := map[string]string{}
	for _, variable := range envvars.FromServices(announced) {
		result[variable.Name] = variable.Value
	}
	return result
}

func isTrue(b *bool) bool { return b != nil && *b }

// environmentList is the form that a process is given.
func environmentList(variables map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		list = append(list, name+"="+variables[name])
	}
	return list
}
