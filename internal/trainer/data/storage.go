package data

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// storage is where the files of a data set are.
type storage interface {
	// list finds the files of the data set in bytewise order of their relative paths.
	list(ctx context.Context) (entries []entry, notices []string, err error)
	// beside finds a file by its name in the directory of the data set that is one file.
	beside(ctx context.Context, name string) (e entry, there bool, err error)
	// open opens a file for reading, and refuses one that is not what it was when it was listed.
	open(ctx context.Context, e entry) (file, error)
	// close ends what is kept open between reads.
	close()
	// readBytes is how much is best read at once.
	readBytes() int
}

// file is open for reading anywhere in it. It is good for the context that it was opened with.
type file interface {
	io.ReaderAt
	io.Closer
}

// entry is a regular file of a data set: relative is its slash-separated path below the data set's, or the base name
// when the data set is one file. absolute is its name in messages and for its storage.
type entry struct {
	relative string
	absolute string
	stamp    fileStamp
	in       storage
}

// name and bytes are a source's that is one file.
func (e entry) name() string { return e.absolute }
func (e entry) bytes() int64 { return e.stamp.size }

// fileStamp detects a changed file. It is cheap, and detects accidental changes, not deliberate ones.
type fileStamp struct {
	size    int64
	changed time.Time
	tag     string // of an object's contents, as its store computes it
}

// open runs read on the open file.
func (e entry) open(ctx context.Context, read func(io.ReaderAt) error) error {
	f, err := e.in.open(ctx, e)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read from
	return read(f)
}

// sequential reads all of a file once, from its beginning.
func (e entry) sequential(r io.ReaderAt) io.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(r, 0, e.stamp.size), e.in.readBytes())
}

// windowed reads a file from header to header.
func (e entry) windowed(r io.ReaderAt) io.ReaderAt {
	return newWindow(r, e.stamp.size, e.in.readBytes())
}

// disk is the file or directory at root.
type disk struct{ root string }

// diskReadBytes is a good size for a disk and for a network file system.
const diskReadBytes = 1 << 20

func (disk) readBytes() int { return diskReadBytes }

func (disk) close() {}

func (d disk) list(context.Context) ([]entry, []string, error) {
	entries, notices, err := listFiles(d.root)
	for i := range entries {
		entries[i].in = d
	}
	return entries, notices, err
}

func (d disk) beside(_ context.Context, name string) (entry, bool, error) {
	absolute := filepath.Join(filepath.Dir(d.root), name)
	info, err := os.Stat(absolute)
	if err != nil || !info.Mode().IsRegular() {
		return entry{}, false, nil //nolint:nilerr // its reader reports that it is not there
	}
	return entry{relative: name, absolute: absolute, stamp: stampOf(info), in: d}, true, nil
}

func (disk) open(_ context.Context, e entry) (file, error) {
	f, err := os.Open(e.absolute)
	if err != nil {
		return nil, fmt.Errorf("reading data: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		err = e.stamp.check(info, e.absolute)
	} else {
		err = fmt.Errorf("reading data: %w", err)
	}
	if err != nil {
		f.Close() //nolint:errcheck // only read from
		return nil, err
	}
	return f, nil
}

func stampOf(info os.FileInfo) fileStamp {
	return fileStamp{size: info.Size(), changed: info.ModTime()}
}

// check compares with what the file is now.
func (s fileStamp) check(info os.FileInfo, name string) error {
	if now := stampOf(info); now.size != s.size || !now.changed.Equal(s.changed) {
		return fmt.Errorf("data %q: the file was changed while it was in use (%d bytes of %s, and now %d of %s); data must stay as it is during a run",
			name, s.size, s.changed.UTC().Format(time.RFC3339Nano), now.size, now.changed.UTC().Format(time.RFC3339Nano))
	}
	return nil
}
