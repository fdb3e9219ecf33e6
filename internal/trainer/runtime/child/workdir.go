package child

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Workdir is the directory of one child, readable by this user alone. It is locked while its owner lives, so that the
// next one can remove what a killed owner has left.
type Workdir struct {
	Path string
	lock *flock.Flock
}

const workdirPrefix = "elastic-script-"

// NewWorkdir makes a directory, and removes those whose owners have ended.
func NewWorkdir() (_ *Workdir, err error) {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), workdirPrefix+"*"))
	if err != nil {
		return nil, err
	}
	for _, dir := range left {
		removeLeft(dir)
	}
	w := &Workdir{}
	if w.Path, err = os.MkdirTemp("", workdirPrefix); err != nil { // with mode 0700
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Remove())
		}
	}()
	// The lock file gets its name after it is locked, so that no other process finds it unlocked.
	made := filepath.Join(w.Path, "locking")
	w.lock = flock.New(made)
	if _, err := w.lock.TryLock(); err != nil {
		return nil, err
	}
	return w, os.Rename(made, lockOf(w.Path))
}

func lockOf(dir string) string { return filepath.Join(dir, "lock") }

// removeLeft removes a directory whose owner has ended. It skips what it cannot lock or remove.
func removeLeft(dir string) {
	if _, err := os.Stat(lockOf(dir)); err != nil {
		return // it is being made
	}
	lock := flock.New(lockOf(dir))
	if free, err := lock.TryLock(); err == nil && free {
		_ = os.RemoveAll(dir)
		_ = lock.Close()
	}
}

// Remove deletes the directory and releases its lock.
func (w *Workdir) Remove() error {
	err := os.RemoveAll(w.Path)
	if w.lock != nil {
		err = errors.Join(err, w.lock.Close())
	}
	return err
}
