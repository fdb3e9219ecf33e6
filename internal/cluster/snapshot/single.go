package snapshot

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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

// ReadJob reads what a training job's ConfigMaps say. found is false where there are none, or they may not be read.
func ReadJob(ctx context.Context, client *cluster.Client, name types.NamespacedName) (job forecast.TrainingJob, found bool) {
	return readJob(ctx, server{client}, name)
}

func readJob(ctx context.Context, from source, name types.NamespacedName) (job forecast.TrainingJob, found bool) {
	of := func(configMap string) types.NamespacedName {
		return types.NamespacedName{Namespace: name.Namespace, Name: configMap}
	}
	definition, err := from.configMap(ctx, of(trainingjob.ConfigMapName(name.Name)))
	if err != nil {
		return job, false
	}
	if job.Workers, err = trainingjob.DecodeWorkers([]byte(definition.Data[trainingjob.WorkersKey])); err != nil {
		return job, false
	}
	if status, err := from.configMap(ctx, of(trainingjob.StatusName(name.Name))); err == nil {
		// Without a readable status the job's progress is unknown, and the rest is known.
		job.Status, _ = trainingjob.DecodeStatus(status)
	}
	return job, true
}
