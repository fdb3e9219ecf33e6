// Package nodeagent is what a cluster and the process of its simulated nodes agree on: the configuration with which that
// process starts, and the commands that it takes while it runs. The process itself is package fakekubelet, which links
// the kubelet's code; packages that start clusters do not.
package nodeagent

import corev1 "k8s.io/api/core/v1"

// Config defines which nodes to simulate and where their pods live. It travels
// as JSON from the supervisor to the agent process.
type Config struct {
	// Kubeconfig is the file with an administrator's access to the API server.
	Kubeconfig string `json:"kubeconfig"`
	// Dir holds pods/ and logs/. It is made with mode 0700 when missing. Keep
	// it short: Unix sockets of a path longer than 107 bytes cannot be bound.
	Dir string `json:"dir"`
	// PKIDir holds kubelet.crt, kubelet.key and ca.crt: the serving
	// certificate for 127.0.0.1, and the authority clients must come from.
	PKIDir string `json:"pkiDir"`
	// KubeletPort is where 127.0.0.1 serves container logs for all nodes.
	KubeletPort int `json:"kubeletPort"`
	// APIServerPort becomes KUBERNETES_SERVICE_PORT in every container.
	APIServerPort int        `json:"apiServerPort"`
	Nodes         []NodeSpec `json:"nodes"`
	// Images maps an image's repository without the tag, in full or its last
	// path element only, to an executable. The entry "*": "host" lets any other
	// image's command be run by the host.
	Images map[string]string `json:"images,omitempty"`
	// Mounts is how a container sees its volumes: MountsNamespace,
	// MountsRewrite, or MountsAuto ("" means the same), which tries the first
	// once and falls back to the second.
	Mounts string `json:"mounts,omitempty"`
	// ControlSocket is the Unix socket on which Dial's commands are served.
	ControlSocket string `json:"controlSocket"`
}

// The values of Config.Mounts.
const (
	MountsAuto      = "auto"
	MountsNamespace = "namespace"
	MountsRewrite   = "rewrite"
)

// NodeSpec declares one node. Capacity and Allocatable are what the scheduler
// is configured with; they need no relation to this machine.
type NodeSpec struct {
	Name        string              `json:"name"`
	Capacity    corev1.ResourceList `json:"capacity,omitempty"`
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	Labels      map[string]string   `json:"labels,omitempty"`
	Taints      []corev1.Taint      `json:"taints,omitempty"`
}

// NodeState is one node as the agent sees it.
type NodeState struct {
	Name string `json:"name"`
	// Running is false between Stop and Start.
	Running bool `json:"running"`
	// Pods counts the pods with processes of this node.
	Pods int `json:"pods"`
}
