package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
)

// generationFile holds the generation of the newest trainer and its process.
const generationFile = ".generation"

// Fence prevents a second trainer of the same job on this machine: a lock on a file of the job's directory, and a
// generation beside it. The kernel releases the lock with the process.
type Fence struct {
	lock       *flock.Flock
	generation int64
}

// NewFence takes the lock, or returns an error that names its holder.
func NewFence(dir string) (*Fence, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the output directory: %w", err)
	}
	f := &Fence{lock: flock.New(filepath.Join(dir, ".lock"))}
	taken, err := f.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if !taken {
		return nil, fmt.Errorf("this job already has a master: process %s is training it in %s; wait for it, end it, or choose another --output", holder(dir), dir)
	}
	if text, err := os.ReadFile(filepath.Join(dir, generationFile)); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		f.generation, _ = strconv.ParseInt(first, 10, 64) // a damaged file counts as 0: the lock protects the job
	}
	f.generation++
	if err := store.Replace(dir, generationFile, fmt.Appendf(nil, "%d %d\n", f.generation, os.Getpid())); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// holder is the process that wrote the generation file.
func holder(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, generationFile))
	if _, pid, ok := strings.Cut(strings.TrimSpace(string(text)), " "); err == nil && ok {
		return pid
	}
	return "another one"
}

// Generation implements master.Fence.
func (f *Fence) Generation() int64 { return f.generation }

// Lost implements master.Fence: a file lock cannot be lost.
func (f *Fence) Lost() <-chan string { return nil }

// Check implements master.Fence.
func (f *Fence) Check(context.Context) error { return nil }

// Close releases the lock.
func (f *Fence) Close() error { return f.lock.Close() }
