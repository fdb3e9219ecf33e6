package snapshot

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/configuration"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// readConfiguration reads Kueue's configuration, and the feature gates among the arguments of its Deployment. What is not
// known of it is in ConfigurationUnread.
func readConfiguration(ctx context.Context, from source, q *forecast.Queues) error {
	object := "ConfigMap " + configuration.Namespace + "/" + configuration.ConfigMap
	configMap, err := from.configMap(ctx, types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.ConfigMap})
	switch {
	case apierrors.IsForbidden(err):
		q.ConfigurationUnread = "getting " + object + " is not allowed"
		return nil
	case apierrors.IsNotFound(err):
		q.ConfigurationUnread = "there is no " + object
		return nil
	case err != nil:
		return err
	}
	text, found := configMap.Data[configuration.Key]
	if !found {
		q.ConfigurationUnread = fmt.Sprintf("%s has no key %s", object, configuration.Key)
		return nil
	}
	if q.Configuration, err = configuration.Parse(text); err != nil {
		q.ConfigurationUnread = fmt.Sprintf("%s: %v", object, err)
		return nil
	}
	return readGates(ctx, from, q)
}

// readGates reads the arguments of Kueue's Deployment. Where there is none, Kueue runs elsewhere, and has only its
// configuration.
func readGates(ctx context.Context, from source, q *forecast.Queues) error {
	deployment, err := from.deployment(ctx, types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Deployment})
	switch {
	case apierrors.IsForbidden(err):
		q.ConfigurationUnread = fmt.Sprintf("feature gates may be arguments of Deployment %s/%s, and getting it is not allowed",
			configuration.Namespace, configuration.Deployment)
		return nil
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	for i := range deployment.Spec.Template.Spec.Containers {
		container := &deployment.Spec.Template.Spec.Containers[i]
		q.Configuration.AddGates(append(container.Command, container.Args...))
	}
	return nil
}
