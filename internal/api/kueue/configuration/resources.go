package configuration

import (
	"strings"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resources defines which resources count, of those that pods request.
type Resources struct {
	QuotaCheckStrategy string `json:"quotaCheckStrategy,omitempty"`
	// ExcludeResourcePrefixes begin the names of resources that do not count.
	ExcludeResourcePrefixes []string         `json:"excludeResourcePrefixes,omitempty"`
	Transformations         []Transformation `json:"transformations,omitempty"`
}

// Transformation makes other resources of a requested one.
type Transformation struct {
	Input corev1.ResourceName `json:"input"`
	// Strategy is Retain, the default, or Replace: whether the input counts as well.
	Strategy string `json:"strategy,omitempty"`
	// MultiplyBy is a requested resource whose amount multiplies the outputs.
	MultiplyBy corev1.ResourceName `json:"multiplyBy,omitempty"`
	// Outputs are the amounts for one unit of the input.
	Outputs corev1.ResourceList `json:"outputs,omitempty"`
}

// Count returns what counts of a pod's requests (Kueue's pkg/workload, dropExcludedResources and
// applyResourceTransformations). It does not change its argument.
func (r *Resources) Count(requests corev1.ResourceList) corev1.ResourceList {
	if len(r.ExcludeResourcePrefixes) == 0 && len(r.Transformations) == 0 {
		return requests
	}
	left := corev1.ResourceList{}
	for name, amount := range requests {
		if !r.excludes(name) {
			left[name] = amount
		}
	}
	retained, made := corev1.ResourceList{}, corev1.ResourceList{}
	for name, amount := range left {
		t := r.transformation(name)
		if t == nil {
			add(retained, name, amount)
			continue
		}
		if t.Strategy != "Replace" {
			add(retained, name, amount)
		}
		if factor, requested := left[t.MultiplyBy]; requested && t.MultiplyBy != "" {
			amount = product(amount, factor)
		}
		for output, factor := range t.Outputs {
			add(made, output, product(amount, factor))
		}
	}
	for name, amount := range made {
		if amount.Sign() > 0 { // negative factors are allowances, which never lower what the pods request themselves
			add(retained, name, amount)
		} else {
			add(retained, name, resource.Quantity{})
		}
	}
	return retained
}

func (r *Resources) excludes(name corev1.ResourceName) bool {
	for _, prefix := range r.ExcludeResourcePrefixes {
		if strings.HasPrefix(string(name), prefix) {
			return true
		}
	}
	return false
}

// transformation is the last of a resource: Kueue keeps one for each.
func (r *Resources) transformation(name corev1.ResourceName) *Transformation {
	for i := len(r.Transformations) - 1; i >= 0; i-- {
		if r.Transformations[i].Input == name {
			return &r.Transformations[i]
		}
	}
	return nil
}

func add(to corev1.ResourceList, name corev1.ResourceName, amount resource.Quantity) {
	sum := to[name]
	sum.Add(amount)
	to[name] = sum
}

func product(a, b resource.Quantity) resource.Quantity {
	a, b = a.DeepCopy(), b.DeepCopy() // AsDec changes them
	result := inf.Dec{}
	result.Mul(a.AsDec(), b.AsDec())
	return *resource.NewDecimalQuantity(result, a.Format)
}
