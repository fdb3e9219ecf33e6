package snapshot

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// source has objects of which a forecast needs single ones: an API server, or a file.
type source interface {
	configMap(ctx context.Context, name types.NamespacedName) (*corev1.ConfigMap, error)
	deployment(ctx context.Context, name types.NamespacedName) (*appsv1.Deployment, error)
}

// server is an API server.
type server struct{ *cluster.Client }

func (s server) configMap(ctx context.Context, name types.NamespacedName) (*corev1.ConfigMap, error) {
	return cluster.Get(ctx, s.Client, s.Kubernetes().CoreV1().ConfigMaps(name.Namespace), name.Name)
}

func (s server) deployment(ctx context.Context, name types.NamespacedName) (*appsv1.Deployment, error) {
	return cluster.Get(ctx, s.Client, s.Kubernetes().AppsV1().Deployments(name.Namespace), name.Name)
}

// ReadJobs reads what the ConfigMaps of training jobs say. A job is left out where there are none, or they may not be read.
func ReadJobs(ctx context.Context, client *cluster.Client, names []types.NamespacedName) (map[types.NamespacedName]forecast.TrainingJob, error) {
	known := map[types.NamespacedName]forecast.TrainingJob{}
	for _, name := range names {
		job, found, err := readJob(ctx, server{client}, name)
		if err != nil {
			return known, err
		}
		if found {
			known[name] = job
		}
	}
	return known, nil
}

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
