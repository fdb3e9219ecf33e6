// Package child is what the trainer's processes have in common that are started by others of its own: they die with
// whoever started them, however that ends, they are signalled together with all that they have started, and their ends
// are said as a shell says them. Linux does this; elsewhere it compiles, for one machine and for development.
package child

import (
	"os"
	"syscall"
)

// ExitCode is a shell's of a process that has ended: 128 and the signal where one has ended it.
func ExitCode(p *os.ProcessState) int {
	if status, ok := p.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.ExitCode()
}
