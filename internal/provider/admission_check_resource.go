package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// newAdmissionCheck is elastic_admission_check.
func newAdmissionCheck() func() resource.Resource {
	return newObject(&kind[*kueue.AdmissionCheck]{
		name: "admission_check", title: string(anAdmissionCheck), apiVersion: kueue.SchemeGroupVersion.String(), parentField: "spec",
		attributes: admissionCheckSchema,
		empty:      func() *kueue.AdmissionCheck { return &kueue.AdmissionCheck{} },
		in: func(client *cluster.Client, _ string) cluster.Resource[*kueue.AdmissionCheck] {
			return client.Kueue().AdmissionChecks()
		},
		afterRecreation: "in between, queues with this check were inactive",
		problems:        validation.ValidateAdmissionCheck,
		changes:         validation.ValidateAdmissionCheckUpdate,
		active:          func(check *kueue.AdmissionCheck) *metav1.Condition { return conditionActive(check.Status.Conditions) },
		watch: func(ctx context.Context, client *cluster.Client, _, name string, done func([]*kueue.AdmissionCheck) (bool, error)) error {
			return cluster.WaitFor(ctx, client, client.Kueue().AdmissionChecks(), cluster.Named(name), done)
		},
		plannedAttributes: noAttributes[*kueue.AdmissionCheck],
		holders:           clusterQueuesUsing(usesCheck),
		release:           "Take the check out of their admission_checks_strategy, or delete them.",
	})
}

func admissionCheckSchema(ctx context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "An AdmissionCheck of Kueue: a condition for starting a workload that has quota, for example that nodes have been provisioned, or that another cluster runs the workload. " +
			"A controller, Kueue's or another, decides for each workload.\n\n" +
			"A ClusterQueue with a check that is missing or not active is inactive. While a ClusterQueue has the check, it cannot be deleted.",
		Attributes: kueueAttributes(ctx, "Name of the check, as in a ClusterQueue's `admission_checks_strategy`.", map[string]schema.Attribute{
			"controller_name": requiredText("The controller that decides, such as `kueue.x-k8s.io/provisioning-request` or `kueue.x-k8s.io/multikueue`. Changing it replaces the check."),
			"parameters": optionalObject("Object with the controller's parameters for this check.", map[string]schema.Attribute{
				"api_group": requiredText("API group of the object, such as `kueue.x-k8s.io`."),
				"kind":      requiredText("Its kind, such as `ProvisioningRequestConfig`."),
				"name":      requiredText("Its name."),
			}),
			"wait_for": waitForAttribute("when the check's controller runs and accepts its parameters."),
		}),
	}
}

func usesCheck(queue *kueue.ClusterQueue, name string) bool {
	strategy := queue.Spec.AdmissionChecksStrategy
	return strategy != nil && slices.ContainsFunc(strategy.AdmissionChecks, func(c kueue.AdmissionCheckStrategyRule) bool { return string(c.Name) == name })
}
