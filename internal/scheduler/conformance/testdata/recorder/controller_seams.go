package core

import "k8s.io/utils/clock"

// UseClock replaces the clock.
func (r *WorkloadReconciler) UseClock(c clock.Clock) { r.clock = c }
