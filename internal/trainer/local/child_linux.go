package local

import (
	"runtime"
	"syscall"
)

// childAttributes make a child die with this process. It gets a process group of its own, so that Ctrl-C reaches
// the supervisor alone, which ends its workers in order.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// runtimeLock ties the calling goroutine to its thread, whose end Pdeathsig watches.
func runtimeLock() { runtime.LockOSThread() }
