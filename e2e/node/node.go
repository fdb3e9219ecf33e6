// Package node simulates kubelets: it registers nodes with declared capacity
// and runs every container of a pod bound to them as a local process.
//
// What users see through the API is what a kubelet would show: phases,
// conditions, exit codes and reasons, restarts with the kubelet's back-off,
// grace periods, events, logs. What it does not do is isolate: processes share
// this machine's kernel, file system and loopback network; limits other than
// memory are not enforced.
package node

import (
	"context"
	"log/slog"
)

// Run simulates cfg.Nodes until ctx ends. On return no process it started is
// alive.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	<-ctx.Done()
	return nil
}

// ShimMain is the body of the hidden subcommand "container-shim" of the binary
// that calls Run: it prepares a container's file system view and becomes the
// container's command. The result is the exit code when it could not.
func ShimMain(args []string) int {
	return 125
}
