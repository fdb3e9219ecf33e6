package fakekubelet

import (
	"bytes"
	"context"
	"math"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// memoryWatchPeriod bounds how long a container may exceed its limit. There is no
// event to wait for without a control group of its own, which would need root.
const memoryWatchPeriod = 200 * time.Millisecond

// An oomWatch kills process groups that use more memory than they may.
type oomWatch struct {
	mu     sync.Mutex
	groups map[int]*watchedGroup
	wake   chan struct{}
}

type watchedGroup struct {
	limit  int64
	killed bool
}

func newOOMWatch() *oomWatch {
	return &oomWatch{groups: map[int]*watchedGroup{}, wake: make(chan struct{}, 1)}
}

func (w *oomWatch) add(group int, limit int64) {
	if limit == math.MaxInt64 {
		return
	}
	w.mu.Lock()
	w.groups[group] = &watchedGroup{limit: limit}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// remove ends the watch and reports whether the group was killed by it.
func (w *oomWatch) remove(group int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.groups[group]
	delete(w.groups, group)
	return g != nil && g.killed
}

// run watches until ctx ends. It rests while there is nothing to watch.
func (w *oomWatch) run(ctx context.Context) {
	ticker := time.NewTicker(memoryWatchPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !w.check() {
			ticker.Stop()
			select {
			case <-ctx.Done():
				return
			case <-w.wake:
			}
			ticker.Reset(memoryWatchPeriod)
		}
	}
}

// check kills what is over its limit and reports whether anything is watched.
func (w *oomWatch) check() bool {
	w.mu.Lock()
	watching := len(w.groups) > 0
	w.mu.Unlock()
	if !watching {
		return false
	}
	used := residentBytesByGroup()
	w.mu.Lock()
	defer w.mu.Unlock()
	for group, g := range w.groups {
		if used[group] > g.limit && !g.killed {
			g.killed = true
			_ = unix.Kill(-group, unix.SIGKILL)
		}
	}
	return true
}

// residentBytesByGroup sums resident memory of all processes by process group.
// Pages that processes of a group share count once for each, so a group of many
// processes seems larger than a control group would find it.
func residentBytesByGroup() map[int]int64 {
	sums := map[int]int64{}
	pageBytes := int64(os.Getpagesize())
	for _, pid := range processes() {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue // ended meanwhile
		}
		// The command's name, in parentheses, may hold anything; the fields after it
		// are numbers: state(3) ppid(4) pgrp(5) … rss(24), see proc_pid_stat(5).
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 22 {
			continue
		}
		group, err1 := strconv.Atoi(string(fields[2]))
		pages, err2 := strconv.ParseInt(string(fields[21]), 10, 64)
		if err1 == nil && err2 == nil {
			sums[group] += pages * pageBytes
		}
	}
	return sums
}

// memoryLimit is a container's limit in bytes, or MaxInt64 for none.
func memoryLimit(c *corev1.Container) int64 {
	if limit, ok := c.Resources.Limits[corev1.ResourceMemory]; ok && !limit.IsZero() {
		return limit.Value()
	}
	return math.MaxInt64
}
