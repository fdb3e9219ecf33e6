// Package differential holds the engine (internal/scheduler/placement) to the scheduler that it re-implements: seeded
// random snapshots of a cluster are put to both, and what they decide must be equal: the node that a pod is bound to,
// or the node that it is nominated to and the pods that are evicted for it, or that it stays pending.
//
// The real thing is kube-scheduler of the version that the embedded cluster runs, unmodified, in two ways. In process
// (inprocess.go) its own loop is stepped pod by pod over objects in memory; that takes milliseconds and lets the test
// see between which nodes it found no difference, so that a tie of the engine's can be compared with a tie of the
// scheduler's, node for node. On the embedded cluster (cluster.go) the same snapshots go through a real API server to
// the real program, which shows that nothing of the first way is an artefact of its construction.
//
// A difference is printed with its seed, the smallest part of the snapshot that still shows it, and both decisions
// (minimal.go, text.go); a snapshot can be kept as YAML and replayed.
//
// Guarantees: a seed gives the same snapshot on every machine. Left to others: what the engine does
// over time (package simulator), and volumes, resource claims and pod groups, which no snapshot has.
package differential
