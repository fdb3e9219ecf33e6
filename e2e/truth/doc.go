// Package truth compares forecasts with what then happens. A situation is objects of any kind and a job file; it is
// applied to an embedded cluster with a real API server, kube-scheduler and kube-controller-manager, forecast by
// `elastic-sim forecast`, applied, and watched until nothing changes any more.
//
// A forecast is wrong if something that it names as certain does not happen, or something happens that it does not
// name. Only claims that are certain are compared; a forecast whose outcome or evictions are not is counted separately.
//
// The files: situation.go reads and writes situations; generate.go makes them from seeds; stage.go applies them to a
// cluster, settle.go waits there, clean.go removes everything; happened.go describes what happened, and verdict.go,
// which is pure, judges; shrink.go reduces a wrong situation.
package truth
