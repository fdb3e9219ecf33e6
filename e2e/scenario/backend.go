package scenario

import (
	"context"
	"fmt"
)

// Backend is where stories can be told: the embedded cluster, kind, a cluster that is there already.
type Backend interface {
	// Cluster returns a cluster that is ready for a story, with everything that story.Needs names, and how to let it go
	// when the story has been told: a cluster made for the story ends then, one for many stories does not. The story may
	// have failed, or be interrupted; release is called all the same, and once. Where the backend cannot give what the
	// story needs, the error is a *LackingError.
	Cluster(ctx context.Context, story Story, place Place) (cluster Cluster, release func() error, err error)
}

// Place is what a backend may use on this machine.
type Place struct {
	Out     string // the story's output directory: logs of the cluster go here, in files of the backend's own naming
	DataDir string // the story's records (mnist/train, mnist/test); "" for a story that needs none
	Say     func(format string, args ...any)
}

// Cluster is where a story is told. What the story makes there it removes.
type Cluster struct {
	Kubeconfig string // the administrator's; it says what the story observes and breaks, terraform has an account of its own
	Namespace  string // exists
	Image      string // the trainer's, as the nodes know it
	TaskImage  string // one with a shell, for the commands of tasks; "" for the example's own
	DataDir    string // the path on every node of the directory that is Place.DataDir here
	Faults     Faults // nil where nothing can be broken
}

// Faults break a cluster in the ways that its API does not offer; pods and Node objects are deleted through the API, by
// the story. Every method returns when the fault has happened, not when anybody has noticed.
type Faults interface {
	// StopNode lets a node die as by a power cut: its containers end without a word, and its kubelet reports nothing any
	// more. Its Node object stays.
	StopNode(ctx context.Context, node string) error
	// StartNode lets it come back, without the containers that it had: its kubelet registers it anew where the Node
	// object was deleted. It may be called for a node that runs, and does nothing then.
	StartNode(ctx context.Context, node string) error
	// KillAPIServer ends the API server without a word. Whatever watches over it starts it again.
	KillAPIServer(ctx context.Context) error
}

// LackingError is that a backend does not have what a story needs; a test is skipped for it.
type LackingError struct {
	Story string
	Lacks string // a sentence's end: "this cluster has no Kueue: ..."
}

func (e *LackingError) Error() string {
	return fmt.Sprintf("story %s cannot be told here: %s", e.Story, e.Lacks)
}
