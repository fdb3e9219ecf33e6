// Package quota decides which workloads get quota, which wait and which are evicted: Kueue v0.19's rules (API v1beta2)
// as a pure engine.
//
// Data in, data out: there is no I/O, no clock and no goroutine here, and the time is an argument. The caller
// reports changes to the engine and carries out its decisions:
//
//	engine := quota.New(quota.Config{})
//	engine.SetFlavor(…); engine.SetCohort(…); engine.SetClusterQueue(…); engine.SetLocalQueue(…)   // Kueue's objects, as they come and change
//	engine.SetWorkload(…)                                                                       // one that waits, or holds quota already (after a restart)
//	for {
//		result := engine.Cycle(now)
//		for _, decision := range result.Decisions {
//			switch decision.Kind {
//			case quota.Admit:   // it holds quota from now on: un-suspend its job with decision.Assignment
//			case quota.Preempt: // stop decision.Targets, and call engine.Release(target) when each has given its quota back
//			case quota.Evict:   // stop it (its queue was stopped or it was deactivated), then engine.Release
//			case quota.Wait:    // show decision.Message; nothing to do
//			}
//		}
//		// Cycle again at once until result.Settled; then after every report, and when RequeueAt says so.
//	}
//
// The other methods: SetNamespace, SetAdmissionCheck, SetTopology, SetNode and SetPod pass objects to it, and DeleteNode
// and DeletePod take them away; Evict (an eviction that was decided elsewhere), Release, Resume, ChecksReady and Finish
// report what happened; Workload, Why, Usage, Pending and Position look; WhatIf asks; Clone copies. FromObject makes its
// input of a Workload object.
//
// It guarantees
//
//   - exactness: the decisions of a real Kueue with default feature gates (and PriorityBoost, if it is configured) and waitForPodsReady off, quirks included: victims and their order, flavors,
//     counts, requeueing, and the texts of conditions. Recordings of the real thing are replayed against it (package conformance).
//   - determinism: equal calls give equal results. Where Kueue leaves a choice to the order of a Go map, the smaller UID, then the smaller name, comes first.
//   - an explanation for every decision, as data with reasons that are constants, and as a sentence.
//
// It leaves to others what is not quota: pods, nodes, job controllers, and validation of the objects
// (internal/api/kueue/validation). Where flavors have topologies, package topology finds the domains of the pods; the
// engine then needs to know of nodes and other pods, by SetTopology, SetNode and SetPod. Of Kueue's it does not model
// delayed topology requests (ProvisioningRequest), the timeout of waitForPodsReady and MultiKueue (blockAdmission delays
// admissions, which are the same). Under admission fair sharing (LocalQueues ordered by what they have used) call Cycle at
// SampleAt as well; what LocalQueues had used before the engine was made is not known to it. Package forecast says so where
// one of them may matter; users read of them in the guide "Will my job preempt other pods?".
//
// An Engine is not safe for concurrent use; Clone gives an independent copy, and WhatIf answers without changing
// anything.
package quota
