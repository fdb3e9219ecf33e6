package controlplane

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/nodeagent"
)

// What every node has besides what is declared: as many pods as a kubelet's default, and disk that nobody measures.
const (
	podsPerNode      = "110"
	ephemeralStorage = "100Gi"
)

// agentConfig is the node agent's configuration.
func agentConfig(layout Layout, config Config, ports Ports) (nodeagent.Config, error) {
	nodes, err := nodeSpecs(config.Nodes)
	if err != nil {
		return nodeagent.Config{}, err
	}
	return nodeagent.Config{
		Kubeconfig:    layout.Kubeconfig("node-agent"),
		Dir:           layout.NodeState(),
		PKIDir:        layout.PKI(),
		KubeletPort:   ports.Kubelet,
		APIServerPort: ports.APIServer,
		Nodes:         nodes,
		Images:        maps.Clone(config.Images),
		Mounts:        config.Mounts,
		ControlSocket: layout.ControlSocket(),
	}, nil
}

func nodeSpecs(groups []NodeGroup) ([]nodeagent.NodeSpec, error) {
	var specs []nodeagent.NodeSpec
	for _, group := range groups {
		capacity, err := group.capacity()
		if err != nil {
			return nil, fmt.Errorf("nodes %q: %w", group.Name, err)
		}
		allocatable := capacity.DeepCopy()
		if allocatable[corev1.ResourceCPU], err = resource.ParseQuantity(group.allocatableCPU()); err != nil {
			return nil, fmt.Errorf("nodes %q: allocatable cpu %q: %w", group.Name, group.AllocatableCPU, err)
		}
		var taints []corev1.Taint
		for _, text := range group.Taints {
			taint, err := parseTaint(text)
			if err != nil {
				return nil, fmt.Errorf("nodes %q: %w", group.Name, err)
			}
			taints = append(taints, taint)
		}
		for i := range group.Count {
			specs = append(specs, nodeagent.NodeSpec{
				Name:        group.Name + "-" + strconv.Itoa(i+1),
				Capacity:    capacity.DeepCopy(),
				Allocatable: allocatable.DeepCopy(),
				Labels:      group.labelsOf(i),
				Taints:      slices.Clone(taints),
			})
		}
	}
	return specs, nil
}

func (g NodeGroup) capacity() (corev1.ResourceList, error) {
	quantities := map[corev1.ResourceName]string{
		corev1.ResourceCPU:              g.CPU,
		corev1.ResourceMemory:           g.Memory,
		corev1.ResourcePods:             podsPerNode,
		corev1.ResourceEphemeralStorage: ephemeralStorage,
	}
	for name, quantity := range g.Resources {
		quantities[corev1.ResourceName(name)] = quantity
	}
	capacity := corev1.ResourceList{}
	for name, text := range quantities {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", name, text, err)
		}
		capacity[name] = quantity
	}
	return capacity, nil
}
