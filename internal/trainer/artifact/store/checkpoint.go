package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

// CheckpointsDir is where checkpoints are below the output, by lineage.
const CheckpointsDir = trainingjob.CheckpointsDir

// The names of checkpoints sort as their steps do.
const (
	checkpointPrefix = "step-"
	checkpointSuffix = ".safetensors"
	withdrawnPrefix  = "withdrawn-"
	stepDigits       = 12
)

// checkpoints is the directory of a lineage's.
func (d Directory) checkpoints(lineage string) string {
	root := cmp.Or(d.CheckpointRoot, filepath.Join(d.Root, CheckpointsDir))
	return filepath.Join(root, lineage[:8])
}

// KeepsCheckpoints implements master.Store.
func (Directory) KeepsCheckpoints(int) bool { return true }

// Checkpoints implements master.Store.
func (d Directory) Checkpoints(lineage string) ([]master.StoredCheckpoint, error) {
	dir := d.checkpoints(lineage)
	steps, err := stepsIn(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var stored []master.StoredCheckpoint
	for _, step := range steps {
		path := filepath.Join(dir, checkpointFile(step))
		stored = append(stored, master.StoredCheckpoint{Step: step, Path: path, Read: func() ([]byte, error) { return os.ReadFile(path) }})
	}
	return stored, err
}

// SaveCheckpoint implements master.Store. Those beyond KeepCheckpoints are removed, the oldest first, when the new one
// is there; one that cannot be removed does no harm.
func (d Directory) SaveCheckpoint(ctx context.Context, name master.CheckpointName, file []byte, check func(context.Context) error) error {
	dir := d.checkpoints(name.Lineage)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of the checkpoints: %w", err)
	}
	final := checkpointFile(name.Step)
	if err := replace(ctx, dir, final, file, check); err != nil {
		return err
	}
	steps, err := stepsIn(dir)
	if err != nil || d.KeepCheckpoints == 0 {
		return err
	}
	older := steps[:slices.Index(steps, name.Step)+1] // what is newer is another job's, with more epochs
	trusted, found := slices.BinarySearch(older, name.Trusted)
	if !found {
		trusted--
	}
	for i, step := range older[:max(0, len(older)-d.KeepCheckpoints)] {
		if i != trusted {
			_ = os.Remove(filepath.Join(dir, checkpointFile(step)))
		}
	}
	return nil
}

// WithdrawCheckpoints implements master.Store. They stay where they are, to help find the fault.
func (d Directory) WithdrawCheckpoints(_ context.Context, lineage string, steps []int64) (paths []string, err error) {
	dir := d.checkpoints(lineage)
	for _, step := range steps {
		path := filepath.Join(dir, checkpointFile(step))
		switch renamed := os.Rename(path, filepath.Join(dir, withdrawnPrefix+checkpointFile(step))); {
		case renamed == nil:
			paths = append(paths, path)
		case !errors.Is(renamed, os.ErrNotExist): // there were too many, and it was removed
			err = errors.Join(err, renamed)
		}
	}
	return paths, err
}

func checkpointFile(step int64) string {
	return fmt.Sprintf("%s%0*d%s", checkpointPrefix, stepDigits, step, checkpointSuffix)
}

// stepsIn lists the checkpoints of a directory, the oldest first.
func stepsIn(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var steps []int64
	for _, e := range entries {
		step, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(e.Name(), checkpointPrefix), checkpointSuffix), 10, 64)
		if err == nil && e.Name() == checkpointFile(step) {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, nil
}
