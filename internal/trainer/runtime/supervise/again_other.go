//go:build !linux

package supervise

import (
	"os"
	"os/exec"
)

// again is this program with other arguments. Containers are Linux's; elsewhere this only compiles.
func again(args []string) (*exec.Cmd, error) {
	program, err := os.Executable()
	return exec.Command(program, args...), err
}
