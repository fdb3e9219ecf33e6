package data

import (
	"context"
	"fmt"
	"hash"
	"net/url"
	"strconv"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/synth"
)

const syntheticPrefix = "synthetic://"

// maxSyntheticRecords keeps record numbers in a word of the generator's counter.
const maxSyntheticRecords = 1 << 31

func isSynthetic(path string) bool { return strings.HasPrefix(path, syntheticPrefix) }

func syntheticShape() []int { return []int{synth.Side, synth.Side} }

// openSynthetic makes the one file of synthetic://digits, whose path is the canonical form with every parameter.
func (d *Dataset) openSynthetic(ctx context.Context) error {
	records, seed, err := parseSynthetic(d.spec.Path)
	if err != nil {
		return err
	}
	path := fmt.Sprintf("%sdigits?records=%d&seed=%d", syntheticPrefix, records, seed)
	return d.add(ctx, path, &syntheticFile{even{records, syntheticChunkRecords}, path, seed})
}

func parseSynthetic(path string) (records int64, seed uint64, err error) {
	u, err := url.Parse(path)
	if err != nil {
		return 0, 0, fmt.Errorf("data %q: %w", path, err)
	}
	if u.Host != "digits" || u.Path != "" || u.Fragment != "" || u.User != nil {
		return 0, 0, fmt.Errorf("data %q: there is one synthetic data set, synthetic://digits?records=10000&seed=1", path)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return 0, 0, fmt.Errorf("data %q: %w", path, err)
	}
	records, seed = 10000, 1
	for name, all := range values {
		if len(all) != 1 {
			return 0, 0, fmt.Errorf("data %q: parameter %q is given %d times", path, name, len(all))
		}
		switch name {
		case "records":
			records, err = strconv.ParseInt(all[0], 10, 64)
			if err != nil || records < 1 || records > maxSyntheticRecords {
				return 0, 0, fmt.Errorf("data %q: records=%q is not a number from 1 to %d", path, all[0], int64(maxSyntheticRecords))
			}
		case "seed":
			if seed, err = strconv.ParseUint(all[0], 10, 64); err != nil {
				return 0, 0, fmt.Errorf("data %q: seed=%q is not a number from 0 to 18446744073709551615", path, all[0])
			}
		default:
			return 0, 0, fmt.Errorf("data %q: parameter %q is not known; there are records and seed", path, name)
		}
	}
	return records, seed, nil
}

// syntheticFile is the generated digit set.
type syntheticFile struct {
	even
	path string // the canonical form
	seed uint64
}

// syntheticChunkRecords is small, because a record costs far more to make than to read.
const syntheticChunkRecords = 128

func (s *syntheticFile) name() string { return s.path }
func (s *syntheticFile) bytes() int64 { return s.total * synth.RecordBytes }

func (s *syntheticFile) load(_ context.Context, chunk int) ([][]byte, error) {
	lo, hi := s.span(chunk)
	buffer := make([]byte, (hi-lo)*synth.RecordBytes)
	records := make([][]byte, hi-lo)
	for i := range records {
		records[i] = buffer[i*synth.RecordBytes : (i+1)*synth.RecordBytes : (i+1)*synth.RecordBytes]
		records[i][synth.Pixels] = synth.Digit(s.seed, uint32(lo)+uint32(i), records[i][:synth.Pixels])
	}
	return records, nil
}

func (s *syntheticFile) firstRecord(context.Context) ([]byte, error) {
	record := make([]byte, synth.RecordBytes)
	record[synth.Pixels] = synth.Digit(s.seed, 0, record[:synth.Pixels])
	return record, nil
}

func (s *syntheticFile) layout() Layout {
	return Layout{Format: "synthetic", Chunks: s.chunkOf(s.total-1) + 1, LargestChunk: min(s.perChunk, s.total), Compression: "none"}
}

// identify needs nothing but the generator's version: the parameters are in the path.
func (s *syntheticFile) identify(_ context.Context, w hash.Hash) error {
	hashString(w, synth.Version)
	return nil
}
