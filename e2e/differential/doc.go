// Package differential compares the engine (internal/scheduler/placement) with the scheduler that it re-implements.
// Both get the same random snapshot of a cluster, generated from a seed, and must make the same decision: the node to
// which a pod is bound; the node to which it is nominated, with the pods that are evicted for it; or that it stays
// pending.
//
// The scheduler is kube-scheduler of the version that the embedded cluster runs, unmodified, in two ways. In the test's
// process (inprocess.go) its own loop runs pod by pod over objects in memory. This takes milliseconds, and shows
// between which nodes the scheduler found no difference, so that ties can be compared node for node. On the embedded
// cluster (cluster.go) the same snapshots are applied to a real API server with the real program, which shows that the
// first way is equivalent. There its preemption is synchronous, so that its end is known (Cluster.victims).
//
// A difference is printed with its seed, the smallest part of the snapshot that still shows it, and both decisions
// (minimal.go, text.go). A snapshot can be saved as YAML and replayed.
//
// Where pods have volumes or devices, the controllers that the scheduler waits for are a few lines in the first way
// (inprocess_controllers.go): they bind and make volumes as requested. The second way leaves volumes and devices out.
//
// The same process shows what may happen to a planned job, and with that tests what package forecast claims of it: in small
// worlds all of it (runs.go), in large ones some of it (drawn.go). A certain claim must be true of each run (claims.go).
//
// A seed gives the same snapshot on every machine. Not compared are decisions over time (package simulator) and pod
// groups, which no snapshot contains.
package differential
