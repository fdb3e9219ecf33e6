package provider

import (
	"slices"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// addTo adds the planned classes and queues to a snapshot, and replaces the cluster's objects of the same names: a job
// that is planned with its queue is forecast with it.
func (p *planned) addTo(s *forecast.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	queues := forecast.Queues{}
	if s.Queues != nil {
		queues = *s.Queues
	}
	found := false
	for _, object := range p.objects {
		switch object := object.(type) {
		case *schedulingv1.PriorityClass:
			s.PriorityClasses = with(s.PriorityClasses, object)
			continue
		case *kueue.ClusterQueue:
			queues.ClusterQueues = with(queues.ClusterQueues, object)
		case *kueue.LocalQueue:
			queues.LocalQueues = with(queues.LocalQueues, object)
		case *kueue.ResourceFlavor:
			queues.Flavors = with(queues.Flavors, object)
		case *kueue.Cohort:
			queues.Cohorts = with(queues.Cohorts, object)
		case *kueue.WorkloadPriorityClass:
			queues.PriorityClasses = with(queues.PriorityClasses, object)
		case *kueue.Topology:
			queues.Topologies = with(queues.Topologies, object)
		default: // nothing that decides: a check, which becomes active by its controller's doing
			continue
		}
		found = true
	}
	if found || s.Queues != nil {
		s.Queues = &queues
	}
}

// with is a list with an object added, or with the object of the same name replaced.
func with[T cluster.Object](list []T, object T) []T {
	list = slices.Clone(list)
	same := func(other T) bool { return key(other) == key(object) }
	if at := slices.IndexFunc(list, same); at >= 0 {
		list[at] = object
		return list
	}
	return append(list, object)
}

func key(object metav1.Object) [2]string { return [2]string{object.GetNamespace(), object.GetName()} }
