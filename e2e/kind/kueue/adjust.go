package kueue

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// What the release's manifests call its parts.
const (
	systemNamespace = "kueue-system"
	managerName     = "kueue-controller-manager"
	configName      = "kueue-manager-config"
	certificateName = "kueue-webhook-server-cert"
	configKey       = "controller_manager_config.yaml"
)

// integrations are those that the project needs: tasks are Jobs, and the workers of a training job are pods.
func integrations() []string { return []string{"batch/job", "pod"} }

// controlPlane is the label and the taint of the nodes that kubeadm makes control planes.
const controlPlane = "node-role.kubernetes.io/control-plane"

// adjust adapts the release to a cluster for scenarios: the integrations that they need are on, and the manager runs on
// the control plane's node, so that the workers' nodes are free for the scenarios and no node that a scenario stops
// takes Kueue along. Images are taken as the nodes have them. The objects are changed in place.
func adjust(objects []*unstructured.Unstructured) error {
	var manager, config bool
	for _, object := range objects {
		var err error
		switch {
		case object.GetKind() == "Deployment" && object.GetName() == managerName:
			manager, err = true, adjustManager(object)
		case object.GetKind() == "ConfigMap" && object.GetName() == configName:
			config, err = true, adjustConfig(object)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if !manager || !config {
		return fmt.Errorf("these are not a Kueue release's manifests: they lack Deployment %s or ConfigMap %s", managerName, configName)
	}
	return nil
}

func adjustManager(deployment *unstructured.Unstructured) error {
	pod := []string{"spec", "template", "spec"}
	if err := unstructured.SetNestedStringMap(deployment.Object, map[string]string{controlPlane: ""}, append(pod, "nodeSelector")...); err != nil {
		return err
	}
	tolerations := []any{map[string]any{"key": controlPlane, "operator": string(corev1.TolerationOpExists), "effect": string(corev1.TaintEffectNoSchedule)}}
	if err := unstructured.SetNestedSlice(deployment.Object, tolerations, append(pod, "tolerations")...); err != nil {
		return err
	}
	containers, _, err := unstructured.NestedSlice(deployment.Object, append(pod, "containers")...)
	if err != nil {
		return err
	}
	for i := range containers {
		container, ok := containers[i].(map[string]any)
		if !ok {
			return fmt.Errorf("container %d is no object", i)
		}
		container["imagePullPolicy"] = string(corev1.PullIfNotPresent)
	}
	return unstructured.SetNestedSlice(deployment.Object, containers, append(pod, "containers")...)
}

// adjustConfig adds the integrations that are not there, and leaves the rest as released.
func adjustConfig(configMap *unstructured.Unstructured) error {
	text, _, err := unstructured.NestedString(configMap.Object, "data", configKey)
	if err != nil {
		return err
	}
	config := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	frameworks, _, err := unstructured.NestedStringSlice(config, "integrations", "frameworks")
	if err != nil {
		return err
	}
	for _, wanted := range integrations() {
		if !slices.Contains(frameworks, wanted) {
			frameworks = append(frameworks, wanted)
		}
	}
	if err := unstructured.SetNestedStringSlice(config, frameworks, "integrations", "frameworks"); err != nil {
		return err
	}
	changed, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(configMap.Object, string(changed), "data", configKey)
}
