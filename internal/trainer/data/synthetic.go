package data

import (
	"context"
	"fmt"
	"hash"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/planted"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/synth"
)

func isSynthetic(path string) bool { return strings.HasPrefix(path, dataset.SyntheticPrefix) }

// Synthetic is the path of a synthetic data set, in its canonical form with every parameter.
func Synthetic(set string, records int64, seed uint64) string {
	return dataset.Synthetic{Name: set, Records: records, Seed: seed}.String()
}

// openSynthetic makes the one file of a synthetic data set, whose path is the canonical form.
func (d *Dataset) openSynthetic(ctx context.Context) error {
	set, err := dataset.ParseSynthetic(d.spec.Path)
	if err != nil {
		return fmt.Errorf("data %q: %w", d.spec.Path, err)
	}
	path := set.String()
	chunks := fixedChunks{set.Records, syntheticChunkRecords}
	if table, ok := planted.ByName(set.Name); ok {
		d.spec.Codec = dataset.TFExampleCodec
		return d.add(ctx, path, &plantedFile{chunks, path, table, set.Seed})
	}
	images, _ := synth.ByName(set.Name)
	return d.add(ctx, path, &syntheticFile{chunks, path, images, set.Seed})
}

// syntheticFile is a generated set of images.
type syntheticFile struct {
	fixedChunks
	path string // the canonical form
	set  synth.Set
	seed uint64
}

// syntheticChunkRecords is small, because a record costs far more to make than to read.
const syntheticChunkRecords = 128

func (s *syntheticFile) name() string { return s.path }
func (s *syntheticFile) bytes() int64 { return s.total * int64(s.set.Pixels()+1) }

func (s *syntheticFile) load(_ context.Context, chunk int) ([][]byte, error) {
	lo, hi := s.span(chunk)
	size := s.set.Pixels() + 1
	buffer := make([]byte, int(hi-lo)*size)
	records := make([][]byte, hi-lo)
	for i := range records {
		records[i] = buffer[i*size : (i+1)*size : (i+1)*size]
		s.set.Record(s.seed, uint32(lo)+uint32(i), records[i])
	}
	return records, nil
}

func (s *syntheticFile) firstRecord(context.Context) ([]byte, error) {
	record := make([]byte, s.set.Pixels()+1)
	s.set.Record(s.seed, 0, record)
	return record, nil
}

func (s *syntheticFile) layout() Layout { return s.madeLayout() }

// identify needs nothing but the generator's version: the parameters are in the path.
func (s *syntheticFile) identify(_ context.Context, w hash.Hash) error {
	hashString(w, s.set.Version)
	return nil
}

// plantedFile is a generated set of categories and numbers; its records are tf_examples.
type plantedFile struct {
	fixedChunks
	path  string // the canonical form
	table planted.Table
	seed  uint64
}

func (s *plantedFile) name() string { return s.path }

// bytes is of the values; there is no file.
func (s *plantedFile) bytes() int64 { return s.total * int64(codec.BytesSize(s.table.Features)) }

func (s *plantedFile) load(_ context.Context, chunk int) ([][]byte, error) {
	var records [][]byte
	for lo, hi := s.span(chunk); lo < hi; lo++ {
		records = append(records, s.table.Record(s.seed, uint32(lo)))
	}
	return records, nil
}

func (s *plantedFile) firstRecord(context.Context) ([]byte, error) {
	return s.table.Record(s.seed, 0), nil
}

func (s *plantedFile) layout() Layout { return s.madeLayout() }

func (s *plantedFile) identify(_ context.Context, w hash.Hash) error {
	hashString(w, s.table.Version)
	return nil
}

// madeLayout is the layout of records that a generator makes.
func (s fixedChunks) madeLayout() Layout {
	return Layout{Format: "synthetic", Chunks: s.chunkOf(s.total-1) + 1, LargestChunk: min(s.perChunk, s.total), Compression: "none"}
}
