//go:build !linux

package gang

import (
	"os"
	"syscall"
)

// attributes: containers are Linux's; elsewhere the supervisor only compiles.
func attributes() *syscall.SysProcAttr { return nil }

func signalGroup(p *os.Process, signal syscall.Signal) { _ = p.Signal(signal) }
