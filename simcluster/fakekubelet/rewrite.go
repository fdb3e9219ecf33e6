package fakekubelet

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// rootVariable holds the root of the files of a container that runs without mounts: what
// the pod says is at /X is at $ELASTIC_ROOT/X.
const rootVariable = "ELASTIC_ROOT"

// rewritePaths replaces mount paths in text by what is below root: "/data/x" becomes
// root + "/data/x" if a volume is mounted at /data, wherever it stands as a path of its
// own ("--data=/data/x", "cp /data/x y"), but not inside of another path
// ("/mydata", "host/data", "file:///data").
func rewritePaths(text, root string, mountPaths []string) string {
	// The longest first: one mount may be inside of another.
	paths := slices.SortedFunc(slices.Values(mountPaths), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var out strings.Builder
	for i := 0; i < len(text); {
		matched := ""
		if text[i] == '/' && (i == 0 || !isPathByte(text[i-1])) {
			for _, path := range paths {
				path = strings.TrimRight(path, "/")
				rest, ok := strings.CutPrefix(text[i:], path)
				if ok && path != "" && (rest == "" || rest[0] == '/' || !isPathByte(rest[0])) {
					matched = path
					break
				}
			}
		}
		if matched == "" {
			out.WriteByte(text[i])
			i++
			continue
		}
		out.WriteString(root)
		out.WriteString(matched)
		i += len(matched)
	}
	return out.String()
}

// isPathByte reports whether c may be part of a path's name, so that it is no
// border between paths. Colons, commas, equal signs, quotes and blanks are borders.
func isPathByte(c byte) bool {
	return c == '/' || c == '.' || c == '-' || c == '_' || c == '~' || c == '}' ||
		'0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// linkBinds builds, below root, a tree in which every bind's target is a symbolic link
// to its source: the container's view of its volumes where nothing can be mounted.
func linkBinds(root string, binds []bind) error {
	if err := os.RemoveAll(root); err != nil { // of the run before; links are not followed
		return err
	}
	binds = slices.SortedFunc(slices.Values(binds), func(a, b bind) int { return cmp.Compare(a.Target, b.Target) })
	for _, b := range binds {
		link := filepath.Join(root, b.Target)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return fmt.Errorf("place for volume at %s: %w", b.Target, err)
		}
		if info, err := os.Lstat(link); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			// Within another volume, which outlived the container that left it.
			if err := os.Remove(link); err != nil {
				return fmt.Errorf("volume at %s: %w", b.Target, err)
			}
		}
		if err := os.Symlink(b.Source, link); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("volume at %s: %w", b.Target, err)
		}
	}
	return nil
}
