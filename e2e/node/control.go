package node

import "context"

// Control gives commands to a running agent over its Unix socket.
type Control struct{ socket string }

// Dial returns the agent's remote control. It connects with the first command.
func Dial(controlSocket string) *Control { return &Control{socket: controlSocket} }

// Stop makes a node die: its processes are killed and its lease is no longer
// renewed. With gone the Node object is deleted too, as a cloud does.
func (c *Control) Stop(ctx context.Context, node string, gone bool) error { return nil }

// Start brings a stopped node back, as a reboot does.
func (c *Control) Start(ctx context.Context, node string) error { return nil }

// Nodes lists the nodes in the order of the configuration.
func (c *Control) Nodes(ctx context.Context) ([]NodeState, error) { return nil, nil }
