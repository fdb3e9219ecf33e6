package fakekubelet

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
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
	lookup := func(name string) (string, bool) {
		if value, ok := result[name]; ok {
			return value, true
		}
		value, ok := services[name]
		return value, ok
	}
	for _, e := range c.Env {
		value := expand(e.Value, lookup)
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
		value, err = resourceField(view, c, from.ResourceFieldRef)
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
	pod := view.pod
	if key, ok := subscript(fieldPath, "metadata.labels"); ok {
		return pod.Labels[key], nil
	}
	if key, ok := subscript(fieldPath, "metadata.annotations"); ok {
		return pod.Annotations[key], nil
	}
	switch fieldPath {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return formatMap(pod.Labels), nil
	case "metadata.annotations":
		return formatMap(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return view.hostIP, nil
	case "status.podIP", "status.podIPs":
		return view.podIP, nil
	}
	return "", fmt.Errorf("fieldPath %q is not a field of the downward API", fieldPath)
}

// subscript takes key out of `path['key']`.
func subscript(fieldPath, path string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(fieldPath, path+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "']")
}

// formatMap writes labels or annotations as the downward API's files hold them.
func formatMap(m map[string]string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, fmt.Sprintf("%s=%q", key, m[key]))
	}
	return strings.Join(lines, "\n")
}

// resourceField is the downward API's resourceFieldRef: a request or limit of a
// container (c, or the one that ref names), divided and rounded up. A limit that is
// not set is the node's allocatable amount.
func resourceField(view podView, c *corev1.Container, ref *corev1.ResourceFieldSelector) (string, error) {
	if ref.ContainerName != "" {
		if c = findContainer(&view.pod.Spec, ref.ContainerName); c == nil {
			return "", fmt.Errorf("resourceFieldRef names container %q, which the pod does not have", ref.ContainerName)
		}
	}
	if c == nil {
		return "", errors.New("resourceFieldRef names no container")
	}
	kind, name, _ := strings.Cut(ref.Resource, ".")
	resourceName := corev1.ResourceName(name)
	var quantity resource.Quantity
	switch kind {
	case "limits":
		var ok bool
		if quantity, ok = c.Resources.Limits[resourceName]; !ok {
			quantity = view.allocatable[resourceName]
		}
	case "requests":
		quantity = c.Resources.Requests[resourceName]
	default:
		return "", fmt.Errorf("resource %q is neither limits.NAME nor requests.NAME", ref.Resource)
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	amount, unit := quantity.Value(), divisor.Value()
	if resourceName == corev1.ResourceCPU {
		// Whole units would lose what CPU is measured in.
		amount, unit = quantity.MilliValue(), divisor.MilliValue()
	}
	return strconv.FormatInt((amount+unit-1)/unit, 10), nil
}

func findContainer(spec *corev1.PodSpec, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// serviceEnvironment computes the variables that announce services, in the form of
// Docker links, as a kubelet does: those of the pod's namespace if links is set,
// and always the API server's. That one is announced where it really listens, on
// 127.0.0.1:apiServerPort, because nothing forwards its cluster IP's port 443.
func serviceEnvironment(services []*corev1.Service, namespace string, links bool, apiServerPort int) map[string]string {
	result := map[string]string{}
	// In order of names, so that names that differ only in case give the same variables every time.
	services = slices.SortedFunc(slices.Values(services), func(a, b *corev1.Service) int { return strings.Compare(a.Name, b.Name) })
	for _, service := range services {
		ip := service.Spec.ClusterIP
		apiServer := service.Namespace == corev1.NamespaceDefault && service.Name == "kubernetes"
		if !links || apiServer || service.Namespace != namespace || ip == "" || ip == corev1.ClusterIPNone || len(service.Spec.Ports) == 0 {
			continue
		}
		addServiceVariables(result, service.Name, ip, service.Spec.Ports)
	}
	addServiceVariables(result, "kubernetes", "127.0.0.1", []corev1.ServicePort{{Name: "https", Protocol: corev1.ProtocolTCP, Port: int32(apiServerPort)}})
	return result
}

func addServiceVariables(result map[string]string, name, ip string, ports []corev1.ServicePort) {
	prefix := variableName(name)
	result[prefix+"_SERVICE_HOST"] = ip
	result[prefix+"_SERVICE_PORT"] = strconv.Itoa(int(ports[0].Port))
	for i, port := range ports {
		number := strconv.Itoa(int(port.Port))
		if port.Name != "" {
			result[prefix+"_SERVICE_PORT_"+variableName(port.Name)] = number
		}
		protocol := string(port.Protocol)
		if protocol == "" {
			protocol = string(corev1.ProtocolTCP)
		}
		url := strings.ToLower(protocol) + "://" + net.JoinHostPort(ip, number)
		if i == 0 {
			result[prefix+"_PORT"] = url
		}
		portPrefix := prefix + "_PORT_" + number + "_" + strings.ToUpper(protocol)
		result[portPrefix] = url
		result[portPrefix+"_PROTO"] = strings.ToLower(protocol)
		result[portPrefix+"_PORT"] = number
		result[portPrefix+"_ADDR"] = ip
	}
}

func variableName(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

func isTrue(b *bool) bool { return b != nil && *b }

// environmentList is the form that a process is given.
func environmentList(variables map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		list = append(list, name+"="+variables[name])
	}
	return list
}
