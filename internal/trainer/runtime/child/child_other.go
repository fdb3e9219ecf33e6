//go:build !linux

package child

import (
	"os"
	"syscall"
)

// Attributes returns nothing: a child ends when it notices the end of its connection, or of its parent.
func Attributes() *syscall.SysProcAttr { return nil }

// LockThread does nothing: only Linux ends a child with its parent's thread.
func LockThread() {}

// Signal signals the child alone, without its children.
func Signal(p *os.Process, signal syscall.Signal) { _ = p.Signal(signal) }
