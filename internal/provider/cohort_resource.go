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

// newCohort is elastic_cohort.
func newCohort() func() resource.Resource {
	return newObject(&kind[*kueue.Cohort]{
		name: "cohort", title: string(aCohort), apiVersion: kueue.SchemeGroupVersion.String(), parentField: "spec",
		attributes: cohortSchema,
		empty:      func() *kueue.Cohort { return &kueue.Cohort{} },
		in: func(client *cluster.Client, _ string) cluster.Resource[*kueue.Cohort] {
			return client.Kueue().Cohorts()
		},
		afterRecreation:   "in between, its queues were without its quota and limits",
		problems:          validation.ValidateCohort,
		changes:           validation.ValidateCohortUpdate,
		concerns:          func(at string) []string { return quotaConcerns(at, "parent_name") },
		plannedAttributes: noAttributes[*kueue.Cohort],
		checks:            checkCohort,
	})
}

func cohortSchema(ctx context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A Cohort of Kueue: queues and other cohorts, which can borrow unused quota from each other. ClusterQueues with the same `cohort_name` do not need this object; " +
			"it is needed for quota of the cohort itself, for weights, and for hierarchies of cohorts.\n\n" +
			"If it is deleted, the queues remain in a cohort of that name, without a parent and without quota of the cohort itself. A cycle of parents stops all queues in it.",
		Attributes: kueueAttributes(ctx, "Name of the cohort, as in a ClusterQueue's `cohort_name`.", map[string]schema.Attribute{
			"parent_name": nonEmptyText("Cohort above this one, from which it borrows and to which it lends; without it, this is the root of a tree. Refer to `elastic_cohort.NAME.name`."),
			"resource_groups": resourceGroupsAttribute(
				"Quota of the cohort itself, from which all members may borrow.",
				"How much of it the cohort adds.",
				"Maximum amount that all members together may borrow from the parent; unlimited if not set. Only with `parent_name`.",
				"Maximum amount that all members together lend to the parent; all unused quota if not set. Only with `parent_name`.",
			),
			"fair_sharing": fairSharingAttribute("this cohort among the members of its parent"),
		}),
	}
}

func checkCohort(ctx context.Context, c *connection, cohort *kueue.Cohort) []check {
	checks := checkFlavors(ctx, c, cohort.Spec.ResourceGroups, "The cohort is created, but no workload can use that quota until a ClusterQueue has the flavor too.")
	return append(checks, check{"parentName", func(at path.Path) diag.Diagnostics {
		return c.checkReference(ctx, at, reference{kind: aCohort, name: string(cohort.Spec.ParentName)},
			"Kueue then treats it as a cohort without quota, limits and parent.")
	}})
}
