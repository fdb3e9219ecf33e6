package snapshot

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// source has objects of which a forecast needs single ones: an API server, or a file.
type source interface {
	configMap(ctx context.Context, name types.NamespacedName) (*corev1.ConfigMap, error)
	deployment(ctx context.Context, name types.NamespacedName) (*appsv1.Deployment, error)
}

// readJob reads what the ConfigMaps of a training job say.
func readJob(ctx context.Context, from source, name types.NamespacedName) (job forecast.TrainingJob, found bool, err error) {
	of := func(configMap string) types.NamespacedName {
		return types.NamespacedName{Namespace: name.Namespace, Name: configMap}
	}
	definition, err := from.configMap(ctx, of(trainingjob.ConfigMapName(name.Name)))
	if err != nil {
		return job, false, unlessHidden(err)
	}
	if job.Workers, err = trainingjob.DecodeWorkers([]byte(definition.Data[trainingjob.WorkersKey])); err != nil {
		return job, false, nil //nolint:nilerr // it is as if it was not there
	}
	status, err := from.configMap(ctx, of(trainingjob.StatusName(name.Name)))
	if err != nil {
		return job, true, unlessHidden(err)
	}
	// Without a readable status the job's progress is unknown, and the rest is known.
	job.Status, _ = trainingjob.DecodeStatus(status)
	return job, true, nil
}

// unlessHidden is an error of reading an object, but nil where the object is not there, or may not be read.
func unlessHidden(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
