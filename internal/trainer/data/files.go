package data

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// listFiles finds the regular files below root (or root itself) in bytewise order of their relative paths. Links are
// followed; names that begin with "." or "_" are left out, so that a ConfigMap's ..data and Spark's _SUCCESS are no
// data; two paths to one file or directory are refused, because its records would count twice.
func listFiles(root string) (entries []entry, notices []string, err error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, nil, fmt.Errorf("opening data: %w", err)
	}
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return nil, nil, fmt.Errorf("data %q is neither a regular file nor a directory (%s)", root, info.Mode().Type())
		}
		return []entry{{relative: filepath.Base(root), absolute: root, stamp: stampOf(info)}}, nil, nil
	}
	l := lister{root: root, seen: map[fileStamp][]seen{}}
	if err := l.once("", info); err != nil {
		return nil, nil, err
	}
	if err := l.walk(""); err != nil {
		return nil, nil, err
	}
	sort.Slice(l.entries, func(i, j int) bool { return l.entries[i].relative < l.entries[j].relative })
	return l.entries, l.notices, nil
}

type lister struct {
	root    string
	entries []entry
	notices []string
	seen    map[fileStamp][]seen // by stamp, because os.SameFile only compares two
}

type seen struct {
	relative string
	info     os.FileInfo
}

func (l *lister) walk(dir string) error {
	names, err := os.ReadDir(filepath.Join(l.root, filepath.FromSlash(dir)))
	if err != nil {
		return fmt.Errorf("listing data: %w", err)
	}
	for _, name := range names {
		if isHidden(name.Name()) {
			continue
		}
		relative := path.Join(dir, name.Name())
		absolute := filepath.Join(l.root, filepath.FromSlash(relative))
		info, err := os.Stat(absolute)
		if err != nil {
			return fmt.Errorf("listing data: %w", err)
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			l.notices = append(l.notices, fmt.Sprintf("data %q is not a regular file (%s) and is left out", absolute, info.Mode().Type()))
			continue
		}
		if err := l.once(relative, info); err != nil {
			return err
		}
		if info.IsDir() {
			if err := l.walk(relative); err != nil {
				return err
			}
			continue
		}
		l.entries = append(l.entries, entry{relative: relative, absolute: absolute, stamp: stampOf(info)})
	}
	return nil
}

// isHidden reports whether a file or directory is left out.
func isHidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }

// once refuses a file or directory that was met before under another path.
func (l *lister) once(relative string, info os.FileInfo) error {
	key := stampOf(info)
	for _, other := range l.seen[key] {
		if os.SameFile(other.info, info) {
			return fmt.Errorf("data %q: %q and %q are the same file, so its records would count twice; remove one of the links", l.root, other.relative, relative)
		}
	}
	l.seen[key] = append(l.seen[key], seen{relative, info})
	return nil
}
