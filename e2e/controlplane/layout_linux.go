package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Create makes the directories, readable by their owner only.
func (l Layout) Create() error {
	for _, dir := range []string{l.Dir, l.PKI(), l.Logs(), l.NodeState()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("creating the state directory: %w", err)
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("making the state directory private: %w", err)
		}
	}
	return l.createSockets()
}

// createSockets makes the sockets' directory and refuses one that somebody else put in its place: below a
// world-writable temporary directory, another user may have made that name first.
func (l Layout) createSockets() error {
	err := os.Mkdir(l.Sockets, 0o700)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("creating the sockets' directory: %w", err)
	}
	info, err := os.Lstat(l.Sockets)
	if err != nil {
		return fmt.Errorf("the sockets' directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%q should be a directory of mode 0700 that belongs to uid %d, but it is %s; remove it, or choose a shorter --dir so that the sockets can lie in it",
			l.Sockets, os.Getuid(), info.Mode())
	}
	return nil
}
