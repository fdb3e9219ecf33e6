package provider

import (
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

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

// movedMetadata is an object's metadata in other providers' states.
type movedMetadata struct {
	Name         string            `json:"name"`
	GenerateName string            `json:"generate_name"`
	UID          apitypes.UID      `json:"uid"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
}

// movedFromPriorityClass reads the state of kubernetes_priority_class and kubernetes_priority_class_v1.
func movedFromPriorityClass(state []byte) (*schedulingv1.PriorityClass, error) {
	var source struct {
		Metadata         []movedMetadata         `json:"metadata"`
		Value            int32                   `json:"value"`
		GlobalDefault    bool                    `json:"global_default"`
		Description      string                  `json:"description"`
		PreemptionPolicy corev1.PreemptionPolicy `json:"preemption_policy"`
	}
	if err := json.Unmarshal(state, &source); err != nil {
		return nil, err
	}
	if len(source.Metadata) != 1 {
		return nil, fmt.Errorf("it has no metadata with a name")
	}
	metadata := source.Metadata[0]
	class := &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: metadata.Name, GenerateName: metadata.GenerateName, UID: metadata.UID, Labels: metadata.Labels, Annotations: metadata.Annotations,
		},
		Value:         source.Value,
		GlobalDefault: source.GlobalDefault,
		Description:   source.Description,
	}
	if source.PreemptionPolicy != "" {
		class.PreemptionPolicy = &source.PreemptionPolicy
	}
	return class, nil
}
