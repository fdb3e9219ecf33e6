// Package crds installs CustomResourceDefinitions on a cluster that has no Kueue, so that its API can be used there.
package crds

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/crd"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

const (
	// fieldManager owns the fields of what is installed.
	fieldManager = "simcluster"
	// servePatience bounds the time until an API server serves a new API: a fraction of a second.
	servePatience = 60 * time.Second
	servePause    = 10 * time.Millisecond
)

// InstallKueue installs the definitions of Kueue's kinds that this project reads, and returns when they are served.
func InstallKueue(ctx context.Context, admin *rest.Config) error {
	definitions, err := crd.Objects()
	if err != nil {
		return fmt.Errorf("installing Kueue's API: %w", err)
	}
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("installing Kueue's API: %w", err)
	}
	return errors.Join(Apply(ctx, client, definitions), AwaitServed(ctx, client, definitions))
}

// Apply creates or changes definitions, by server-side apply: one may be too large for the annotation that client-side
// apply keeps. It may be repeated.
func Apply(ctx context.Context, client dynamic.Interface, definitions []*unstructured.Unstructured) error {
	for _, definition := range definitions {
		_, err := client.Resource(crd.Resource()).Apply(ctx, definition.GetName(), definition, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		if err != nil {
			return fmt.Errorf("installing %s: %w", definition.GetName(), err)
		}
	}
	return nil
}

// AwaitServed returns when the API server answers requests for Kueue's kinds that are defined.
func AwaitServed(ctx context.Context, client dynamic.Interface, definitions []*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeoutCause(ctx, servePatience, fmt.Errorf("not served within %s", servePatience))
	defer cancel()
	for _, definition := range definitions {
		plural, _, _ := strings.Cut(definition.GetName(), ".") // by rule, a definition's name is its plural and its group
		resource := kueue.SchemeGroupVersion.WithResource(plural)
		err := await.Until(ctx, "the API server serves "+definition.GetName(), servePause, func(ctx context.Context) error {
			_, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
