//go:build !linux

package local

import "syscall"

// childAttributes: without Linux's Pdeathsig a worker ends by itself when its master has been gone for a while.
func childAttributes() *syscall.SysProcAttr { return nil }

func runtimeLock() {}
