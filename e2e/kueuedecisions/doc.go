// Package kueuedecisions compares the quota engine (internal/scheduler/quota) with the scheduler that it re-implements:
// Kueue's own, of the release that go.mod requires. Both get the same scenario, drawn from a family and a seed (package
// draw), and must decide the same after each of its steps: who is admitted, with which flavors, counts and domains, who
// is evicted for whom and why, and what each queue's quota is used for.
//
// Kueue's queue manager, cache, scheduler and controllers run in the test's process, unmodified, on a fake client
// and a fake clock (package inprocess). Package conformance gives the same steps to the engine; the recordings in its
// testdata were made in the same way, and remain as regression tests that need no Kueue.
//
// A difference is printed with its seed, the smallest scenario that still shows it, and both decisions (minimal.go).
//
// Kueue is compiled with the release of Kubernetes that its own go.mod names. That is older than the one of the other
// modules, which is why this is a module of its own; the packages of the engine compile with both.
package kueuedecisions
