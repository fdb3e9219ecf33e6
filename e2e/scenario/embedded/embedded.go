// Package embedded is the backend of the stories that gives each an embedded cluster of its own.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/e2e/controlplane"
	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/e2e/simcluster"
)

// trainerImage is the examples' own; the embedded cluster runs the trainer's executable for it.
const trainerImage = "ghcr.io/elastic-training/elastic-trainer:0.1.0"

// Backend makes embedded clusters.
type Backend struct {
	Simcluster string // the program
	Trainer    string // the program that runs for the trainer's image
	Mounts     string // how containers get their volumes; "" is what the machine can do best
}

// Find is the backend with the programs that `make build` built.
func Find() (Backend, error) {
	cluster, clusterErr := scenario.FindBinary(simcluster.BinaryVariable)
	tools, toolsErr := scenario.FindTools()
	if err := errors.Join(clusterErr, toolsErr); err != nil {
		return Backend{}, fmt.Errorf("%w; run it by make, which builds what it needs and says where it is", err)
	}
	return Backend{Simcluster: cluster, Trainer: tools.Trainer}, nil
}

// Cluster starts a cluster as the story needs it, which ends when it is released.
func (b Backend) Cluster(ctx context.Context, story scenario.Story, place scenario.Place) (scenario.Cluster, func() error, error) {
	options, text := clusterFor(story.Needs)
	place.Say("Cluster: %s, Kubernetes' own control plane.", text)
	began := time.Now()
	log, err := os.Create(filepath.Join(place.Out, "cluster.log"))
	if err != nil {
		return scenario.Cluster{}, nil, fmt.Errorf("the cluster's log: %w", err)
	}
	name, _, _ := strings.Cut(trainerImage, ":")
	images := map[string]string{name: b.Trainer}
	maps.Copy(images, options.Images)
	options.Binary, options.Dir, options.Mounts = b.Simcluster, filepath.Join(place.Out, "cluster"), b.Mounts
	options.Images, options.Progress = images, log
	running, err := simcluster.Run(ctx, options)
	if err != nil {
		return scenario.Cluster{}, nil, errors.Join(err, log.Close())
	}
	place.Say("Cluster: ready after %.1f s. To look at it yourself: export KUBECONFIG=%s", time.Since(began).Seconds(), running.Kubeconfig)
	return scenario.Cluster{
		Kubeconfig: running.Kubeconfig, Namespace: "default", Image: trainerImage,
		DataDir: place.DataDir, // the nodes are this machine
		Faults:  faults{running},
	}, func() error { return errors.Join(running.Close(), log.Close()) }, nil
}

// clusterFor is the cluster that has what a story needs, and its text for a reader.
func clusterFor(needs scenario.Needs) (options simcluster.Options, text string) {
	text = "three nodes of 4 CPU and 15 GB"
	if needs.GPUs {
		text = "one node with four declared T4s and one without"
		options.Nodes = []controlplane.NodeGroup{
			{Name: "cpu", Count: 1, CPU: "4", Memory: "15Gi", AllocatableCPU: "3.92"},
			{
				Name: "gpu", Count: 1, CPU: "16", Memory: "60Gi", AllocatableCPU: "15.89",
				Resources: map[string]string{"nvidia.com/gpu": "4"},
				// What GKE puts on its nodes with T4s.
				Labels: map[string]string{"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"},
				Taints: []string{"nvidia.com/gpu=present:NoSchedule"},
			},
		}
		// The tasks' commands run as processes of this machine.
		options.Images = map[string]string{controlplane.AnyImage: controlplane.HostImage}
	}
	if needs.Kueue {
		text += ", our engine in Kueue's place"
		options.Queueing = true
	}
	return options, text
}

// faults are those of a running cluster.
type faults struct{ cluster *simcluster.Cluster }

func (f faults) StopNode(ctx context.Context, node string) error {
	return f.cluster.StopNode(ctx, node, false)
}

func (f faults) StartNode(ctx context.Context, node string) error {
	return f.cluster.StartNode(ctx, node)
}

func (f faults) KillAPIServer(ctx context.Context) error {
	return f.cluster.KillComponent(ctx, controlplane.APIServer)
}
