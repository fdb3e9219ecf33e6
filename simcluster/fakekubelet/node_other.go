//go:build !linux

package fakekubelet

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
)

// ShimCommand is the hidden subcommand whose body is ShimMain.
const ShimCommand = "container-shim"

// Run reports that only Linux has what simulated nodes need: process groups that die
// with their parent, mount namespaces, and the whole of 127.0.0.0/8.
func Run(context.Context, Config, *slog.Logger) error {
	return fmt.Errorf("simulated nodes run on Linux only, and this is %s; use a kind cluster instead", runtime.GOOS)
}

// ShimMain reports the same.
func ShimMain([]string) int {
	fmt.Fprintf(os.Stderr, "%s runs on Linux only\n", ShimCommand)
	return 1
}
