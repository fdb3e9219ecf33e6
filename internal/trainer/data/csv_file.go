package data

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/table"
)

// csvFile is a CSV file with its index. Its records are the rows, each as a tf.train.Example of the schema's features.
type csvFile struct {
	entry
	index   table.Index
	options table.Options
	schema  *table.Schema
	text    [sha256.Size]byte // of the whole file, which is read for the index anyway
}

func (d *Dataset) openCSV(ctx context.Context, e entry) (source, error) {
	s := &csvFile{entry: e, options: d.spec.Table}
	return s, e.open(ctx, func(r io.ReaderAt) (err error) {
		text := sha256.New()
		if s.index, err = table.ReadIndex(io.TeeReader(e.sequential(r), text), e.absolute); err != nil {
			return err
		}
		text.Sum(s.text[:0])
		if len(d.spec.Features) == 0 {
			s.schema, err = table.Infer(r, s.index, e.absolute, d.spec.Table)
			return err
		}
		if s.schema, err = table.NewSchema(s.index.Columns, d.spec.Features, d.spec.Table); err != nil {
			return &SchemaError{fmt.Errorf("data %q: %w", e.absolute, err)}
		}
		return nil
	})
}

func (s *csvFile) records() int64           { return s.index.Rows() }
func (s *csvFile) chunkOf(record int64) int { return s.index.Find(record) }
func (s *csvFile) first(chunk int) int64    { return s.index.Chunks[chunk].First }
func (s *csvFile) offset(chunk int) int64   { return s.index.Chunks[chunk].Offset }

func (s *csvFile) load(ctx context.Context, chunk int) ([][]byte, error) {
	c := s.index.Chunks[chunk]
	text := make([]byte, 0, 2*c.Bytes) // names and lengths take about as much again as the cells
	ends := make([]int, 0, c.Rows)
	encoder := s.schema.NewEncoder()
	err := s.open(ctx, func(r io.ReaderAt) error {
		return s.index.Read(r, chunk, s.absolute, func(line int64, cells []string) (err error) {
			if text, err = encoder.Append(text, cells); err != nil {
				return fmt.Errorf("data %q: line %d: %w", s.absolute, line, err)
			}
			ends = append(ends, len(text))
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	records, begin := make([][]byte, len(ends)), 0
	for i, end := range ends {
		records[i], begin = text[begin:end:end], end
	}
	return records, nil
}

func (s *csvFile) firstRecord(ctx context.Context) ([]byte, error) {
	records, err := s.load(ctx, 0)
	if err != nil {
		return nil, err
	}
	return records[0], nil
}

func (s *csvFile) layout() Layout {
	l := Layout{Format: dataset.CSV, Chunks: len(s.index.Chunks), Compression: "none"}
	for _, c := range s.index.Chunks {
		l.LargestChunk = max(l.LargestChunk, c.Rows)
	}
	return l
}

// identify holds what decides the numbers besides the text: which columns feed what, and the numbers of words.
func (s *csvFile) identify(_ context.Context, w hash.Hash) error {
	for _, feature := range slices.Sorted(maps.Keys(s.options.Columns)) {
		hashString(w, "column")
		hashString(w, feature)
		hashStrings(w, s.options.Columns[feature])
	}
	for _, column := range slices.Sorted(maps.Keys(s.options.Words)) {
		hashString(w, "words")
		hashString(w, column)
		hashStrings(w, s.options.Words[column])
	}
	_, err := w.Write(s.text[:])
	return err
}
