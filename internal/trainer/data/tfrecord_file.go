package data

import (
	"context"
	"hash"
	"io"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/tfrecord"
)

// tfrecordFile is a TFRecord file with its index.
type tfrecordFile struct {
	entry
	index tfrecord.Index
}

func (d *Dataset) openTFRecord(ctx context.Context, e entry) (source, error) {
	s := &tfrecordFile{entry: e}
	return s, e.open(ctx, func(r io.ReaderAt) (err error) {
		s.index, err = tfrecord.ReadIndex(e.windowed(r), e.stamp.size, e.absolute, tfrecord.Options{
			ReadBytes: e.in.readBytes(), WholeBytes: d.spec.CacheBytes / 2, // room for reading the next one ahead
		})
		return err
	})
}

func (s *tfrecordFile) records() int64           { return s.index.Records() }
func (s *tfrecordFile) chunkOf(record int64) int { return s.index.Find(record) }
func (s *tfrecordFile) first(chunk int) int64    { return s.index.Chunks[chunk].First }
func (s *tfrecordFile) offset(chunk int) int64   { return s.index.Chunks[chunk].Offset }

func (s *tfrecordFile) load(ctx context.Context, chunk int) (records [][]byte, err error) {
	err = s.open(ctx, func(r io.ReaderAt) error {
		records, err = s.index.Read(r, chunk, s.absolute)
		return err
	})
	return records, err
}

func (s *tfrecordFile) firstRecord(ctx context.Context) (record []byte, err error) {
	err = s.open(ctx, func(r io.ReaderAt) error {
		record, err = s.index.FirstRecord(r, s.absolute)
		return err
	})
	return record, err
}

func (s *tfrecordFile) layout() Layout {
	l := Layout{Format: dataset.TFRecord, Chunks: len(s.index.Chunks), Compression: s.index.Compression.String()}
	for _, c := range s.index.Chunks {
		l.LargestChunk = max(l.LargestChunk, c.Records)
	}
	return l
}

func (s *tfrecordFile) identify(_ context.Context, w hash.Hash) error {
	_, err := w.Write(s.index.Checksum[:])
	return err
}
