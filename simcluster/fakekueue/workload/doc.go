// Package workload is the life of Kueue's Workload objects, as functions without I/O: how one is made of a Job, a pod
// or a group of pods, when it still stands for them, what its admission puts into their pod templates, and how each
// event moves its status.
//
// It reproduces Kueue v0.19's own names, conditions, reasons and messages (pkg/controller/jobframework, jobs/job,
// jobs/pod, pkg/workload, pkg/podset), because users and their tools read them. Whether a workload gets quota is
// internal/scheduler/quota's; reading and writing objects is package fakekueue's.
//
// Left out: topology-aware placement, workload slices (elastic-job), prebuilt workloads, MultiKueue.
package workload
