package gang

import (
	"os"
	"syscall"
)

// attributes give the command a process group of its own, and an end with its supervisor's.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// signalGroup reaches what the command has started too. A group that is gone needs no signal.
func signalGroup(p *os.Process, signal syscall.Signal) { _ = syscall.Kill(-p.Pid, signal) }
