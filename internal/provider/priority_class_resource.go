package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// newPriorityClass is elastic_priority_class.
func newPriorityClass() func() resource.Resource {
	return newObject(&kind[*schedulingv1.PriorityClass]{
		name: "priority_class", title: string(aPriorityClass), apiVersion: schedulingv1.SchemeGroupVersion.String(),
		attributes: priorityClassSchema,
		empty:      func() *schedulingv1.PriorityClass { return &schedulingv1.PriorityClass{} },
		in: func(client *cluster.Client, _ string) cluster.Resource[*schedulingv1.PriorityClass] {
			return client.Kubernetes().SchedulingV1().PriorityClasses()
		},
		afterRecreation:   "existing pods keep their priority",
		plannedAttributes: priorityClassAttributes,
		moves: map[string]func([]byte) (*schedulingv1.PriorityClass, error){
			"kubernetes_priority_class":    movedFromPriorityClass,
			"kubernetes_priority_class_v1": movedFromPriorityClass,
		},
	})
}
