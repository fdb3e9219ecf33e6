package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/crd"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

// serveTimeout bounds the time until an API server serves a new API: a fraction of a second.
const serveTimeout = time.Minute

// installKueueAPI makes Kueue's kinds available on a new cluster, with nobody behind them, and returns when they are served.
func installKueueAPI(ctx context.Context, admin *rest.Config) error {
	definitions, err := crd.Objects()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, serveTimeout)
	defer cancel()
	for _, definition := range definitions {
		if _, err := client.Resource(crd.Resource()).Create(ctx, definition, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("installing %s: %w", definition.GetName(), err)
		}
	}
	for _, definition := range definitions {
		plural, _, _ := strings.Cut(definition.GetName(), ".") // by rule, a definition's name is its plural and its group
		resource := client.Resource(kueue.SchemeGroupVersion.WithResource(plural))
		err := await.Until(ctx, "the API server serves "+definition.GetName(), 10*time.Millisecond, func(ctx context.Context) error {
			_, err := resource.List(ctx, metav1.ListOptions{Limit: 1})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
