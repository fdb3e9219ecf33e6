package data

import (
	"context"
	"hash"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/idx"
)

// idxFile is MNIST's pair of files. A compressed pair is one chunk, because there is no way into the middle of it.
type idxFile struct {
	fixedChunks
	pair           *idx.Pair
	images, labels entry
}

// idxChunkRecords makes a chunk of MNIST about 800 kB.
const idxChunkRecords = 1024

func openIDX(ctx context.Context, images, labels entry) (*idxFile, error) {
	pair, err := idx.OpenPair(ctx, images.idx(), labels.idx())
	if err != nil {
		return nil, err
	}
	s := &idxFile{fixedChunks{pair.Records, idxChunkRecords}, pair, images, labels}
	if pair.Compressed() {
		s.perChunk = max(pair.Records, 1)
	}
	return s, nil
}

func (e entry) idx() idx.File {
	return idx.File{Name: e.absolute, Size: e.stamp.size, Open: func(ctx context.Context) (idx.Reader, error) { return e.in.open(ctx, e) }}
}

func (s *idxFile) name() string { return s.images.absolute }
func (s *idxFile) bytes() int64 { return s.images.stamp.size + s.labels.stamp.size }

func (s *idxFile) load(ctx context.Context, chunk int) ([][]byte, error) {
	lo, hi := s.span(chunk)
	return s.pair.Read(ctx, lo, hi)
}

func (s *idxFile) firstRecord(ctx context.Context) ([]byte, error) {
	records, err := s.pair.Read(ctx, 0, 1)
	if err != nil {
		return nil, err
	}
	return records[0], nil
}

func (s *idxFile) layout() Layout {
	l := Layout{Format: dataset.IDX, Chunks: s.chunkOf(s.total-1) + 1, LargestChunk: min(s.perChunk, s.total), Compression: "none"}
	if s.pair.Compressed() {
		l.Compression = "gzip"
	}
	return l
}

func (s *idxFile) identify(ctx context.Context, w hash.Hash) error {
	for _, e := range []entry{s.images, s.labels} {
		hashString(w, e.relative)
		hashUint64(w, uint64(e.stamp.size))
		if err := e.identifyContents(ctx, w); err != nil {
			return err
		}
	}
	return nil
}
