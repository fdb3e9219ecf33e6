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

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	simulation "github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
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
		return Backend{}, err
	}
	return Backend{Simcluster: cluster, Trainer: tools.Trainer}, nil
}

// Cluster starts a cluster as the story needs it, which ends when it is released.
func (b Backend) Cluster(ctx context.Context, story scenario.Story, place scenario.Place) (scenario.Cluster, func() error, error) {
	options, text := clusterFor(story.Needs)
	return b.start(ctx, options, text, place)
}

// ClusterFor starts a cluster with the nodes of a scenario file, and with queues where it has some, which ends when it is
// released.
func (b Backend) ClusterFor(ctx context.Context, file *simulation.Scenario, place scenario.Place) (scenario.Cluster, func() error, error) {
	options, text := clusterOf(file)
	return b.start(ctx, options, text, place)
}

func (b Backend) start(ctx context.Context, options simcluster.Options, text string, place scenario.Place) (scenario.Cluster, func() error, error) {
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

// clusterOf is the cluster that a scenario file describes, and its text for a reader. What is allocatable there is all that a
// node has here.
func clusterOf(file *simulation.Scenario) (options simcluster.Options, text string) {
	nodes := 0
	for _, group := range file.Nodes {
		made := controlplane.NodeGroup{Name: group.Name, Count: 1, CPU: "0", Memory: "0", Labels: group.Labels, Resources: map[string]string{}}
		if group.Count != nil {
			made.Count = *group.Count
		}
		for name, amount := range group.Allocatable {
			switch name {
			case corev1.ResourceCPU:
				made.CPU = amount.String()
			case corev1.ResourceMemory:
				made.Memory = amount.String()
			case corev1.ResourcePods: // as many as a node lets run anyway
			default:
				made.Resources[string(name)] = amount.String()
			}
		}
		for _, taint := range group.Taints {
			made.Taints = append(made.Taints, fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect))
		}
		nodes += made.Count
		options.Nodes = append(options.Nodes, made)
	}
	// The commands of gangs run as processes of this machine.
	options.Images = map[string]string{controlplane.AnyImage: controlplane.HostImage}
	text = wording.Number(nodes, "node")
	if len(file.LocalQueues) > 0 {
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
