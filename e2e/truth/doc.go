// Package truth holds forecasts to what then happens. A situation is objects of any kind and a job file; it is applied
// to an embedded cluster with a real API server, kube-scheduler and kube-controller-manager, forecast by `elastic-sim
// forecast`, applied, and watched until nothing changes any more.
//
// A forecast is wrong when something that it says for certain does not happen, or something happens that it does not
// name. One that calls itself approximate claims nothing, and is counted apart.
//
// How it is built: situation.go reads and writes situations; generate.go makes them from seeds; stage.go applies them
// to a cluster, settle.go waits there, clean.go takes everything away; happened.go puts together what happened, and
// verdict.go, which is pure, judges; shrink.go makes what went wrong small.
package truth
