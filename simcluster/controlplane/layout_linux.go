package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Create makes the directories, readable by their owner only. It takes no directory over that holds something else: its
// mode would be changed, and files of the same names overwritten.
func (l Layout) Create() error {
	if err := l.claim(); err != nil {
		return err
	}
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

// claim makes the state directory, or takes an empty one, and marks it. One that is marked already is the cluster's.
func (l Layout) claim() error {
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return fmt.Errorf("creating the state directory: %w", err)
	}
	if l.isMarked() {
		return nil
	}
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return fmt.Errorf("the state directory: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%q is not empty, and no cluster was made in it: it holds %s; choose an empty or new directory with --dir", l.Dir, listed(entries))
	}
	marker, err := os.OpenFile(l.markerFile(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil && !errors.Is(err, fs.ErrExist) { // another `up` is as fast
		return fmt.Errorf("marking the state directory: %w", err)
	}
	if err == nil {
		err = marker.Close()
	}
	return err
}

// isMarked reports whether claim has marked the directory.
func (l Layout) isMarked() bool {
	info, err := os.Lstat(l.markerFile())
	return err == nil && info.Mode().IsRegular()
}

// listed names the first of some files.
func listed(entries []fs.DirEntry) string {
	const most = 3
	var names []string
	for _, e := range entries[:min(most, len(entries))] {
		names = append(names, e.Name())
	}
	text := strings.Join(names, ", ")
	if more := len(entries) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Remove removes what Create and a cluster have made. What others have put into the state directory stays, and its
// names are returned.
func (l Layout) Remove() (left []string, err error) {
	if !l.isMarked() {
		return nil, fmt.Errorf("%q was not made by simcluster up: nothing in it is removed", l.Dir)
	}
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return nil, fmt.Errorf("removing the state directory: %w", err)
	}
	for _, e := range entries {
		switch path := filepath.Join(l.Dir, e.Name()); {
		case !l.makes(path):
			left = append(left, e.Name())
		case path == l.markerFile(): // the last, so that what is interrupted here can be done again
		default:
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	if err != nil {
		return left, fmt.Errorf("removing the state directory: %w", err)
	}
	if err := os.Remove(l.markerFile()); err != nil || len(left) > 0 {
		return left, err
	}
	return nil, os.Remove(l.Dir)
}

// makes reports whether a path directly in the state directory is one that a cluster writes.
func (l Layout) makes(path string) bool {
	made := []string{
		l.markerFile(), l.PKI(), l.Logs(), l.NodeState(), l.EtcdData(), filepath.Join(l.Dir, "run"), filepath.Join(l.Dir, "flexvolume"),
		l.addons(), l.configFile(), l.statusFile(), l.lockFile(), l.agentConfigFile(), l.admissionConfigFile(),
	}
	for _, client := range clients() {
		made = append(made, l.Kubeconfig(client.file))
	}
	return slices.ContainsFunc(made, func(m string) bool {
		temporary := "." + filepath.Base(m) + "-" // as writePrivate names it
		return path == m || strings.HasPrefix(filepath.Base(path), temporary)
	})
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
