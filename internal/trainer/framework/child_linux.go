package framework

import (
	"os"
	"runtime"
	"syscall"
)

// childAttributes make a script die with this process, however that ends. It gets a process group of its own, so that
// Ctrl-C does not reach it: it finishes its minibatch.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// lockThread ties the calling goroutine to its thread, whose end Pdeathsig watches.
func lockThread() { runtime.LockOSThread() }

// kill ends a script with what it has started.
func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
