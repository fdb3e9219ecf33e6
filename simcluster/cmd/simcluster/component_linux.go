package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane/components"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekubelet"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/nodeagent"
)

// containerShim is the name under which the node agent re-executes this binary to enter a mount namespace.
const containerShim = "container-shim"

// runComponent is what the supervisor and the node agent re-execute this binary for. It is not part of the command
// tree: a component parses its own flags. done is false when args name no component.
func runComponent(args []string) (code int, done bool) {
	if len(args) == 0 {
		return 0, false
	}
	switch name := args[0]; name {
	case controlplane.Etcd, controlplane.APIServer, controlplane.ControllerManager, controlplane.Scheduler:
		return components.Run(name, args[1:]), true
	case controlplane.NodeAgent:
		if err := runNodeAgent(args[1:]); err != nil {
			fmt.Fprintf(os.Stderr, "node-agent: %v\n", err)
			return cli.Failed, true
		}
		return 0, true
	case containerShim:
		return fakekubelet.ShimMain(args[1:]), true
	}
	return 0, false
}

func runNodeAgent(args []string) error {
	flags := flag.NewFlagSet(controlplane.NodeAgent, flag.ContinueOnError)
	path := flags.String("config", "", "file with the agent's configuration, a nodeagent.Config as JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	content, err := os.ReadFile(*path)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	var config nodeagent.Config
	if err := json.Unmarshal(content, &config); err != nil {
		return fmt.Errorf("configuration %q: %w", *path, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return fakekubelet.Run(ctx, config, slog.New(slog.NewTextHandler(os.Stderr, nil)))
}
