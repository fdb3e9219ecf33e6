//go:build !linux

package framework

import (
	"os"
	"syscall"
)

// childAttributes: without Linux's Pdeathsig a script ends when it notices the end of its connection.
func childAttributes() *syscall.SysProcAttr { return nil }

func lockThread() {}

func kill(p *os.Process) { _ = p.Kill() }
