//go:build !offline

package snapshot

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// server is an API server.
type server struct{ *cluster.Client }

func (s server) configMap(ctx context.Context, name types.NamespacedName) (*corev1.ConfigMap, error) {
	return cluster.Get(ctx, s.Client, s.Kubernetes().CoreV1().ConfigMaps(name.Namespace), name.Name)
}

func (s server) deployment(ctx context.Context, name types.NamespacedName) (*appsv1.Deployment, error) {
	return cluster.Get(ctx, s.Client, s.Kubernetes().AppsV1().Deployments(name.Namespace), name.Name)
}

// list reads all objects of a kind, as cluster.ListCached does.
func (s server) list(ctx context.Context, k *kind) error {
	if err := s.Verify(ctx); err != nil {
		return err
	}
	kinds, api := scheme.Scheme, s.group(k)
	if k.ofKueue() {
		kinds, api = s.Kueue().Kinds(), s.Kueue().RESTClient()
	}
	list, err := kinds.New(k.GroupVersion().WithKind(k.Kind + "List"))
	if err != nil {
		return err
	}
	request := api.Get().UseProtobufAsDefaultIfPreferred(!k.ofKueue()).Resource(k.plural).Param("resourceVersion", "0")
	if k.Kind == "Pod" {
		request.Param("fieldSelector", NotEnded)
	}
	if err = request.Do(ctx).Into(list); err == nil {
		err = k.set(list)
	}
	return s.Wrap("list", cluster.Ref{Kind: k.Kind}, err)
}

// group is where the objects of a group of Kubernetes are.
func (s server) group(k *kind) rest.Interface {
	kube := s.Kubernetes()
	switch k.Group {
	case admissionv1.GroupName:
		return kube.AdmissionregistrationV1().RESTClient()
	case appsv1.GroupName:
		return kube.AppsV1().RESTClient()
	case batchv1.GroupName:
		return kube.BatchV1().RESTClient()
	case nodev1.GroupName:
		return kube.NodeV1().RESTClient()
	case policyv1.GroupName:
		return kube.PolicyV1().RESTClient()
	case resourcev1.GroupName:
		return kube.ResourceV1().RESTClient()
	case schedulingv1.GroupName:
		return kube.SchedulingV1().RESTClient()
	case storagev1.GroupName:
		return kube.StorageV1().RESTClient()
	}
	return kube.CoreV1().RESTClient()
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
