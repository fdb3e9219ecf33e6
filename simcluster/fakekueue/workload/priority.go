package workload

import (
	"fmt"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// Classes are the classes of priority that exist.
type Classes struct {
	Workload func(name string) *kueue.WorkloadPriorityClass
	Pod      func(name string) *schedulingv1.PriorityClass
	// PodDefaults are the PriorityClasses that are global defaults.
	PodDefaults []*schedulingv1.PriorityClass
}

// SetPriority gives a workload its priority: of the WorkloadPriorityClass in its owner's label, else of its pods'
// PriorityClass, else of the default one, else 0. An error names a class that does not exist.
func SetPriority(w *kueue.Workload, owner metav1.Object, classes Classes) error {
	if name := owner.GetLabels()[kueue.WorkloadPriorityClassLabel]; name != "" {
		class := classes.Workload(name)
		if class == nil {
			return fmt.Errorf("WorkloadPriorityClass %q, which %s %s/%s names, does not exist", name, w.Name, owner.GetNamespace(), owner.GetName())
		}
		w.Spec.PriorityClassRef = &kueue.PriorityClassRef{Group: kueue.WorkloadPriorityClassGroup, Kind: kueue.WorkloadPriorityClassKind, Name: name}
		w.Spec.Priority = ptr.To(class.Value)
		return nil
	}
	class, err := podClass(w, classes)
	if err != nil {
		return err
	}
	if class == nil {
		w.Spec.PriorityClassRef, w.Spec.Priority = nil, ptr.To(int32(0))
		return nil
	}
	w.Spec.PriorityClassRef = &kueue.PriorityClassRef{Group: kueue.PodPriorityClassGroup, Kind: kueue.PodPriorityClassKind, Name: class.Name}
	w.Spec.Priority = ptr.To(class.Value)
	return nil
}

// podClass is the PriorityClass of the first pod set that names one, else the default with the lowest value, else nil.
func podClass(w *kueue.Workload, classes Classes) (*schedulingv1.PriorityClass, error) {
	for _, set := range w.Spec.PodSets {
		if name := set.Template.Spec.PriorityClassName; name != "" {
			class := classes.Pod(name)
			if class == nil {
				return nil, fmt.Errorf("PriorityClass %q, which pod set %s names, does not exist", name, set.Name)
			}
			return class, nil
		}
	}
	var lowest *schedulingv1.PriorityClass
	for _, class := range classes.PodDefaults {
		if lowest == nil || class.Value < lowest.Value {
			lowest = class
		}
	}
	return lowest, nil
}

// FollowsLabel reports whether w's priority has to be computed anew because its owner's label names another class. A
// pod's own class is never left, and one cannot be added once quota is held.
func FollowsLabel(w *kueue.Workload, owner metav1.Object) bool {
	ref := w.Spec.PriorityClassRef
	if ref == nil {
		return !HasQuota(w) && owner.GetLabels()[kueue.WorkloadPriorityClassLabel] != ""
	}
	return ref.Kind == kueue.WorkloadPriorityClassKind && ref.Name != owner.GetLabels()[kueue.WorkloadPriorityClassLabel]
}
