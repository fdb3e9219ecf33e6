// Package store keeps final models and checkpoints in directories. OUTPUT/<first 8 digits of the job's digest>/
// contains model.safetensors, model.json, run.json and report.html. Every file is written under a temporary name,
// synced and renamed, model.json last: if it exists, the job is done. OUTPUT/checkpoints/<first 8 digits of the
// lineage>/ contains the newest states of all jobs of a lineage, from which any of them may resume; directories of
// other lineages are neither read nor removed.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

// Names of the files of a finished job.
const (
	ModelFile = "model.safetensors"
	InfoFile  = "model.json"
	RunFile   = "run.json"
	// ReportFile is the page of the last run, which needs no network.
	ReportFile = "report.html"
)

// Directory is a store below Root.
type Directory struct {
	Root            string
	CheckpointRoot  string // of the checkpoints; "" is CheckpointsDir below Root
	KeepCheckpoints int    // of a lineage; 0 keeps all
}

// Dir is where the files of a job are.
func (d Directory) Dir(jobDigest string) string { return filepath.Join(d.Root, jobDigest[:8]) }

// Finished returns the model of a job that is done already, or nil. A description without the model that it
// describes is an error.
func (d Directory) Finished(jobDigest string) (*master.ModelInfo, error) {
	dir := d.Dir(jobDigest)
	text, err := os.ReadFile(filepath.Join(dir, InfoFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var info master.ModelInfo
	if err == nil {
		err = json.Unmarshal(text, &info)
	}
	if err != nil {
		return nil, fmt.Errorf("read the description of the final model: %w; remove %s to train again", err, dir)
	}
	if info.Job != jobDigest {
		return nil, nil // the first 8 digits of another job
	}
	model, err := os.ReadFile(filepath.Join(dir, ModelFile))
	if err != nil {
		return nil, fmt.Errorf("the job is done, but its model is not there: %w; remove %s to train again", err, dir)
	}
	if sum := sha256.Sum256(model); hex.EncodeToString(sum[:]) != info.SHA256 {
		return nil, fmt.Errorf("%s: SHA-256 %x, and %s says %s: the file is damaged; remove %s to train again", filepath.Join(dir, ModelFile), sum, InfoFile, info.SHA256, dir)
	}
	info.Files = files(dir)
	return &info, nil
}

func files(dir string) []string {
	return []string{filepath.Join(dir, ModelFile), filepath.Join(dir, InfoFile), filepath.Join(dir, RunFile)}
}

// Fits implements master.Store. A full disk may have room again when the job is done.
func (Directory) Fits(int) error { return nil }

// Save implements master.Store.
func (d Directory) Save(ctx context.Context, model []byte, info master.ModelInfo, run master.RunInfo, check func(context.Context) error) ([]string, error) {
	dir := d.Dir(info.Job)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the output directory: %w", err)
	}
	for _, f := range []struct {
		name    string
		content any
	}{{ModelFile, model}, {RunFile, run}, {InfoFile, info}} {
		content, isBytes := f.content.([]byte)
		if !isBytes {
			text, err := json.MarshalIndent(f.content, "", "  ")
			if err != nil {
				return nil, err
			}
			text = append(text, '\n')
			content = text
		}
		if err := replace(ctx, dir, f.name, content, check); err != nil {
			return nil, err
		}
	}
	return files(dir), nil
}

// SaveReport implements master.Store.
func (d Directory) SaveReport(ctx context.Context, name master.ReportName, page []byte, check func(context.Context) error) (string, error) {
	dir := d.Dir(name.Job)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the output directory: %w", err)
	}
	return filepath.Join(dir, ReportFile), replace(ctx, dir, ReportFile, page, check)
}

// fileMode is what finished files have: the user of a model need not be the one who trained it.
const fileMode = 0o644

// Replace puts a file in the place of the one with that name, whole or not at all.
func Replace(dir, name string, content []byte) error {
	return replace(context.Background(), dir, name, content, func(context.Context) error { return nil })
}

// replace is Replace that asks check just before the file gets its name. Others may write to the same directory, on a
// volume that several jobs share. The temporary file therefore has a name that nobody can guess, is made by O_EXCL,
// which follows no symbolic link, and is readable by its owner alone until it is whole.
func replace(ctx context.Context, dir, name string, content []byte, check func(context.Context) error) error {
	temporary, err := writeSynced(dir, name, content)
	if err == nil {
		err = check(ctx)
	}
	if err == nil {
		err = os.Chmod(temporary, fileMode)
	}
	if err == nil {
		err = os.Rename(temporary, filepath.Join(dir, name))
	}
	if err != nil {
		if temporary != "" {
			err = errors.Join(err, os.Remove(temporary)) // a full disk has use for what was written
		}
		return err
	}
	return syncDir(dir)
}

// writeSynced writes a new file beside the one of that name. Its path is returned even with an error, where there is
// one.
func writeSynced(dir, name string, content []byte) (path string, err error) {
	f, err := os.CreateTemp(dir, "."+name+".*") // with mode 0600 and O_EXCL
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(content); err != nil {
		return f.Name(), err
	}
	return f.Name(), f.Sync()
}

func syncDir(path string) (err error) {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Sync()
}
