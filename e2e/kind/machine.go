package kind

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

// Machine is the size that a worker reports, whatever the host has. It is true for scheduling and not for speed: the
// pods of all workers share the host's processors and memory.
type Machine struct {
	CPUs           int
	Memory         resource.Quantity
	SystemReserved resource.Quantity // of the CPUs, for the node itself; the rest is allocatable
}

// Tutorial is the tutorial's machine, with what GKE leaves of its four CPUs to pods: 3.92.
func Tutorial() Machine {
	return Machine{CPUs: 4, Memory: resource.MustParse("15Gi"), SystemReserved: resource.MustParse("80m")}
}

// The files in which the kubelet reads the machine's size, by their names below the machine's directory.
const (
	cpuDir      = "/sys/devices/system/cpu"
	numaDir     = "/sys/devices/system/node"
	memoryFile  = "/proc/meminfo"
	cpuName     = "cpu"
	numaName    = "node"
	memoryName  = "meminfo"
	bytesPerKiB = 1024
)

// write makes the files below dir that say what the machine has, for mounts to lay over a node's own.
//
// The CPUs are empty directories and there is no NUMA node on purpose: then the kubelet (cAdvisor, GetTopology) counts
// them and knows nothing about where they are. With a topology it would write these CPUs into its cgroup's
// cpuset.cpus, which the kernel refuses on a host that has fewer.
func (m Machine) write(dir string) error {
	all := "0"
	if m.CPUs > 1 {
		all = "0-" + strconv.Itoa(m.CPUs-1)
	}
	kib := m.Memory.Value() / bytesPerKiB
	files := map[string]string{
		filepath.Join(cpuName, "online"):   all + "\n",
		filepath.Join(cpuName, "possible"): all + "\n",
		filepath.Join(cpuName, "present"):  all + "\n",
		filepath.Join(cpuName, "offline"):  "\n",
		memoryName: fmt.Sprintf("MemTotal: %d kB\nMemFree: %d kB\nMemAvailable: %d kB\nBuffers: 0 kB\nCached: 0 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
			kib, kib, kib),
	}
	err := os.MkdirAll(filepath.Join(dir, numaName), 0o755)
	for cpu := range m.CPUs {
		err = errors.Join(err, os.MkdirAll(filepath.Join(dir, cpuName, "cpu"+strconv.Itoa(cpu)), 0o755))
	}
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	if err != nil {
		return fmt.Errorf("the files of a machine of %d CPUs and %s: %w", m.CPUs, m.Memory.String(), err)
	}
	return nil
}

// mounts lay the files below dir over a node's own.
func (m Machine) mounts(dir string) []v1alpha4.Mount {
	return []v1alpha4.Mount{
		{HostPath: filepath.Join(dir, cpuName), ContainerPath: cpuDir, Readonly: true},
		{HostPath: filepath.Join(dir, numaName), ContainerPath: numaDir, Readonly: true},
		{HostPath: filepath.Join(dir, memoryName), ContainerPath: memoryFile, Readonly: true},
	}
}

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
