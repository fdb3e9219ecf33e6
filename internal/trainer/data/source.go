package data

import (
	"context"
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

// What is in the fingerprint of a file without checksums of its own: all of it up to wholeBytes, which takes less time
// than the first steps; of a larger one sampledBlocks blocks from its beginning to its end, so that one of terabytes
// opens as fast.
const (
	wholeBytes    = 64 << 20
	sampledBlocks = 64
	blockBytes    = 64 << 10
)

// identifyContents writes the bytes of a file, or samples of them.
func (e entry) identifyContents(ctx context.Context, w hash.Hash) error {
	return e.open(ctx, func(r io.ReaderAt) error {
		var err error
		if e.stamp.size <= wholeBytes {
			_, err = io.Copy(w, e.sequential(r))
		} else {
			last := e.stamp.size - blockBytes
			for i := range int64(sampledBlocks) {
				if _, err = io.Copy(w, io.NewSectionReader(r, last/(sampledBlocks-1)*i, blockBytes)); err != nil {
					break
				}
			}
			if err == nil {
				_, err = io.Copy(w, io.NewSectionReader(r, last, blockBytes))
			}
		}
		if err != nil {
			return fmt.Errorf("reading data %q: %w", e.absolute, err)
		}
		return nil
	})
}

// fixedChunks cuts records into chunks of one size, the last one shorter.
type fixedChunks struct {
	total, perChunk int64
}

func (s fixedChunks) records() int64           { return s.total }
func (s fixedChunks) chunkOf(record int64) int { return int(record / s.perChunk) }
func (s fixedChunks) first(chunk int) int64    { return int64(chunk) * s.perChunk }
func (s fixedChunks) offset(int) int64         { return -1 }
func (s fixedChunks) span(chunk int) (lo, hi int64) {
	lo = s.first(chunk)
	return lo, min(lo+s.perChunk, s.total)
}
