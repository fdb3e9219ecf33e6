package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// newWorkloadPriorityClass is elastic_workload_priority_class.
func newWorkloadPriorityClass() func() resource.Resource {
	return newObject(&kind[*kueue.WorkloadPriorityClass]{
		name: "workload_priority_class", title: string(aWorkloadPriorityClass), apiVersion: kueue.SchemeGroupVersion.String(),
		attributes: workloadPriorityClassSchema,
		empty:      func() *kueue.WorkloadPriorityClass { return &kueue.WorkloadPriorityClass{} },
		in: func(client *cluster.Client, _ string) cluster.Resource[*kueue.WorkloadPriorityClass] {
			return client.Kueue().WorkloadPriorityClasses()
		},
		afterRecreation:   "existing workloads keep their priority",
		problems:          validation.ValidateWorkloadPriorityClass,
		changes:           validation.ValidateWorkloadPriorityClassUpdate,
		plannedAttributes: workloadPriorityClassAttributes,
		checks:            checkWorkloadPriorityClass,
	})
}

func workloadPriorityClassSchema(ctx context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A WorkloadPriorityClass of Kueue: the priority of a workload in the queue. Jobs name it in their label `kueue.x-k8s.io/priority-class`.\n\n" +
			"It determines the order of admission and which workloads are preempted. The scheduler and the kubelet use another priority, that of the pods (`elastic_priority_class`). " +
			"Workloads are evicted only if the ClusterQueue's `preemption` allows it; it is `Never` by default.\n\n" +
			"A change of `value` applies to new workloads. Existing workloads keep their priority until their job's label names another class.",
		Attributes: kueueAttributes(ctx, "Name of the class, as in a job's label.", map[string]schema.Attribute{
			"value": requiredInteger("The priority; higher values are more important. Changing it does not change existing workloads.",
				int32Validators()...),
			"description": textOr("When to use this class; at most 2048 characters.", ""),
		}),
	}
}

// checkWorkloadPriorityClass warns when queues planned before it will not do what different priorities are for.
func checkWorkloadPriorityClass(ctx context.Context, c *connection, _ *kueue.WorkloadPriorityClass) []check {
	return []check{{"value", func(at path.Path) diag.Diagnostics {
		var diags diag.Diagnostics
		for _, queue := range c.neverPreempting() {
			diags.Append(c.warnOfNever(ctx, at, queue)...)
		}
		return diags
	}}}
}
