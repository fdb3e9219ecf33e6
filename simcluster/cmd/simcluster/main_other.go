//go:build !linux

// Command simcluster runs a real Kubernetes control plane and simulated nodes on this machine; Linux only.
package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "simcluster: the embedded cluster runs on Linux only (it relies on process groups, parent-death signals and the whole of 127.0.0.0/8), and this is %s. "+
		"Use kind instead (https://kind.sigs.k8s.io; `make e2e-kind` runs the same scenarios), or run simcluster in a Linux container or virtual machine.\n", runtime.GOOS)
	os.Exit(1)
}
