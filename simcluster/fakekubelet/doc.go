// Package fakekubelet simulates kubelets: it registers nodes with declared capacity
// and runs every container of a pod bound to them as a local process.
//
// It reproduces what users see of a kubelet through the API: phases, conditions, exit
// codes and reasons, restarts with the kubelet's back-off, grace periods, events, logs,
// the environment, volumes, and services that can be reached. When Run returns, no
// process, mount or socket of it is left.
//
// It does not isolate: processes share this machine's kernel, files and loopback
// network, and see each other, but for sidecars, which see their own processes alone
// where mounts are possible; of the limits only memory's is enforced, by a watch, and runAsNonRoot is
// checked, but runAsUser is not switched to. Probes, lifecycle
// hooks, exec, attach and port-forward are not there; DNS is not either.
//
// How it is built: lifecycle.go, container_state.go, status.go, environment.go,
// images.go, view.go and rewrite.go decide, without I/O; one goroutine
// per pod (pod_linux.go) acts.
package fakekubelet
