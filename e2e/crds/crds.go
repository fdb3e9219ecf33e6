// Package crds installs CustomResourceDefinitions on a cluster that has no Kueue, so that its API can be used there.
package crds

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/elastic-training/terraform-provider-elastic/internal/kueue/crd"
)

const (
	// fieldManager owns the fields of what is installed.
	fieldManager = "simcluster"
	// establishPatience bounds the time until an API server serves a new API: a fraction of a second.
	establishPatience = 60 * time.Second
	establishPause    = 20 * time.Millisecond
)

// InstallKueue installs the definitions of Kueue's kinds that are ours. It may be repeated.
func InstallKueue(ctx context.Context, admin *rest.Config) error {
	definitions, err := crd.Objects()
	if err != nil {
		return fmt.Errorf("installing Kueue's API: %w", err)
	}
	return Install(ctx, admin, definitions)
}

// Install applies definitions and returns when the API server serves them. They go by server-side apply: one may be too
// large for the annotation that client-side apply keeps.
func Install(ctx context.Context, admin *rest.Config, definitions []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("installing APIs: %w", err)
	}
	resource := client.Resource(crd.Resource())
	for _, definition := range definitions {
		if _, err := resource.Apply(ctx, definition.GetName(), definition, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
			return fmt.Errorf("installing %s: %w", definition.GetName(), err)
		}
	}
	for _, definition := range definitions {
		if err := awaitEstablished(ctx, resource, definition.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// awaitEstablished waits until the API server serves what a definition defines.
func awaitEstablished(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, establishPatience, fmt.Errorf("not established within %s", establishPatience))
	defer cancel()
	for {
		definition, err := resource.Get(ctx, name, metav1.GetOptions{})
		if err == nil && established(definition) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until the API server serves %s: %w", name, errors.Join(context.Cause(ctx), err))
		case <-time.After(establishPause):
		}
	}
}

func established(definition *unstructured.Unstructured) bool {
	// What is no list has no condition that is true.
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["type"] == "Established" && condition["status"] == string(metav1.ConditionTrue) {
			return true
		}
	}
	return false
}
