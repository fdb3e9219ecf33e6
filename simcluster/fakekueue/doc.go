// Package fakekueue is Kueue's place on the embedded cluster: it serves Kueue's API (kueue.x-k8s.io/v1beta2), suspends
// Jobs and gates pods that name a queue as Kueue's webhooks do, keeps a Workload for each, and carries out what our own
// quota engine (internal/scheduler/quota) decides about them: who is admitted, who waits and why, who is evicted for
// whom. On a cluster with Kueue, Kueue does all this.
//
// It reproduces what users and their tools see of Kueue v0.19.2: names, conditions, reasons, messages, events, labels,
// gates, finalizers, the flavor's node labels and tolerations in pods, statuses of queues. It may be killed at any
// moment: everything is in the API server, nothing is admitted twice, and what was begun is gone on with.
//
// Pods of flavors with a topology stay gated until each has the node labels of its domain. When a node of such a
// workload fails, other nodes are found for its pods, or the workload is evicted.
//
// It leaves out workload slices, MultiKueue, integrations besides Jobs and pods, API version
// v1beta1, metrics, the eviction of workloads whose pods are not ready after half an hour, the webhook of Workloads
// (the rules in their definition hold), and controllers of admission checks (it waits for the test or program that
// plays them).
//
// How it is built: packages workload and admission decide, without I/O; quota decides about quota. One goroutine
// (loop.go) looks at one object after the other and acts, so that there is one order of events; informers (cache.go)
// only name the object to reconcile. Every reconcile starts from the current state, not from the event, so an
// additional one does no harm.
package fakekueue
