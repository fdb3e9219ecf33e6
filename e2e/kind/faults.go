package kind

import (
	"context"
	"fmt"
)

// StopNode ends a node as a power cut does: no process on it has time for a last word. Its Node object stays.
func (c *Cluster) StopNode(ctx context.Context, node string) error {
	if _, err := c.engine.run(ctx, nodeLimit, "kill", node); err != nil {
		return fmt.Errorf("stop node %s: %w", node, err)
	}
	return nil
}

// StartNode boots a stopped node again, with its disk as it was; one that runs is left alone.
func (c *Cluster) StartNode(ctx context.Context, node string) error {
	if _, err := c.engine.run(ctx, nodeLimit, "start", node); err != nil {
		return fmt.Errorf("start node %s: %w", node, err)
	}
	return nil
}

// KillAPIServer kills the API server's process. The kubelet of its node starts it again.
func (c *Cluster) KillAPIServer(ctx context.Context) error {
	node := c.ControlPlane()
	if _, err := c.engine.run(ctx, nodeLimit, "exec", node, "pkill", "-KILL", "-x", "kube-apiserver"); err != nil {
		return fmt.Errorf("kill the API server on node %s: %w", node, err)
	}
	return nil
}
