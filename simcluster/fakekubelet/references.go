package fakekubelet

import corev1 "k8s.io/api/core/v1"

// references names the config maps and secrets that a pod depends on.
type references struct{ configMaps, secrets map[string]bool }

func podReferences(pod *corev1.Pod) references {
	r := references{map[string]bool{}, map[string]bool{}}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.ConfigMap != nil {
			r.configMaps[v.ConfigMap.Name] = true
		}
		if v.Secret != nil {
			r.secrets[v.Secret.SecretName] = true
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil {
				r.configMaps[source.ConfigMap.Name] = true
			}
			if source.Secret != nil {
				r.secrets[source.Secret.Name] = true
			}
		}
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			r.addEnvironment(&list[i])
		}
	}
	return r
}

func (r references) addEnvironment(c *corev1.Container) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			r.configMaps[from.ConfigMapRef.Name] = true
		}
		if from.SecretRef != nil {
			r.secrets[from.SecretRef.Name] = true
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
			r.configMaps[ref.Name] = true
		}
		if ref := e.ValueFrom.SecretKeyRef; ref != nil {
			r.secrets[ref.Name] = true
		}
	}
}
