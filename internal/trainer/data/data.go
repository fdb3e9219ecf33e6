// Package data reads training data: it finds the files of a data set, computes the identity of the data set, and
// provides random access to its records, and minibatches in the form that the network needs.
//
// A data set does not change while it is open: files are checked for changes whenever they are read, RecordIO's
// checksums are verified before a chunk is used, and a record that does not fit the model's schema is an error with
// file and record. A chunk of records is read and decompressed once and kept in a cache of bounded size.
//
// Package dataset defines the names of formats and codecs. The formats are in recordio, tfrecord, table (CSV) and idx,
// generated sets in synth and planted, record codecs in codec and example, object stores in objectstore, and the
// commands for data sets in datacmd. Package schedule decides which records form a minibatch.
package data

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/objectstore"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/table"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// Spec defines what to open.
type Spec struct {
	// Path is a file, a directory, s3://BUCKET/KEY or gs://BUCKET/KEY (an object, or all below it),
	// synthetic://digits?records=10000&seed=1 (or shapes, frappe or census), or indices://NAME?records=60000.
	Path string
	// Format is one of package format's; "" looks at the names of the files. Of no effect on synthetic data.
	Format string
	// Codec is dataset.BytesCodec ("" means it) or dataset.TFExampleCodec. Of no effect on IDX and synthetic images,
	// whose records are an image and a label, and on CSV and the other synthetic data, which are read as
	// dataset.TFExampleCodec.
	Codec string
	// Table defines what CSV files and the model's schema do not.
	Table table.Options
	// Features is the model's schema: the first record of every file is checked against it. Without one nothing is
	// checked, and the records can only be read as bytes.
	Features []graph.Feature
	// Stores opens the buckets of s3:// and gs://; nil refuses such paths.
	Stores objectstore.Opener
	// Damaged, when not nil, is called with every file that cannot be opened. The file is then left out instead of
	// ending Open; and first records are not checked against Features. It is for those who look for all that is wrong.
	Damaged func(path string, err error)
	// CacheBytes bounds the memory of decoded chunks (--data-cache); 0 means DefaultCacheBytes().
	CacheBytes int64
}

// File is one file of a data set (one pair of files for IDX), in the order in which ranges are cut from them.
type File struct {
	Path    string            `json:"path"` // relative to the data set's, slash-separated
	Records int64             `json:"records"`
	Bytes   int64             `json:"bytes"`  // as stored
	Digest  [sha256.Size]byte `json:"digest"` // of path, bytes, records and checksums
}

// Dataset is an open data set. It is safe for concurrent use. Close stops its goroutine.
type Dataset struct {
	spec    Spec
	files   []File
	sources []source
	notices []string
	cache   *cache

	in            storage      // nil for what is not stored
	waits, waited atomic.Int64 // waited in nanoseconds

	ahead chan prefetchRequest
	life  context.Context // of reading ahead, until Close
	end   context.CancelFunc
	done  sync.WaitGroup
}

// Open lists the files of a data set, reads their indexes (not their records), and checks the first record of each
// against the schema. Empty files are left out and named in Notices; no records at all is an error.
func Open(ctx context.Context, spec Spec) (_ *Dataset, err error) {
	spec.Codec = cmp.Or(spec.Codec, dataset.BytesCodec)
	if spec.CacheBytes == 0 {
		spec.CacheBytes = DefaultCacheBytes()
	}
	d := &Dataset{spec: spec, cache: newCache(spec.CacheBytes), ahead: make(chan prefetchRequest, aheadRequests)}
	defer func() {
		if err != nil {
			d.closeStorage()
		}
	}()
	switch {
	case isSynthetic(spec.Path):
		err = d.openSynthetic(ctx)
	case isIndices(spec.Path):
		err = d.openIndices(ctx)
	default:
		err = d.openFiles(ctx)
	}
	if err != nil {
		return nil, err
	}
	if len(d.files) == 0 {
		return nil, fmt.Errorf("data %q holds no records%s", spec.Path, because(d.notices))
	}
	if len(spec.Features) > 0 && spec.Damaged == nil {
		if err := d.checkSchema(ctx); err != nil {
			return nil, err
		}
	}
	d.life, d.end = context.WithCancel(context.WithoutCancel(ctx))
	for range aheadReaders {
		d.done.Go(d.readAhead)
	}
	return d, nil
}

func because(notices []string) string {
	if len(notices) == 0 {
		return ""
	}
	return ": " + strings.Join(notices, "; ")
}

// add appends a source that has records.
func (d *Dataset) add(ctx context.Context, relative string, s source) error {
	if s.records() == 0 {
		d.notices = append(d.notices, fmt.Sprintf("data %q holds no records and is left out", s.name()))
		return nil
	}
	f := File{Path: relative, Records: s.records(), Bytes: s.bytes()}
	if err := f.identify(ctx, s); err != nil {
		return err
	}
	d.files = append(d.files, f)
	d.sources = append(d.sources, s)
	return nil
}

// checkSchema decodes the first record of every file.
func (d *Dataset) checkSchema(ctx context.Context) error {
	decoder, err := d.NewDecoder(d.spec.Features)
	if err != nil {
		return &SchemaError{fmt.Errorf("data %q: %w", d.spec.Path, err)}
	}
	values := codec.NewExample(d.spec.Features)
	for i, s := range d.sources {
		record, err := s.firstRecord(ctx)
		if err != nil {
			return err
		}
		if err := decoder.Decode(record, values); err != nil {
			return &SchemaError{d.RecordError(i, 0, err)}
		}
	}
	return nil
}

// SchemaError reports that records were read, and are not what Spec.Features expects of them.
type SchemaError struct{ reason error }

func (e *SchemaError) Error() string { return e.reason.Error() }

func (e *SchemaError) Unwrap() error { return e.reason }

// Pixels reports that the records are an image and a label, as IDX and synthetic images have them, and returns the
// shape of the image. Such records have no codec.
func (d *Dataset) Pixels() (shape []int, ok bool) {
	switch s := d.sources[0].(type) {
	case *idxFile:
		return s.pair.Shape, true
	case *syntheticFile:
		return s.set.Shape, true
	default:
		return nil, false
	}
}

// Layout is how a file's records are stored, for people.
type Layout struct {
	Format       string // one of package format's, or "synthetic"
	Chunks       int
	LargestChunk int64  // in records
	Compression  string // "snappy", "gzip", "none", or several with commas
}

// Layout describes how a file is stored.
func (d *Dataset) Layout(file int) Layout { return d.sources[file].layout() }

// Codec is how the records are encoded: dataset.BytesCodec, dataset.TFExampleCodec, or "" where Pixels has the answer.
func (d *Dataset) Codec() string {
	if _, ok := d.Pixels(); ok {
		return ""
	}
	if d.spec.Format == dataset.CSV {
		return dataset.TFExampleCodec
	}
	return d.spec.Codec
}

// NewDecoder returns the decoder of the data set's records for a schema. It serves one goroutine.
func (d *Dataset) NewDecoder(features []graph.Feature) (codec.Decoder, error) {
	if shape, ok := d.Pixels(); ok {
		return newPixelsDecoder(shape, features)
	}
	return codec.NewDecoder(d.Codec(), features)
}

// RecordError reports which record an error is about, and where it is.
func (d *Dataset) RecordError(file int, record int64, err error) error {
	s, place := d.sources[file], ""
	if at := s.offset(s.chunkOf(record)); at >= 0 {
		place = fmt.Sprintf(" (of those from offset %d on)", at)
	}
	return fmt.Errorf("data %q: record %d%s: %w", s.name(), record, place, err)
}

// Files lists the files that hold records, in bytewise order of their paths. The caller must not change it.
func (d *Dataset) Files() []File { return d.files }

// RecordsByFile are the numbers of records in each of the files.
func (d *Dataset) RecordsByFile() []int64 {
	var n []int64
	for _, f := range d.files {
		n = append(n, f.Records)
	}
	return n
}

// Notices reports what a person should know: files that were left out.
func (d *Dataset) Notices() []string { return d.notices }

// Records is the number of records in all files.
func (d *Dataset) Records() int64 {
	n := int64(0)
	for _, f := range d.files {
		n += f.Records
	}
	return n
}

// Read returns records lo … hi−1 of a file. They are the cache's: the caller must not change them.
func (d *Dataset) Read(ctx context.Context, file int, lo, hi int64) ([][]byte, error) {
	if err := d.checkRange(file, lo, hi); err != nil {
		return nil, err
	}
	all := make([][]byte, 0, hi-lo)
	for at := lo; at < hi; {
		records, first, err := d.chunk(ctx, file, at)
		if err != nil {
			return nil, err
		}
		end := min(hi, first+int64(len(records)))
		all = append(all, records[at-first:end-first]...)
		at = end
	}
	return all, nil
}

func (d *Dataset) checkRange(file int, lo, hi int64) error {
	if file < 0 || file >= len(d.files) {
		return fmt.Errorf("data %q: file number %d of %d", d.spec.Path, file, len(d.files))
	}
	if lo < 0 || lo > hi || hi > d.files[file].Records {
		return fmt.Errorf("data %q: records %d to %d, and it holds %d", d.sources[file].name(), lo, hi, d.files[file].Records)
	}
	return nil
}

// chunk returns the records of the chunk that holds record, and the number of its first.
func (d *Dataset) chunk(ctx context.Context, file int, record int64) ([][]byte, int64, error) {
	s := d.sources[file]
	n := s.chunkOf(record)
	key := chunkKey{file, n}
	if records, ok := d.cache.loaded(key); ok {
		return records, s.first(n), nil
	}
	began := time.Now()
	records, err := d.cache.get(ctx, key, s, false)
	if err == nil {
		d.waits.Add(1)
		d.waited.Add(int64(time.Since(began)))
	}
	return records, s.first(n), err
}
