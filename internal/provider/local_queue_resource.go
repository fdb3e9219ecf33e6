package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// newLocalQueue is elastic_local_queue.
func newLocalQueue() func() resource.Resource {
	return newObject(&kind[*kueue.LocalQueue]{
		name: "local_queue", title: string(aLocalQueue), apiVersion: kueue.SchemeGroupVersion.String(), parentField: "spec", namespaced: true,
		attributes: localQueueSchema,
		empty:      func() *kueue.LocalQueue { return &kueue.LocalQueue{} },
		in: func(client *cluster.Client, namespace string) cluster.Resource[*kueue.LocalQueue] {
			return client.Kueue().LocalQueues(namespace)
		},
		afterRecreation: "its pending workloads were queued again",
		problems:        validation.ValidateLocalQueue,
		changes:         validation.ValidateLocalQueueUpdate,
		active:          func(queue *kueue.LocalQueue) *metav1.Condition { return conditionActive(queue.Status.Conditions) },
		watch: func(ctx context.Context, client *cluster.Client, namespace, name string, done func([]*kueue.LocalQueue) (bool, error)) error {
			return cluster.WaitFor(ctx, client, client.Kueue().LocalQueues(namespace), cluster.Named(name), done)
		},
		plannedAttributes: localQueueAttributes,
		checks:            checkLocalQueue,
		stops:             true,
		consequence:       releasesQueue,
	})
}

func localQueueSchema(ctx context.Context) schema.Schema {
	clusterQueue := requiredText("Name of the ClusterQueue: refer to `elastic_cluster_queue.NAME.name`. Changing it replaces the queue.")
	clusterQueue.Validators = []validator.String{stringvalidator.LengthAtLeast(1)}
	return schema.Schema{
		MarkdownDescription: "A LocalQueue of Kueue: the queue through which the jobs of a namespace use a ClusterQueue. Jobs name it in their label `kueue.x-k8s.io/queue-name`.\n\n" +
			"Kueue assigns every job without a queue to the LocalQueue `default` of its namespace, if it exists. " +
			"The LocalQueue is inactive while the ClusterQueue is missing or inactive; set `wait_for = \"active\"` to get a warning.",
		Attributes: kueueAttributes(ctx, "Name of the queue, as in a job's label.", map[string]schema.Attribute{
			"namespace": schema.StringAttribute{
				MarkdownDescription: "Namespace of the queue and of the jobs that use it; `default` by default. Changing it replaces the queue.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(metav1.NamespaceDefault),
				Validators:          []validator.String{namespaceName},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"cluster_queue": clusterQueue,
			"stop_policy":   stopPolicyAttribute("queue"),
			"fair_sharing":  fairSharingAttribute("this queue among those of its ClusterQueue (admission fair sharing)"),
			"wait_for":      waitForAttribute("when the ClusterQueue is active and this queue is not stopped."),
		}),
	}
}

func checkLocalQueue(ctx context.Context, c *connection, queue *kueue.LocalQueue) []check {
	return []check{{"clusterQueue", func(at path.Path) diag.Diagnostics {
		return c.checkReference(ctx, at, reference{kind: aClusterQueue, name: string(queue.Spec.ClusterQueue)},
			"The queue is created, but is inactive until the ClusterQueue exists.")
	}}}
}
