// Package simulator runs a scenario in virtual time: days of a cluster in seconds. Jobs arrive, wait for quota and for
// nodes, compute, are preempted, lose nodes, shrink, grow and end.
//
// The decisions are made by the packages that make them elsewhere too: package quota admits, package placement binds
// and preempts, and an elastic job's workers are managed by the real master's state machine
// (internal/trainer/protocol/coordinator). The simulator keeps the time, carries out the decisions, and models how fast
// a job computes, how long each action takes, and which work is lost.
//
//	summary, err := simulator.Run(ctx, scenario, simulator.Options{Log: write})
//
// It guarantees that a scenario and a seed give the same event log, byte for byte, on every machine: time is in whole
// milliseconds, work in whole millionths of a step, nothing depends on the order of a map, and there is no floating
// point. The log is package eventlog's, as of a run on a real cluster.
//
// It simplifies in these ways: a scheduler tries pending pods at once when something has
// changed, without back-off; a lost node's pods are gone at once; what kube-scheduler and Kueue would do at the same
// moment happens in a fixed order, Kueue first; a job's master takes no time but the start of its pod; and
// an elastic job's workers save and load nothing but at the times that the scenario gives. Where pods are placed by
// topology, pods that were to go to a failed node and had not started end with it, and an autoscaler adds no nodes for
// workloads that wait for a place: they have no pods yet.
package simulator
