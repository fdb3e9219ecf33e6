package kind

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

// What cAdvisor reads: one directory per CPU, no topology in it, no NUMA node, and MemTotal in KiB.
func TestAMachinesFilesSayItsSizeAndNothingOfItsTopology(t *testing.T) {
	for name, test := range map[string]struct {
		machine    Machine
		cpus       []string
		online     string
		totalInKiB string
	}{
		"the tutorial's": {Tutorial(), []string{"cpu0", "cpu1", "cpu2", "cpu3"}, "0-3", "MemTotal: 15728640 kB"},
		"the smallest":   {Machine{CPUs: 1, Memory: resource.MustParse("1Mi")}, []string{"cpu0"}, "0", "MemTotal: 1024 kB"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for range 2 { // again on what is there
				if err := test.machine.write(dir); err != nil {
					t.Fatal(err)
				}
			}
			dirs, err := filepath.Glob(filepath.Join(dir, "cpu", "cpu*"))
			if err != nil {
				t.Fatal(err)
			}
			for i := range dirs {
				if inside, err := os.ReadDir(dirs[i]); err != nil || len(inside) != 0 {
					t.Errorf("%s holds %v, %v", dirs[i], inside, err)
				}
				dirs[i] = filepath.Base(dirs[i])
			}
			if !slices.Equal(dirs, test.cpus) {
				t.Errorf("CPUs %v", dirs)
			}
			if inside, err := os.ReadDir(filepath.Join(dir, "node")); err != nil || len(inside) != 0 {
				t.Errorf("NUMA nodes %v, %v", inside, err)
			}
			if text := read(t, filepath.Join(dir, "cpu", "online")); text != test.online+"\n" {
				t.Errorf("online %q", text)
			}
			if text := read(t, filepath.Join(dir, "meminfo")); !strings.HasPrefix(text, test.totalInKiB+"\n") {
				t.Errorf("meminfo %q", text)
			}
		})
	}
}

func TestWorkersMountTheMachineAndTheDataAndTheControlPlaneDoesNot(t *testing.T) {
	cluster := config(3, Tutorial(), "/m", "/data")
	var roles []v1alpha4.NodeRole
	for _, node := range cluster.Nodes {
		roles = append(roles, node.Role)
		var mounts []string
		for _, mount := range node.ExtraMounts {
			if !mount.Readonly {
				t.Errorf("%s can be written", mount.HostPath)
			}
			mounts = append(mounts, mount.HostPath+":"+mount.ContainerPath)
		}
		want := ""
		if node.Role == v1alpha4.WorkerRole {
			want = "/m/cpu:/sys/devices/system/cpu /m/node:/sys/devices/system/node /m/meminfo:/proc/meminfo /data:/data"
		}
		if got := strings.Join(mounts, " "); got != want {
			t.Errorf("a %s mounts %s", node.Role, got)
		}
	}
	if want := []v1alpha4.NodeRole{"control-plane", "worker", "worker", "worker"}; !slices.Equal(roles, want) {
		t.Errorf("nodes %v", roles)
	}
	if patch := cluster.KubeadmConfigPatches[0]; !strings.Contains(patch, `cpu: "80m"`) {
		t.Errorf("kubelets are configured with %s", patch)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
