package addon

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// Manifests reads the add-on's manifests in the folder of the built ones.
func (a Addon) Manifests(dir string) ([]*unstructured.Unstructured, error) {
	path := filepath.Join(dir, a.Name, "manifests.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the manifests of %s: %w", a.Name, err)
	}
	objects, err := ParseManifests(text)
	if err != nil {
		return nil, fmt.Errorf("the manifests of %s, %s: %w", a.Name, path, err)
	}
	return objects, nil
}

// ParseManifests reads a stream of YAML documents.
func ParseManifests(text []byte) ([]*unstructured.Unstructured, error) {
	const sniffed = 4096 // bytes in which the decoder looks for JSON
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), sniffed)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", len(objects)+1, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// Adapt changes manifests for a process on this machine, in place, and returns what of them is to be applied and the
// configuration for the process, which is nil for an add-on that takes flags. authority is the certificate, in PEM, of who
// signed that of the webhooks.
func (a Addon) Adapt(
	objects []*unstructured.Unstructured, settings Settings, authority []byte, endpoint Endpoint,
) (apply []*unstructured.Unstructured, configuration []byte, err error) {
	for _, object := range objects {
		switch object.GetKind() {
		case "Deployment", "Service", "APIService", "Secret":
			// The process, and how others reach it and its certificate in a cluster.
			continue
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			err = endpoint.adaptWebhooks(object, authority)
		case "CustomResourceDefinition":
			err = endpoint.adaptConversion(object, authority)
		case "ConfigMap":
			if object.GetName() == a.configMap {
				configuration, err = a.adaptConfig(object, settings, endpoint)
			}
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %s %s: %w", a.Name, object.GetKind(), object.GetName(), err)
		}
		apply = append(apply, object)
	}
	if configuration == nil && a.configMap != "" {
		return nil, nil, fmt.Errorf("these are not the manifests of %s: they lack ConfigMap %s", a.Name, a.configMap)
	}
	return apply, configuration, nil
}

func (a Addon) adaptConfig(configMap *unstructured.Unstructured, settings Settings, endpoint Endpoint) ([]byte, error) {
	config := settings.Config
	if config == nil {
		text, _, err := unstructured.NestedString(configMap.Object, "data", configKey)
		if err != nil {
			return nil, err
		}
		if err := sigsyaml.Unmarshal([]byte(text), &config); err != nil {
			return nil, err
		}
	}
	for gate, on := range settings.Gates {
		set(config, on, "featureGates", gate)
	}
	a.configure(config, endpoint)
	configuration, err := sigsyaml.Marshal(config)
	if err != nil {
		return nil, err
	}
	return configuration, unstructured.SetNestedField(configMap.Object, string(configuration), "data", configKey)
}

func (e Endpoint) adaptWebhooks(object *unstructured.Unstructured, authority []byte) error {
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return err
	}
	for i := range webhooks {
		webhook, ok := webhooks[i].(map[string]any)
		if !ok {
			return fmt.Errorf("webhook %d is no object", i)
		}
		if err := e.adaptClient(webhook, authority, "clientConfig"); err != nil {
			return fmt.Errorf("webhook %v: %w", webhook["name"], err)
		}
	}
	return unstructured.SetNestedSlice(object.Object, webhooks, "webhooks")
}

func (e Endpoint) adaptConversion(definition *unstructured.Unstructured, authority []byte) error {
	path := []string{"spec", "conversion", "webhook", "clientConfig"}
	if _, found, err := unstructured.NestedMap(definition.Object, path...); err != nil || !found {
		return err
	}
	return e.adaptClient(definition.Object, authority, path...)
}

// adaptClient has the API server reach a webhook by URL: the process is behind no Service.
func (e Endpoint) adaptClient(object map[string]any, authority []byte, path ...string) error {
	route, found, err := unstructured.NestedString(object, slices.Concat(path, []string{"service", "path"})...)
	if err != nil || !found {
		return errors.Join(err, errors.New("it names no path of a Service"))
	}
	return unstructured.SetNestedMap(object, map[string]any{
		"url":      fmt.Sprintf("https://127.0.0.1:%d%s", e.WebhookPort, route),
		"caBundle": base64.StdEncoding.EncodeToString(authority),
	}, path...)
}
