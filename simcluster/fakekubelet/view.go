package fakekubelet

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// A fileView is the file system as one container sees it: the host's, with
// volumes at their mount paths. It travels as JSON to the shim.
type fileView struct {
	// Scratch is an empty directory of the container's, where the new root is built.
	Scratch string `json:"scratch"`
	Binds   []bind `json:"binds"`
	// Dir is the working directory, made if the host has none of that name.
	Dir string `json:"dir"`
}

// A bind shows the file or directory Source at Target.
type bind struct {
	Target    string `json:"target"`
	Source    string `json:"source"`
	Directory bool   `json:"directory"`
	ReadOnly  bool   `json:"readOnly,omitempty"`
}

// A hostTree is what planView needs to know about the host's files.
type hostTree interface {
	// Lstat returns the type of what is at an absolute path; ok is false for nothing.
	Lstat(path string) (mode fs.FileMode, ok bool)
	Readlink(path string) (string, error)
	ReadDir(path string) ([]fs.DirEntry, error)
}

// A viewStep is one action in building a root directory. Paths begin with "/" and are
// below the new root for path, on the host for source.
type viewStep struct {
	kind     stepKind
	path     string
	source   string
	readOnly bool
}

type stepKind int

const (
	stepTmpfs   stepKind = iota // mount an empty file system on the directory at path
	stepMkdir                   // make a directory
	stepTouch                   // make an empty file
	stepSymlink                 // make a symbolic link to source
	stepBind                    // bind source, with what is mounted below it
)

// planView computes how to build the root directory of v in an empty directory, so that
// nothing is made on the host: a host directory that lacks a mount point is
// replaced by an empty file system in which each of its entries is bound, beside the
// mount point. This takes no overlay file system, which unprivileged users may
// not have.
func planView(v fileView, host hostTree) ([]viewStep, error) {
	root := &viewNode{}
	binds := slices.Clone(v.Binds)
	slices.SortStableFunc(binds, func(a, b bind) int { return cmp.Compare(a.Target, b.Target) })
	for _, b := range binds {
		target, err := resolve(b.Target, host, binds)
		if err != nil {
			return nil, err
		}
		n := root.descend(target)
		b.Target = target
		n.bind = &b
	}
	if v.Dir != "" {
		dir, err := resolve(v.Dir, host, binds)
		if err != nil {
			return nil, err
		}
		root.descend(dir)
	}
	var steps []viewStep
	if err := root.build("/", true, host, &steps); err != nil {
		return nil, err
	}
	return steps, nil
}

// A viewNode is a path on which something is mounted, or that leads to one.
type viewNode struct {
	children map[string]*viewNode
	bind     *bind
}

func (n *viewNode) descend(target string) *viewNode {
	for name := range strings.SplitSeq(strings.Trim(target, "/"), "/") {
		if name == "" {
			continue
		}
		if n.children == nil {
			n.children = map[string]*viewNode{}
		}
		child := n.children[name]
		if child == nil {
			child = &viewNode{}
			n.children[name] = child
		}
		n = child
	}
	return n
}

func (n *viewNode) names() []string { return slices.Sorted(maps.Keys(n.children)) }

// build adds the steps for what is at, and below, path at. fresh says that the
// directory is to be filled; otherwise the host's is already to be seen there.
func (n *viewNode) build(at string, fresh bool, host hostTree, steps *[]viewStep) error {
	if n.bind != nil {
		*steps = append(*steps, viewStep{kind: stepBind, path: at, source: n.bind.Source, readOnly: n.bind.ReadOnly})
		return n.buildInVolume(at, steps)
	}
	if !fresh && n.hostHasAll(at, host) {
		for _, name := range n.names() {
			if err := n.children[name].build(path.Join(at, name), false, host, steps); err != nil {
				return err
			}
		}
		return nil
	}
	if !fresh {
		*steps = append(*steps, viewStep{kind: stepTmpfs, path: at})
	}
	if mode, ok := host.Lstat(at); ok && mode.IsDir() {
		if err := n.fill(at, host, steps); err != nil {
			return err
		}
	}
	for _, name := range n.names() {
		child, childPath := n.children[name], path.Join(at, name)
		_, exists := host.Lstat(childPath)
		if !exists {
			*steps = append(*steps, viewStep{kind: child.placeholder(), path: childPath})
		}
		// A missing directory lies on the empty file system and is filled in place.
		if err := child.build(childPath, !exists, host, steps); err != nil {
			return err
		}
	}
	return nil
}

// hostHasAll reports whether every mount point directly below at exists on the host.
func (n *viewNode) hostHasAll(at string, host hostTree) bool {
	for name := range n.children {
		if _, ok := host.Lstat(path.Join(at, name)); !ok {
			return false
		}
	}
	return true
}

// fill shows each entry of the host's directory at in a new directory.
func (n *viewNode) fill(at string, host hostTree, steps *[]viewStep) error {
	entries, err := host.ReadDir(at)
	if err != nil {
		return fmt.Errorf("list %s, in which a volume is to be mounted: %w", at, err)
	}
	for _, entry := range entries {
		p := path.Join(at, entry.Name())
		switch {
		case entry.Type()&fs.ModeSymlink != 0:
			target, err := host.Readlink(p)
			if err != nil {
				continue // gone meanwhile
			}
			*steps = append(*steps, viewStep{kind: stepSymlink, path: p, source: target})
		case entry.IsDir():
			*steps = append(*steps, viewStep{kind: stepMkdir, path: p}, viewStep{kind: stepBind, path: p, source: p})
		default:
			*steps = append(*steps, viewStep{kind: stepTouch, path: p}, viewStep{kind: stepBind, path: p, source: p})
		}
	}
	return nil
}

// buildInVolume mounts inside a volume. The mount points are made in it, as
// container runtimes do.
func (n *viewNode) buildInVolume(at string, steps *[]viewStep) error {
	for _, name := range n.names() {
		child, childPath := n.children[name], path.Join(at, name)
		*steps = append(*steps, viewStep{kind: child.placeholder(), path: childPath})
		if child.bind != nil {
			*steps = append(*steps, viewStep{kind: stepBind, path: childPath, source: child.bind.Source, readOnly: child.bind.ReadOnly})
		}
		if err := child.buildInVolume(childPath, steps); err != nil {
			return err
		}
	}
	return nil
}

func (n *viewNode) placeholder() stepKind {
	if n.bind != nil && !n.bind.Directory {
		return stepTouch
	}
	return stepMkdir
}

// maxSymlinks is Linux's own limit on links in one path.
const maxSymlinks = 40

// resolve follows the host's symbolic links in target (/var/run is often /run), except
// inside of another volume, whose files are not the host's.
func resolve(target string, host hostTree, binds []bind) (string, error) {
	rest := strings.Split(strings.Trim(path.Clean("/"+target), "/"), "/")
	at := "/"
	links := 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, name)
		if slices.ContainsFunc(binds, func(b bind) bool { return path.Clean(b.Target) == next }) {
			return path.Join(next, path.Join(rest...)), nil
		}
		if mode, ok := host.Lstat(next); !ok || mode&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxSymlinks {
			return "", fmt.Errorf("mount path %s: more than %d symbolic links", target, maxSymlinks)
		}
		link, err := host.Readlink(next)
		if err != nil {
			return "", fmt.Errorf("mount path %s: %w", target, err)
		}
		if path.IsAbs(link) {
			at = "/"
		}
		rest = append(strings.Split(strings.Trim(link, "/"), "/"), rest...)
	}
	return at, nil
}
