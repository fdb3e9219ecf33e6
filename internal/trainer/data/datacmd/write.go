package datacmd

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/idx"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/recordio"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/tfrecord"
)

// writer writes records to files under temporary names and gives them their own at the end.
type writer struct {
	out     Output
	names   []string // of all files, in the order of writing
	pending []*pendingFile
	format  recordWriter
}

// recordWriter is a format: where the next record goes.
type recordWriter interface {
	write(record []byte) error
	close() error
}

// newWriter checks the options and that nothing is in the way of total records from ds.
func newWriter(ds *data.Dataset, total int64, out Output) (*writer, error) {
	out.RecordsPerFile = cmp.Or(out.RecordsPerFile, DefaultRecordsPerFile)
	if out.RecordsPerFile < 1 || out.RecordsPerChunk < 0 {
		return nil, fmt.Errorf("%d records per file and %d per chunk; use positive numbers", out.RecordsPerFile, out.RecordsPerChunk)
	}
	w := &writer{out: out}
	if out.Format == dataset.IDX {
		prefix := cmp.Or(out.IDXPrefix, "train")
		w.names = []string{prefix + "-images-idx3-ubyte", prefix + "-labels-idx1-ubyte"}
	} else {
		end := ""
		if out.Format == dataset.TFRecord {
			end = tfrecordEnds[out.Compression]
		}
		for i := range (total + out.RecordsPerFile - 1) / out.RecordsPerFile {
			w.names = append(w.names, fmt.Sprintf("data-%04d%s", i, end))
		}
	}
	if err := os.MkdirAll(out.Dir, 0o777); err != nil {
		return nil, fmt.Errorf("making the output directory: %w", err)
	}
	if err := w.checkDir(); err != nil {
		return nil, err
	}
	if out.Format == dataset.IDX {
		shape, _ := ds.Pixels()
		return w, w.beginIDX(total, shape)
	}
	w.format = &filesWriter{w: w}
	return w, nil
}

// ours recognizes the names that a converter gives.
var ours = regexp.MustCompile(`^data-\d{4,}(\.tfrecord(\.gz|\.zlib)?)?$`)

// tfrecordEnds are the file name suffixes of the format.
var tfrecordEnds = map[tfrecord.Compression]string{tfrecord.None: ".tfrecord", tfrecord.Gzip: ".tfrecord.gz", tfrecord.Zlib: ".tfrecord.zlib"}

// checkDir refuses a directory in which the new files would replace others, or be mixed with those of an earlier run.
func (w *writer) checkDir() error {
	entries, err := os.ReadDir(w.out.Dir)
	if err != nil {
		return fmt.Errorf("looking into the output directory: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		replaced := slices.Contains(w.names, name)
		switch {
		case replaced && !w.out.Force:
			return fmt.Errorf("%q is there already; give another directory, or --force to replace it", filepath.Join(w.out.Dir, name))
		case !replaced && ours.MatchString(name):
			return fmt.Errorf("%q would be mixed with the %d new files; remove it or give another directory", filepath.Join(w.out.Dir, name), len(w.names))
		}
	}
	return nil
}

func (w *writer) write(record []byte) error { return w.format.write(record) }

// finish makes all files durable, then visible.
func (w *writer) finish() ([]string, error) {
	if err := w.format.close(); err != nil {
		return nil, err
	}
	if err := w.sync(); err != nil {
		return nil, err
	}
	var paths []string
	for i, f := range w.pending {
		path := filepath.Join(w.out.Dir, w.names[i])
		if err := os.Rename(f.file.Name(), path); err != nil {
			return nil, fmt.Errorf("giving a written file its name: %w", err)
		}
		paths = append(paths, path)
	}
	w.pending = nil
	dir, err := os.Open(w.out.Dir)
	if err != nil {
		return nil, fmt.Errorf("syncing the output directory: %w", err)
	}
	err = dir.Sync()
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil, fmt.Errorf("syncing the output directory: %w", err)
	}
	return paths, nil
}

// abandon removes what was not finished.
func (w *writer) abandon() error {
	var all error
	for _, f := range w.pending {
		f.file.Close() //nolint:errcheck // it goes, and may be closed already
		if err := os.Remove(f.file.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
			all = errors.Join(all, fmt.Errorf("removing an unfinished file: %w", err))
		}
	}
	w.pending = nil
	return all
}

// pendingFile is a file under a temporary name, which begins with a dot so that it is no data for a reader.
type pendingFile struct {
	file   *os.File
	buffer *bufio.Writer
	synced bool // and closed
}

func (w *writer) create() (*pendingFile, error) {
	f, err := os.CreateTemp(w.out.Dir, "."+w.names[len(w.pending)]+".*")
	if err != nil {
		return nil, fmt.Errorf("writing data: %w", err)
	}
	p := &pendingFile{file: f, buffer: bufio.NewWriterSize(f, 1<<20)}
	w.pending = append(w.pending, p)
	// CreateTemp makes files that only the owner reads; data is read by the workers' user as well.
	if err := f.Chmod(0o644); err != nil {
		return nil, fmt.Errorf("writing data: %w", err)
	}
	return p, nil
}

// sync brings the files written so far to the disk and closes them.
func (w *writer) sync() error {
	for _, f := range w.pending {
		if f.synced {
			continue
		}
		f.synced = true
		if err := errors.Join(f.buffer.Flush(), f.file.Sync(), f.file.Close()); err != nil {
			return fmt.Errorf("writing %q: %w", f.file.Name(), err)
		}
	}
	return nil
}

// filesWriter begins a new file after RecordsPerFile records; the one before is closed then, so that any number of
// files needs one file descriptor.
type filesWriter struct {
	w       *writer
	current encoder
	records int64
}

// encoder writes the records of one file.
type encoder interface {
	Write(record []byte) error
	Close() error
}

func (f *filesWriter) write(record []byte) error {
	if f.current == nil || f.records == f.w.out.RecordsPerFile {
		if err := errors.Join(f.close(), f.w.sync()); err != nil {
			return err
		}
		file, err := f.w.create()
		if err != nil {
			return err
		}
		if f.current, err = f.w.out.encoder(file.buffer); err != nil {
			return err
		}
		f.records = 0
	}
	f.records++
	return f.current.Write(record)
}

func (f *filesWriter) close() error {
	if f.current == nil {
		return nil
	}
	return f.current.Close()
}

func (o Output) encoder(w io.Writer) (encoder, error) {
	if o.Format == dataset.TFRecord {
		return tfrecord.NewWriter(w, o.Compression)
	}
	return recordio.NewWriter(w, recordio.WriterOptions{MaxChunkRecords: o.RecordsPerChunk, Compressor: o.Compressor})
}

// idxWriter splits records into pixels and label.
type idxWriter struct{ images, labels io.Writer }

func (w *writer) beginIDX(total int64, shape []int) error {
	images, err := w.create()
	if err != nil {
		return err
	}
	labels, err := w.create()
	if err != nil {
		return errors.Join(err, w.abandon())
	}
	w.format = idxWriter{images.buffer, labels.buffer}
	// A buffered writer keeps its first error until it is flushed.
	images.buffer.Write(idx.AppendHeader(nil, append([]int{int(total)}, shape...)...)) //nolint:errcheck // see above
	labels.buffer.Write(idx.AppendHeader(nil, int(total)))                             //nolint:errcheck // see above
	return nil
}

func (w idxWriter) write(record []byte) error {
	if _, err := w.images.Write(record[:len(record)-1]); err != nil {
		return err
	}
	_, err := w.labels.Write(record[len(record)-1:])
	return err
}

func (idxWriter) close() error { return nil }
