package child

import (
	"os"
	"runtime"
	"syscall"
)

// Attributes give a process that is about to be started a group of its own, so that Ctrl-C does not reach it, and an
// end with this one. The thread that starts it must live as long: see LockThread.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// LockThread ties the calling goroutine to its thread, whose end the kernel takes for the parent's. A goroutine that
// ends without unlocking takes its thread along: it waits for the child first.
func LockThread() { runtime.LockOSThread() }

// Signal reaches a child that Attributes were given to, and what it has started too. A group that is gone needs none.
func Signal(p *os.Process, signal syscall.Signal) { _ = syscall.Kill(-p.Pid, signal) }
