package fakekubelet

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func objects(name string, data map[string]string) objectLookup {
	return func(wanted string) (map[string][]byte, bool, error) {
		if wanted != name {
			return nil, false, nil
		}
		result := map[string][]byte{}
		for key, value := range data {
			result[key] = []byte(value)
		}
		return result, true, nil
	}
}

func TestContainerEnvironment(t *testing.T) {
	yes := true
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	key := func(name, key string, optional *bool) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: optional}}
	}
	amount := func(what, divisor string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: what, Divisor: resource.MustParse(divisor)}}
	}
	c := &corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi")}}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "u", Labels: map[string]string{"a/b": "label"}},
		Spec:       corev1.PodSpec{NodeName: "node-1", ServiceAccountName: "sa", Containers: []corev1.Container{*c}},
	}
	view := podView{pod: pod, podIP: "127.32.0.1", hostIP: hostIP, allocatable: corev1.ResourceList{"cpu": resource.MustParse("3920m")}}
	for name, test := range map[string]struct {
		env  []corev1.EnvVar
		from []corev1.EnvFromSource
		want map[string]string
		err  string
	}{
		"a literal":                               {env: []corev1.EnvVar{{Name: "A", Value: "1"}}, want: map[string]string{"A": "1"}},
		"a reference to an earlier variable":      {env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)$(C)"}, {Name: "C", Value: "2"}}, want: map[string]string{"A": "1", "B": "1$(C)", "C": "2"}},
		"a reference to a service":                {env: []corev1.EnvVar{{Name: "B", Value: "$(S_SERVICE_HOST)"}}, want: map[string]string{"B": "10.0.0.1"}},
		"the pod's name and address":              {env: []corev1.EnvVar{{Name: "A", ValueFrom: field("metadata.name")}, {Name: "B", ValueFrom: field("status.podIP")}, {Name: "C", Value: "$(B):1"}}, want: map[string]string{"A": "p", "B": "127.32.0.1", "C": "127.32.0.1:1"}},
		"a label":                                 {env: []corev1.EnvVar{{Name: "A", ValueFrom: field("metadata.labels['a/b']")}}, want: map[string]string{"A": "label"}},
		"an unknown field":                        {env: []corev1.EnvVar{{Name: "A", ValueFrom: field("spec.nope")}}, err: "unsupported fieldPath: spec.nope"},
		"a CPU request is rounded up":             {env: []corev1.EnvVar{{Name: "A", ValueFrom: amount("requests.cpu", "1")}, {Name: "B", ValueFrom: amount("requests.cpu", "1m")}}, want: map[string]string{"A": "2", "B": "1500"}},
		"memory in units of the divisor":          {env: []corev1.EnvVar{{Name: "A", ValueFrom: amount("requests.memory", "1Mi")}}, want: map[string]string{"A": "1024"}},
		"a limit that is not set is the node's":   {env: []corev1.EnvVar{{Name: "A", ValueFrom: amount("limits.cpu", "1m")}}, want: map[string]string{"A": "3920"}},
		"a key of a config map":                   {env: []corev1.EnvVar{{Name: "A", ValueFrom: key("cm", "k", nil)}}, want: map[string]string{"A": "v"}},
		"a missing config map is named":           {env: []corev1.EnvVar{{Name: "A", ValueFrom: key("nope", "k", nil)}}, err: `configmap "nope" not found`},
		"a missing key is named":                  {env: []corev1.EnvVar{{Name: "A", ValueFrom: key("cm", "nope", nil)}}, err: "couldn't find key nope in configmap n/cm"},
		"an optional key may be missing":          {env: []corev1.EnvVar{{Name: "A", ValueFrom: key("cm", "nope", &yes)}}, want: map[string]string{}},
		"a whole config map with a prefix":        {from: []corev1.EnvFromSource{{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}}, want: map[string]string{"P_k": "v"}},
		"a missing secret is named":               {from: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}, err: `secret "s" not found`},
		"a variable wins over a whole config map": {from: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}}, env: []corev1.EnvVar{{Name: "k", Value: "mine"}}, want: map[string]string{"k": "mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := c.DeepCopy()
			c.Env, c.EnvFrom = test.env, test.from
			services := map[string]string{"S_SERVICE_HOST": "10.0.0.1"}
			got, err := containerEnvironment(view, c, services, objects("cm", map[string]string{"k": "v"}), objects("none", nil))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			delete(got, "S_SERVICE_HOST")
			if !maps.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestAPodHasTheVariablesOfTheServicesOfItsNamespaceAndOfKubernetes(t *testing.T) {
	service := func(namespace, name, ip string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Name: "grpc", Port: 50001}}}}
	}
	services := []*corev1.Service{service("n", "low-master", "127.96.0.9"), service("other", "far", "127.96.0.8"), service("n", "headless", "None"), service("default", "kubernetes", "127.96.0.1")}
	got := serviceEnvironment(services, "n", true, 6443)
	for name, want := range map[string]string{
		"LOW_MASTER_SERVICE_HOST": "127.96.0.9", "LOW_MASTER_SERVICE_PORT": "50001", "LOW_MASTER_SERVICE_PORT_GRPC": "50001",
		"LOW_MASTER_PORT": "tcp://127.96.0.9:50001", "LOW_MASTER_PORT_50001_TCP_ADDR": "127.96.0.9",
		"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "6443", "KUBERNETES_SERVICE_PORT_HTTPS": "6443",
		"FAR_SERVICE_HOST": "", "HEADLESS_SERVICE_HOST": "",
	} {
		if got[name] != want {
			t.Errorf("%s = %q, want %q", name, got[name], want)
		}
	}
	if got := serviceEnvironment(services, "n", false, 6443); got["LOW_MASTER_SERVICE_HOST"] != "" || got["KUBERNETES_SERVICE_HOST"] == "" {
		t.Errorf("without service links: %v", got)
	}
}
