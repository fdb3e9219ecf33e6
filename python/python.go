// Package python contains the Python module elastic_training, with which scripts compute for elastic-trainer. A worker
// writes the module for its child process, so that the module has the worker's version of the protocol and users need
// not install it.
package python

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed elastic_training/*.py
var files embed.FS

// Module is the name under which scripts import it.
const Module = "elastic_training"

// Install writes the module's files below dir, which then belongs on PYTHONPATH.
func Install(dir string) error {
	err := fs.WalkDir(files, Module, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(path))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		text, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o644)
	})
	if err != nil {
		return fmt.Errorf("write the Python module %s below %s: %w", Module, dir, err)
	}
	return nil
}
