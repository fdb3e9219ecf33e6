// Package embedded runs each scenario on an embedded cluster of its own.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	simulation "github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/torchtest"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/addon"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// trainerImage is the image of the examples. The nodes of the embedded cluster run the trainer's executable for it.
const trainerImage = "ghcr.io/elastic-training/elastic-trainer:0.1.0"

// Backend starts embedded clusters.
type Backend struct {
	Simcluster string // the program
	Trainer    string // the program that runs for the trainer's image
	Mounts     string // how containers see their volumes, as in simcluster.Options; "" selects the best that works
}

// Find returns the backend with the programs of `make build`.
func Find() (Backend, error) {
	cluster, clusterErr := scenario.FindBinary(simcluster.BinaryVariable)
	tools, toolsErr := scenario.FindTools()
	if err := errors.Join(clusterErr, toolsErr); err != nil {
		return Backend{}, err
	}
	return Backend{Simcluster: cluster, Trainer: tools.Trainer}, nil
}

// Cluster starts a cluster that meets a scenario's requirements and ends when it is released.
func (b Backend) Cluster(ctx context.Context, sc scenario.Scenario, where scenario.ClusterOptions) (scenario.Cluster, func() error, error) {
	if sc.Requirements.PyTorch {
		python := torchtest.Python()
		if err := exec.CommandContext(ctx, python, "-c", "import torch").Run(); err != nil {
			return scenario.Cluster{}, nil, &scenario.UnsupportedError{Scenario: sc.Name, Reason: python + " cannot import torch: install python3-torch"}
		}
	}
	options, text := clusterFor(sc.Requirements)
	return b.start(ctx, options, text, where)
}

// ClusterFor starts a cluster with the nodes of a scenario file, and with Kueue if the file has queues. It ends
// when it is released.
func (b Backend) ClusterFor(ctx context.Context, file *simulation.Scenario, where scenario.ClusterOptions) (scenario.Cluster, func() error, error) {
	options, text := clusterOf(file)
	if file.FairSharing {
		options.KueueConfig = filepath.Join(where.Out, "kueue.yaml")
		if err := os.WriteFile(options.KueueConfig, []byte(fairSharing), 0o600); err != nil {
			return scenario.Cluster{}, nil, err
		}
	}
	cluster, release, err := b.start(ctx, options, text, where)
	cluster.Nodes = nodesOf(file)
	return cluster, release, err
}

func (b Backend) start(ctx context.Context, options simcluster.Options, text string, where scenario.ClusterOptions) (scenario.Cluster, func() error, error) {
	control := "the real Kubernetes control plane"
	if slices.Contains(options.Controllers, addon.Kueue) {
		control += " and Kueue"
	}
	where.Logf("Cluster: starting %s, with %s.", text, control)
	began := time.Now()
	log, err := os.Create(filepath.Join(where.Out, "cluster.log"))
	if err != nil {
		return scenario.Cluster{}, nil, fmt.Errorf("create the cluster's log: %w", err)
	}
	name, _, _ := strings.Cut(trainerImage, ":")
	images := map[string]string{name: b.Trainer}
	maps.Copy(images, options.Images)
	options.Binary, options.Dir, options.Mounts = b.Simcluster, filepath.Join(where.Out, "cluster"), b.Mounts
	options.Images, options.Progress = images, log
	running, err := simcluster.Run(ctx, options)
	if err != nil {
		return scenario.Cluster{}, nil, errors.Join(err, log.Close())
	}
	where.Logf("Cluster: ready after %.1f s. To use kubectl meanwhile: export KUBECONFIG=%s", time.Since(began).Seconds(), running.Kubeconfig)
	return scenario.Cluster{
		Kubeconfig: running.Kubeconfig, Namespace: "default", Image: trainerImage,
		DataDir: where.DataDir, SharedDir: filepath.Join(where.Out, "shared"), // the nodes are this machine
		Faults: faults{running},
	}, func() error { return errors.Join(running.Close(), log.Close()) }, nil
}

// fairSharing is a configuration of Kueue with fair sharing, and with the strategies that its documentation recommends.
const fairSharing = `apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}
integrations: {frameworks: [batch/job, pod]}
`

// clusterFor returns the options of a cluster that meets the requirements, and a description for a reader.
func clusterFor(needs scenario.Requirements) (options simcluster.Options, text string) {
	text = "three nodes of 4 CPU and 15 GB"
	if needs.GPUs {
		text = "one node with four declared (not real) T4 GPUs and one without"
		options.Nodes = []controlplane.NodeGroup{
			{Name: "cpu", Count: 1, CPU: "4", Memory: "15Gi", AllocatableCPU: "3.92"},
			{
				Name: "gpu", Count: 1, CPU: "16", Memory: "60Gi", AllocatableCPU: "15.89",
				Resources: map[string]string{"nvidia.com/gpu": "4"},
				// The label that GKE gives its nodes with T4s.
				Labels: map[string]string{"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"},
				Taints: []string{"nvidia.com/gpu=present:NoSchedule"},
			},
		}
	}
	if needs.GPUs || needs.PyTorch {
		// The tasks' commands run as processes of this machine.
		options.Images = map[string]string{controlplane.AnyImage: controlplane.HostImage}
	}
	if needs.Kueue {
		options.Controllers = []string{addon.Kueue}
	}
	return options, text
}

// clusterOf returns the options of a cluster that a scenario file describes, and a description for a reader. The nodes'
// capacity here is what is allocatable in the file.
func clusterOf(file *simulation.Scenario) (options simcluster.Options, text string) {
	nodes := 0
	for _, group := range file.Nodes {
		made := controlplane.NodeGroup{Name: group.Name, Count: 1, CPU: "0", Memory: "0", Labels: map[string]string{}, Resources: map[string]string{}}
		maps.Copy(made.Labels, group.Labels)
		for label, values := range group.Domains {
			made.Labels[label] = strings.Join(values, "+")
		}
		if group.Count != nil {
			made.Count = *group.Count
		}
		for name, amount := range group.Allocatable {
			switch name {
			case corev1.ResourceCPU:
				made.CPU = amount.String()
			case corev1.ResourceMemory:
				made.Memory = amount.String()
			case corev1.ResourcePods: // the embedded cluster's nodes have a fixed number
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
		options.Controllers = []string{addon.Kueue}
	}
	return options, text
}

// nodesOf has the cluster's names of a file's nodes: here a group's nodes are counted from 1.
func nodesOf(file *simulation.Scenario) map[string]string {
	names := map[string]string{}
	for _, group := range file.Nodes {
		if group.Count == nil {
			names[group.Name] = group.Name + "-1"
			continue
		}
		for i := range *group.Count {
			names[fmt.Sprintf("%s-%d", group.Name, i)] = fmt.Sprintf("%s-%d", group.Name, i+1)
		}
	}
	return names
}

// faults injects faults into a running cluster.
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
