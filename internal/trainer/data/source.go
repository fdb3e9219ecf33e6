package data

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
)

// source is one file (or pair, or generator) of a data set: records in chunks that are read as a whole.
type source interface {
	// name is for messages.
	name() string
	records() int64
	bytes() int64
	// chunkOf returns the position of the chunk that holds record, and first returns the number of a chunk's first record.
	chunkOf(record int64) int
	first(chunk int) int64
	// offset is where a chunk begins in the file, decompressed; −1 where that says nothing.
	offset(chunk int) int64
	load(ctx context.Context, chunk int) ([][]byte, error)
	// firstRecord is the first record as the codec reads it, as cheaply as it can be had.
	firstRecord(ctx context.Context) ([]byte, error)
	layout() Layout
	// identify writes what the fingerprint holds besides path, size and number of records.
	identify(ctx context.Context, w hash.Hash) error
}

// identifyBytes is how much of each end of a file without checksums of its own is in the fingerprint.
const identifyBytes = 64 << 10

// identifyEnds writes the first and the last bytes of a file.
func (e entry) identifyEnds(ctx context.Context, w hash.Hash) error {
	return e.open(ctx, func(r io.ReaderAt) error {
		for _, at := range []int64{0, max(0, e.stamp.size-identifyBytes)} {
			b := make([]byte, min(identifyBytes, e.stamp.size))
			if _, err := r.ReadAt(b, at); err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("reading data %q: %w", e.absolute, err)
			}
			w.Write(b) //nolint:errcheck // a hash has no errors
		}
		return nil
	})
}

// even cuts records into chunks of one size, the last one shorter.
type even struct {
	total, perChunk int64
}

func (s even) records() int64           { return s.total }
func (s even) chunkOf(record int64) int { return int(record / s.perChunk) }
func (s even) first(chunk int) int64    { return int64(chunk) * s.perChunk }
func (s even) offset(int) int64         { return -1 }
func (s even) span(chunk int) (lo, hi int64) {
	lo = s.first(chunk)
	return lo, min(lo+s.perChunk, s.total)
}
