package inprocess

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

// usageConfig is a scenario's admission fair sharing in Kueue's configuration; nil: it is off.
func usageConfig(s *conformance.Scenario) *config.AdmissionFairSharing {
	a := s.AdmissionFairSharing
	if a == nil {
		return nil
	}
	return &config.AdmissionFairSharing{
		UsageHalfLifeTime: a.UsageHalfLifeTime, UsageSamplingInterval: a.UsageSamplingInterval, ResourceWeights: a.ResourceWeights,
	}
}

// reconcileUsage lets Kueue's LocalQueue controller look at a LocalQueue, and again when it says so.
func (r *run) reconcileUsage(local string) error {
	if r.usage == nil {
		return nil
	}
	result, err := r.usage.Reconcile(r.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: local}})
	delete(r.usageDue, local)
	if result.RequeueAfter > 0 {
		r.usageDue[local] = r.clock.Now().Add(result.RequeueAfter)
	}
	return err
}

// reconcileUsageOf does so for the LocalQueues of a ClusterQueue that was changed.
func (r *run) reconcileUsageOf(queue string) error {
	for _, name := range slices.Sorted(maps.Keys(r.local)) {
		if string(r.local[name].Spec.ClusterQueue) != queue {
			continue
		}
		if err := r.reconcileUsage(name); err != nil {
			return err
		}
	}
	return nil
}

// pass lets time pass. Whenever Kueue looks at what LocalQueues have used, others may come first.
func (r *run) pass(d time.Duration) error {
	until := r.clock.Now().Add(d)
	for {
		at, due := r.nextUsage()
		if len(due) == 0 || at.After(until) {
			r.clock.SetTime(until)
			return nil
		}
		r.clock.SetTime(at)
		for _, local := range due {
			if err := r.reconcileUsage(local); err != nil {
				return err
			}
		}
		if err := r.rest(); err != nil {
			return err
		}
	}
}

// nextUsage is when LocalQueues are reconciled next, and which.
func (r *run) nextUsage() (at time.Time, due []string) {
	for local, when := range r.usageDue {
		switch {
		case len(due) == 0 || when.Before(at):
			at, due = when, []string{local}
		case when.Equal(at):
			due = append(due, local)
		}
	}
	slices.SortFunc(due, strings.Compare)
	return at, due
}
