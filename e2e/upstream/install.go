package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

const (
	// fieldManager owns the fields of what is installed.
	fieldManager = "e2e-upstream"
	pause        = 20 * time.Millisecond
)

// The kinds that releases consist of, as far as an embedded cluster needs them: rights do not matter to an administrator.
var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	webhooks    = map[string]schema.GroupVersionResource{
		"MutatingWebhookConfiguration":   {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
		"ValidatingWebhookConfiguration": {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	}
)

// A release is the objects of NAME.yaml.
type release struct{ definitions, webhooks []*unstructured.Unstructured }

// readRelease reads the manifests of a release.
func readRelease(file string) (release, error) {
	var r release
	text, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		if err != nil {
			return r, fmt.Errorf("%s: %w", file, err)
		}
		object := &unstructured.Unstructured{}
		if err := utilyaml.Unmarshal(document, &object.Object); err != nil {
			return r, fmt.Errorf("%s: %w", file, err)
		}
		switch _, webhook := webhooks[object.GetKind()]; {
		case object.GetKind() == "CustomResourceDefinition":
			// Versions are converted by webhooks of the release, which are not installed: one version is enough.
			unstructured.RemoveNestedField(object.Object, "spec", "conversion")
			r.definitions = append(r.definitions, object)
		case webhook:
			r.webhooks = append(r.webhooks, object)
		}
	}
}

// installDefinitions installs the API of a release and waits until the API server lists all of it: a controller that starts
// before ends, as it finds no such kind.
func installDefinitions(ctx context.Context, client dynamic.Interface, lists discovery.ServerResourcesInterface, r release) error {
	for _, definition := range r.definitions {
		if err := apply(ctx, client.Resource(definitions), definition); err != nil {
			return err
		}
	}
	for _, definition := range r.definitions {
		for _, resource := range servedResources(definition) {
			err := await.Until(ctx, "the API server serves "+resource.String(), pause, func(context.Context) error {
				listed, err := lists.ServerResourcesForGroupVersion(resource.GroupVersion().String())
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(listed.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }) {
					return errors.New("it is not listed")
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// servedResources are the versions of a definition that are served.
func servedResources(definition *unstructured.Unstructured) (served []schema.GroupVersionResource) {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		if v, ok := version.(map[string]any); ok && v["served"] == true {
			name, _ := v["name"].(string)
			served = append(served, schema.GroupVersionResource{Group: group, Version: name, Resource: plural})
		}
	}
	return served
}

// installWebhooks has the API server call the webhooks of a project at a port of this machine. names of configurations are
// those of the release, whose kustomization puts the project's name before them.
func installWebhooks(ctx context.Context, client dynamic.Interface, p Project, r release, port int, authority []byte) error {
	for _, configuration := range r.webhooks {
		configuration.SetName(string(p) + "-" + configuration.GetName())
		hooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
		if err != nil {
			return err
		}
		for _, hook := range hooks {
			if err := redirect(hook, port, authority); err != nil {
				return fmt.Errorf("%s of %s: %w", configuration.GetName(), p, err)
			}
		}
		if err := unstructured.SetNestedSlice(configuration.Object, hooks, "webhooks"); err != nil {
			return err
		}
		if err := apply(ctx, client.Resource(webhooks[configuration.GetKind()]), configuration); err != nil {
			return err
		}
	}
	return nil
}

// redirect replaces the Service of a webhook by a URL. Pods of the system are left alone, as the kustomizations of the
// releases have it.
func redirect(hook any, port int, authority []byte) error {
	h, ok := hook.(map[string]any)
	if !ok {
		return errors.New("a webhook is no object")
	}
	path, _, err := unstructured.NestedString(h, "clientConfig", "service", "path")
	if err != nil || path == "" {
		return fmt.Errorf("webhook %v names no path: %w", h["name"], err)
	}
	h["clientConfig"] = map[string]any{"url": fmt.Sprintf("https://127.0.0.1:%d%s", port, path), "caBundle": encode(authority)}
	return nil
}

// createNamespace creates the namespace of a project.
func createNamespace(ctx context.Context, client dynamic.Interface, name string) error {
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	_, err := client.Resource(namespaces).Create(ctx, namespace, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// publishConfiguration puts Kueue's configuration where its release has it, for those who read it there.
func publishConfiguration(ctx context.Context, client dynamic.Interface, text string) error {
	configMap := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "kueue-manager-config"},
		"data": map[string]any{"controller_manager_config.yaml": text},
	}}
	return apply(ctx, client.Resource(configMaps).Namespace(Kueue.namespace()), configMap)
}

func apply(ctx context.Context, objects dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	_, err := objects.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("installing %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
