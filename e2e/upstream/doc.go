// Package upstream runs controllers of other projects beside an embedded cluster: the real Kueue, JobSet, Kubeflow
// Trainer and KubeRay. tools/upstream.sh (make upstream) builds them from their public repositories; nothing of them is in
// this one.
//
// A controller is a process on this machine with the rights of an administrator. Its CustomResourceDefinitions and
// webhooks are those of its release. The webhooks are reached by URL, because an embedded cluster has no Service network,
// and its configuration is the release's except for addresses, certificates and leader election.
package upstream
