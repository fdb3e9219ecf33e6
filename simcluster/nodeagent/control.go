package nodeagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Control gives commands to a running agent over its Unix socket.
type Control struct {
	socket string
	client *http.Client
}

// Dial returns the agent's remote control. It connects with each command.
func Dial(controlSocket string) *Control {
	var dialer net.Dialer
	return &Control{socket: controlSocket, client: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", controlSocket)
		},
	}}}
}

// Stop makes a node die: its processes are killed and its lease is no longer
// renewed. With gone the Node object is deleted too, as clouds do.
func (c *Control) Stop(ctx context.Context, node string, gone bool) error {
	return c.do(ctx, http.MethodPost, "/nodes/"+url.PathEscape(node)+"/stop?gone="+strconv.FormatBool(gone), nil)
}

// Start brings a stopped node back, as a reboot does.
func (c *Control) Start(ctx context.Context, node string) error {
	return c.do(ctx, http.MethodPost, "/nodes/"+url.PathEscape(node)+"/start", nil)
}

// Nodes lists the nodes in the order of the configuration.
func (c *Control) Nodes(ctx context.Context) ([]NodeState, error) {
	var states []NodeState
	err := c.do(ctx, http.MethodGet, "/nodes", &states)
	return states, err
}

func (c *Control) do(ctx context.Context, method, path string, result any) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, http.NoBody)
	if err != nil {
		return fmt.Errorf("node agent: %w", err)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return fmt.Errorf("node agent at %s: %w; is the cluster up?", c.socket, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("node agent at %s: read the answer: %w", c.socket, err)
	}
	if response.StatusCode != http.StatusOK {
		return errors.New("node agent: " + strings.TrimSpace(string(body)))
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(body, result); err != nil {
		return fmt.Errorf("node agent at %s: answer %q: %w", c.socket, body, err)
	}
	return nil
}
