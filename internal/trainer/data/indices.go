package data

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
)

func isIndices(path string) bool { return strings.HasPrefix(path, dataset.IndicesPrefix) }

// indicesFile is the one file of a data set whose records a script has itself: indices://NAME?records=60000. What it is
// assigned are their numbers: record i is i, as eight bytes, little-endian. NAME is in the fingerprint, and nothing
// else of what the records hold.
type indicesFile struct {
	fixedChunks
	path string // the canonical form
}

const indicesChunkRecords = 4096

func (d *Dataset) openIndices(ctx context.Context) error {
	set, err := dataset.ParseIndices(d.spec.Path)
	if err != nil {
		return fmt.Errorf("data %q: %w", d.spec.Path, err)
	}
	if len(d.spec.Features) > 0 {
		return fmt.Errorf("data %q: a model file cannot read records that only a script has; give the job a worker command, or name files", d.spec.Path)
	}
	path := set.String()
	return d.add(ctx, path, &indicesFile{fixedChunks{set.Records, indicesChunkRecords}, path})
}

func (s *indicesFile) name() string { return s.path }
func (s *indicesFile) bytes() int64 { return 8 * s.total }

func (s *indicesFile) load(_ context.Context, chunk int) ([][]byte, error) {
	lo, hi := s.span(chunk)
	numbers := make([]byte, 0, 8*(hi-lo))
	records := make([][]byte, 0, hi-lo)
	for i := lo; i < hi; i++ {
		numbers = binary.LittleEndian.AppendUint64(numbers, uint64(i))
		records = append(records, numbers[len(numbers)-8:len(numbers):len(numbers)])
	}
	return records, nil
}

func (s *indicesFile) firstRecord(context.Context) ([]byte, error) { return make([]byte, 8), nil }

func (s *indicesFile) layout() Layout {
	return Layout{Format: "indices", Chunks: s.chunkOf(s.total-1) + 1, LargestChunk: min(s.perChunk, s.total), Compression: "none"}
}

// identify needs nothing: name and number of records are in the path.
func (s *indicesFile) identify(context.Context, hash.Hash) error { return nil }
