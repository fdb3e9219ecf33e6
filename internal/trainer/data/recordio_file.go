package data

import (
	"context"
	"encoding/binary"
	"hash"
	"io"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/recordio"
)

// recordioFile is a RecordIO file with its index. The file is opened for every chunk that is read, so that a data set
// of many files needs no file descriptors, and its stamp is compared each time.
type recordioFile struct {
	entry
	index recordio.Index
}

func openRecordIO(ctx context.Context, e entry) (source, error) {
	s := &recordioFile{entry: e}
	return s, e.open(ctx, func(r io.ReaderAt) (err error) {
		s.index, err = recordio.ReadIndex(e.windowed(r), e.stamp.size, e.absolute)
		return err
	})
}

func (s *recordioFile) records() int64           { return s.index.Records() }
func (s *recordioFile) chunkOf(record int64) int { return s.index.Find(record) }
func (s *recordioFile) first(chunk int) int64    { return s.index.Chunks[chunk].First }
func (s *recordioFile) offset(chunk int) int64   { return s.index.Chunks[chunk].Offset }

func (s *recordioFile) load(ctx context.Context, chunk int) (records [][]byte, err error) {
	err = s.open(ctx, func(r io.ReaderAt) error {
		records, err = s.index.Chunks[chunk].Read(r, s.absolute)
		return err
	})
	return records, err
}

func (s *recordioFile) firstRecord(ctx context.Context) (record []byte, err error) {
	err = s.open(ctx, func(r io.ReaderAt) error {
		record, err = s.index.Chunks[s.chunkOf(0)].FirstRecord(r, s.absolute)
		return err
	})
	return record, err
}

func (s *recordioFile) layout() Layout {
	l := Layout{Format: dataset.RecordIO, Chunks: len(s.index.Chunks)}
	var used [recordio.Gzip + 1]bool
	for _, c := range s.index.Chunks {
		l.LargestChunk = max(l.LargestChunk, int64(c.Records))
		used[c.Compressor] = true
	}
	var names []string
	for c, is := range used {
		if is {
			names = append(names, recordio.Compressor(c).String())
		}
	}
	l.Compression = strings.Join(names, ",")
	return l
}

func (s *recordioFile) identify(_ context.Context, w hash.Hash) error {
	b := binary.LittleEndian.AppendUint64([]byte("recordio\n"), uint64(len(s.index.Chunks)))
	for _, c := range s.index.Chunks {
		b = binary.LittleEndian.AppendUint32(b, c.Checksum)
	}
	_, err := w.Write(b)
	return err
}
