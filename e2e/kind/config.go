package kind

import (
	"fmt"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

// config is one control plane, and workers that report the machine's size and see the data's directory where the host
// has it.
func config(workers int, machine Machine, machineDir, dataDir string) *v1alpha4.Cluster {
	mounts := append(machine.mounts(machineDir), v1alpha4.Mount{HostPath: dataDir, ContainerPath: dataDir, Readonly: true})
	cluster := &v1alpha4.Cluster{
		TypeMeta: v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"},
		Nodes:    []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole}},
		// The kubelets of workers read their configuration from the cluster, so it is the cluster's that is patched.
		KubeadmConfigPatches: []string{
			fmt.Sprintf("kind: KubeletConfiguration\nsystemReserved:\n  cpu: %q\n", machine.SystemReserved.String()),
		},
	}
	for range workers {
		cluster.Nodes = append(cluster.Nodes, v1alpha4.Node{Role: v1alpha4.WorkerRole, ExtraMounts: mounts})
	}
	return cluster
}
