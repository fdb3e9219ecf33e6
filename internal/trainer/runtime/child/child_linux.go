package child

import (
	"os"
	"runtime"
	"syscall"
)

// Attributes give a new process a process group of its own, so that Ctrl-C does not reach it, and
// end it together with this one. The thread that starts it must live as long: see LockThread.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// LockThread locks the calling goroutine to its thread, because the kernel takes the thread's end for the parent's. A
// goroutine that ends without unlocking ends its thread too: wait for the child first.
func LockThread() { runtime.LockOSThread() }

// Signal signals the process group of a child that was started with Attributes. A group that has ended is no error.
func Signal(p *os.Process, signal syscall.Signal) { _ = syscall.Kill(-p.Pid, signal) }
