// Package child starts and signals the trainer's child processes: they die with
// their parent, however that ends, they are signalled together with their own children, and their ends
// are reported as exit codes, as a shell does. This works on Linux; elsewhere it only compiles, for development.
package child

import (
	"os"
	"syscall"
)

// ExitCode is a process' exit code as a shell reports it: 128 plus the number of the signal that ended the process.
func ExitCode(p *os.ProcessState) int {
	if status, ok := p.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.ExitCode()
}
