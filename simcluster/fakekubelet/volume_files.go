package fakekubelet

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A file is one entry of a volume that is made from API objects.
type file struct {
	data []byte
	mode fs.FileMode
}

// The links that make a volume change as a whole: FILE → ..data/FILE, ..data →
// ..STAMP. Programs that watch volumes know these names from the kubelet.
const dataLink = "..data"

// writeFiles makes dir show exactly files, all of them changing at the same moment.
// It leaves a directory alone that shows them already.
func writeFiles(dir string, files map[string]file) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("file %q would lie outside of its volume", name)
		}
	}
	old, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && shows(filepath.Join(dir, old), files) {
		return nil
	}
	stamp, err := os.MkdirTemp(dir, time.Now().UTC().Format("..2006_01_02_15_04_05."))
	if err != nil {
		return err
	}
	if err := os.Chmod(stamp, 0o755); err != nil {
		return err
	}
	for name, f := range files {
		path := filepath.Join(stamp, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.data, 0o600); err != nil {
			return err
		}
		if err := os.Chmod(path, f.mode); err != nil {
			return err
		}
	}
	link := filepath.Join(dir, "..data_tmp")
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(filepath.Base(stamp), link); err != nil {
		return err
	}
	if err := os.Rename(link, filepath.Join(dir, dataLink)); err != nil {
		return err
	}
	if err := linkEntries(dir, files); err != nil {
		return err
	}
	if old != "" {
		return os.RemoveAll(filepath.Join(dir, old))
	}
	return nil
}

// linkEntries makes the links that users see, one for each first path element.
func linkEntries(dir string, files map[string]file) error {
	wanted := map[string]bool{dataLink: true}
	for name := range files {
		top := name
		for parent := filepath.Dir(top); parent != "."; parent = filepath.Dir(top) {
			top = parent
		}
		wanted[top] = true
	}
	for _, top := range slices.Sorted(maps.Keys(wanted)) {
		err := os.Symlink(filepath.Join(dataLink, top), filepath.Join(dir, top))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 && !wanted[entry.Name()] {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// shows reports whether dir holds exactly files.
func shows(dir string, files map[string]file) bool {
	found := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, ok := files[name]
		if !ok {
			return fs.ErrExist
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if string(data) != string(f.data) {
			return fs.ErrExist
		}
		found++
		return nil
	})
	return err == nil && found == len(files)
}
