//go:build !linux

package child

import (
	"os"
	"syscall"
)

// Attributes are none: a child ends when it notices the end of its connection, or of its parent.
func Attributes() *syscall.SysProcAttr { return nil }

// LockThread does nothing: no thread is watched.
func LockThread() {}

// Signal reaches the child alone.
func Signal(p *os.Process, signal syscall.Signal) { _ = p.Signal(signal) }
