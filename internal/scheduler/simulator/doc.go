// Package simulator runs a scenario in virtual time: days of a cluster in seconds. Jobs arrive, wait for quota and for
// room, compute, are preempted, lose nodes, shrink, grow and end.
//
// Nothing is decided here that is decided elsewhere: who gets quota is package quota's, who gets a node and who is
// evicted for it is package placement's, and what an elastic job does with its workers is the real master's state
// machine (internal/trainer/protocol/coordinator). The simulator keeps the time, carries the decisions out, and models
// what those do not know: how fast a job computes, how long things take, what is lost.
//
//	summary, err := simulator.Run(ctx, scenario, simulator.Options{Log: write})
//
// It guarantees that a scenario and a seed give the same event log, byte for byte, on every machine: time is in whole
// milliseconds, work in whole millionths of a step, nothing depends on the order of a map, and there is no floating
// point. The log is package eventlog's, as of a run on a real cluster.
//
// It simplifies, and these are all the ways that matter: a scheduler tries waiting pods at once when something has
// changed, without back-off; a lost node's pods are gone at once; what kube-scheduler and Kueue would do at the same
// moment happens in a fixed order, the queue first; a job's master costs no time but what its pod takes to start; and
// an elastic job's workers save and load nothing but at the times that the scenario gives.
package simulator
