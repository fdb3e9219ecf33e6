package scenario

import (
	"context"
	"fmt"
)

// Backend supplies clusters for scenarios: embedded clusters, a kind cluster, an existing cluster.
type Backend interface {
	// Cluster returns a cluster that meets scenario.Requirements, and a function that releases it after the run. A cluster
	// of the scenario's own is deleted then; a shared cluster stays. Run calls release exactly once, also after a failure
	// or an interruption. The error is an *UnsupportedError if the backend cannot meet the requirements.
	Cluster(ctx context.Context, scenario Scenario, options ClusterOptions) (cluster Cluster, release func() error, err error)
}

// ClusterOptions are the directories of this machine that a backend may use, and its log.
type ClusterOptions struct {
	Out     string // the scenario's output directory, for the cluster's logs
	DataDir string // the scenario's training data (mnist/train, mnist/test); "" for a scenario without
	Logf    func(format string, args ...any)
}

// Cluster is a cluster that a scenario runs on. The scenario removes every object that it creates.
type Cluster struct {
	Kubeconfig string // the administrator's, for observation and faults; terraform has a ServiceAccount of its own
	Namespace  string // exists
	Image      string // the trainer's, as the nodes know it
	TaskImage  string // one with a shell, for the commands of tasks; "" for the example's own
	DataDir    string // the path of ClusterOptions.DataDir on every node
	SharedDir  string // a directory of this machine that is the same on every node, for Requirements.PyTorch
	Faults     Faults // nil where no fault can be injected
	// Nodes has the cluster's name of each node of a scenario file, by its name in the file; nil where they are not known.
	Nodes map[string]string
}

// Faults injects the faults that the Kubernetes API does not offer. The scenario itself deletes pods and Node objects
// through the API. Every method returns when the fault has happened, which is before the cluster has noticed it.
type Faults interface {
	// StopNode stops a node as a power cut would: its containers are killed and its kubelet stops reporting. The Node
	// object stays.
	StopNode(ctx context.Context, node string) error
	// StartNode starts a stopped node without its former containers. Its kubelet registers it again if the Node object was
	// deleted. StartNode does nothing for a node that runs.
	StartNode(ctx context.Context, node string) error
	// KillAPIServer kills the API server. Its supervisor starts it again.
	KillAPIServer(ctx context.Context) error
}

// UnsupportedError is that a backend does not have what a scenario needs; a test is skipped for it.
type UnsupportedError struct {
	Scenario string
	Reason   string // a sentence's end: "this cluster has no Kueue: ..."
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("scenario %s cannot run on this cluster: %s", e.Scenario, e.Reason)
}
