package supervise

import (
	"os"
	"os/exec"
	"syscall"
)

// again is this program with other arguments, wherever its file is now. It ends with this process.
func again(args []string) (*exec.Cmd, error) {
	cmd := exec.Command("/proc/self/exe", args...) //nolint:noctx // it is signalled, and waited for
	cmd.Args[0] = os.Args[0]
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}
