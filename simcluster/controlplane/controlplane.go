// Package controlplane runs a real Kubernetes control plane on this machine, for tests and demonstrations: etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler, each a process of its own so that one can be killed or
// paused as the real thing can, the node agent (package fakekubelet) in the kubelets' place and, where they are
// requested, controllers of other projects such as Kueue (package addon).
//
// Guarantees: nothing listens beyond loopback; no root, container engine or network is needed; every file is its
// owner's alone; a component that dies is started again; a cluster's state lives in one directory and continues from
// there at the next start; when the supervisor ends, however it ends, no process is left behind.
//
// It leaves the components' code to package components, which this package starts by re-executing its own binary with
// a component's name as the first argument, and what a node does to package fakekubelet. Linux only: it relies on
// parent-death signals, on the whole of 127.0.0.0/8 being bound to loopback, and on /proc.
package controlplane

// The components, by the name under which they are executed, logged and reported.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	NodeAgent         = "node-agent"
)

// Components lists the components of every cluster in the order in which they are started; they are stopped in the
// reverse order, so that pods are killed and watches closed while the API server still runs and can record it.
func Components() []string { return Config{}.Components() }

// Components lists the components of a cluster that is declared like c, in the order in which they are started.
func (c Config) Components() []string {
	if c.SchedulerOnly {
		return []string{Etcd, APIServer, Scheduler}
	}
	return append([]string{Etcd, APIServer, ControllerManager, Scheduler, NodeAgent}, c.Addons...)
}
