package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// newCohort is elastic_cohort.
func newCohort() func() resource.Resource {
	return newObject(&kind[*kueue.Cohort]{
		name: "cohort", title: string(aCohort), apiVersion: kueue.SchemeGroupVersion.String(), below: "spec",
		attributes: cohortSchema,
		empty:      func() *kueue.Cohort { return &kueue.Cohort{} },
		in: func(client *cluster.Client, _ string) cluster.Resource[*kueue.Cohort] {
			return client.Kueue().Cohorts()
		},
		madeAnew: "queues that name it have been without its quota and limits for a while",
		problems: validation.ValidateCohort,
		changes:  validation.ValidateCohortUpdate,
		concerns: func(at string) []string { return quotaConcerns(at, "parent_name") },
		fact:     noAttributes[*kueue.Cohort],
		checks:   checkCohort,
	})
}

func cohortSchema(ctx context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A Cohort of Kueue: queues and other cohorts, which can borrow unused quota from each other. ClusterQueues with the same `cohort_name` do not need this object; " +
			"it is for quota of the cohort's own, for weights, and for trees of cohorts.\n\n" +
			"Deleting it leaves the queues in a cohort of that name without a parent and without quota of its own. A cycle of parents stops every queue in it.",
		Attributes: kueueAttributes(ctx, "Name of the cohort, as in a ClusterQueue's `cohort_name`.", map[string]schema.Attribute{
			"parent_name": nonEmptyText("Cohort above this one, from which it borrows and to which it lends; without it, this is the root of a tree. Refer to `elastic_cohort.NAME.name`."),
			"resource_groups": resourceGroupsAttribute(
				"Quota of the cohort's own, which is added to its members': a pool that all of them may borrow from.",
				"How much of it the cohort adds.",
				"How much all members together may borrow from the parent; without it, as much as there is. Only with `parent_name`.",
				"How much all members together lend to the parent; without it, all that they do not use. Only with `parent_name`.",
			),
			"fair_sharing": fairSharingAttribute("this cohort among the members of its parent"),
		}),
	}
}

func checkCohort(ctx context.Context, c *connection, cohort *kueue.Cohort) []check {
	checks := checkFlavors(ctx, c, cohort.Spec.ResourceGroups, "The cohort is made all the same, and nobody can use that quota until a ClusterQueue has the flavor too.")
	return append(checks, check{"parentName", func(at path.Path) diag.Diagnostics {
		return c.checkReference(ctx, at, reference{kind: aCohort, name: string(cohort.Spec.ParentName)},
			"Kueue then takes it for a cohort without quota, limits and parent.")
	}})
}
