//go:build !offline

package snapshot

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/manifest"
)

// ReadRuntime reads a TrainingRuntime of Kubeflow Trainer, or a ClusterTrainingRuntime, which has no namespace.
func ReadRuntime(ctx context.Context, client *cluster.Client, kind, namespace, name string) (*unstructured.Unstructured, error) {
	request := client.Kubernetes().CoreV1().RESTClient().Get().AbsPath("/apis/" + manifest.TrainerGroup + "/v1alpha1")
	resource := "clustertrainingruntimes"
	if namespace != "" {
		resource = "trainingruntimes"
		request = request.Namespace(namespace)
	}
	text, err := request.Resource(resource).Name(name).DoRaw(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s %s is not there", kind, name)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("not allowed: get %s.%s", resource, manifest.TrainerGroup)
	case err != nil:
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, name, err)
	}
	return object, nil
}
