//go:build !podsonly

package elastictrainer

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clusterflags"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// clusterCommands submit a training job to a cluster, and follow and delete it, without Terraform.
func clusterCommands(version string) []*cobra.Command {
	return []*cobra.Command{newSubmit(version), newStatus(), newLogs(), newDelete()}
}

// clusterFlags say which cluster and which namespace, as kubectl's do.
type clusterFlags struct {
	clusterflags.Flags
	namespace string
}

func (f *clusterFlags) register(c *cobra.Command) {
	f.Register(c)
	c.Flags().StringVarP(&f.namespace, "namespace", "n", corev1.NamespaceDefault, "namespace of the job")
}

func (f *clusterFlags) connect() (*cluster.Client, error) { return f.Connect("elastic-trainer") }

// find is the Job of a training job.
func (f *clusterFlags) find(ctx context.Context, client *cluster.Client, name string) (*batchv1.Job, error) {
	job, err := cluster.Get(ctx, client, client.Kubernetes().BatchV1().Jobs(f.namespace), name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no training job %s in namespace %s; --namespace selects another", name, f.namespace)
	}
	if err != nil {
		return nil, clusterflags.Explained(err)
	}
	if job.Labels[trainingjob.LabelJobName] != name {
		return nil, fmt.Errorf("there is a Job %s/%s, but it is not a training job: it does not have the label %s=%s", f.namespace, name, trainingjob.LabelJobName, name)
	}
	return job, nil
}

// refOf names a Job that was read from the cluster.
func refOf(job *batchv1.Job) trainingjob.JobRef {
	return trainingjob.JobRef{Name: job.Name, Namespace: job.Namespace, UID: job.UID}
}

// errNotTrained is the end of a job without a model.
var errNotTrained = errors.New("the job has failed")
