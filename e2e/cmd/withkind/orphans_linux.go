package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of whatever its children leave behind: a test that panics leaves
// terraform's plugins, which are in process groups of their own.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	return nil
}

// endOrphans kills all children, and theirs, which are adopted when their parents die. It must be called when no child
// is meant to live.
func endOrphans() error {
	for {
		children, err := childrenOf(os.Getpid())
		if err != nil || len(children) == 0 {
			return err
		}
		for _, child := range children {
			if err := unix.Kill(child, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("kill process %d: %w", child, err)
			}
			if _, err := unix.Wait4(child, nil, 0, nil); err != nil && !errors.Is(err, unix.ECHILD) && !errors.Is(err, unix.EINTR) {
				return fmt.Errorf("wait for process %d: %w", child, err)
			}
		}
	}
}

// childrenOf are a process's children, those of all of its threads.
func childrenOf(pid int) ([]int, error) {
	files, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	if err != nil {
		return nil, err
	}
	var children []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return nil, err
		}
		for _, word := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			children = append(children, child)
		}
	}
	return children, nil
}
