// Package python is the Python module by which scripts compute for elastic-trainer, as files to be written where a
// script is run: a worker gives its child the module that speaks the worker's version of the protocol, so that nobody
// has to install one.
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
