package fakekubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/nodeagent"
)

// serveControl serves nodeagent.Control's commands until ctx ends. Nodes that are started live
// as long as ctx, not as long as the request.
func (a *agent) serveControl(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /nodes", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(a.states())
	})
	mux.HandleFunc("POST /nodes/{name}/stop", func(w http.ResponseWriter, r *http.Request) {
		a.command(w, r, func(name string) error {
			a.stopNode(name)
			if r.URL.Query().Get("gone") != "true" {
				return nil
			}
			err := a.client.CoreV1().Nodes().Delete(r.Context(), name, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("node %q is stopped, but its object could not be deleted: %w", name, err)
			}
			return nil
		})
	})
	mux.HandleFunc("POST /nodes/{name}/start", func(w http.ResponseWriter, r *http.Request) {
		a.command(w, r, func(name string) error { return a.startNode(ctx, name) })
	})
	return serveHTTP(ctx, listener, mux)
}

func (a *agent) command(w http.ResponseWriter, r *http.Request, do func(name string) error) {
	name := r.PathValue("name")
	if a.nodes[name] == nil {
		http.Error(w, fmt.Sprintf("there is no node %q; there are: %s", name, strings.Join(a.names(), ", ")), http.StatusNotFound)
		return
	}
	if err := do(name); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (a *agent) names() []string {
	var names []string
	for _, spec := range a.config.Nodes {
		names = append(names, spec.Name)
	}
	return names
}

func (a *agent) states() []nodeagent.NodeState {
	a.mu.Lock()
	defer a.mu.Unlock()
	states := []nodeagent.NodeState{}
	for _, name := range a.names() {
		state := nodeagent.NodeState{Name: name, Running: a.nodes[name].ctx != nil}
		for _, o := range a.owners {
			if o.node.spec.Name == name && o.active.Load() {
				state.Pods++
			}
		}
		states = append(states, state)
	}
	return states
}
