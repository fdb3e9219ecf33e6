package controlplane

// admissionConfig is the API server's configuration (--admission-control-config-file) that enforces a Pod Security
// Standard in every namespace but kube-system that has no label of its own.
func admissionConfig(level string) map[string]any {
	return map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
		"plugins": []any{map[string]any{"name": "PodSecurity", "configuration": map[string]any{
			"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
			"defaults":   map[string]string{"enforce": level, "enforce-version": "latest"},
			"exemptions": map[string]any{"namespaces": []string{"kube-system"}},
		}}},
	}
}
