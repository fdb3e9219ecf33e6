package data

import (
	"context"
	"fmt"
	"hash"
	"net/url"
	"strconv"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/planted"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/synth"
)

const syntheticPrefix = "synthetic://"

// maxSyntheticRecords keeps record numbers in a word of the generator's counter.
const maxSyntheticRecords = 1 << 31

func isSynthetic(path string) bool { return strings.HasPrefix(path, syntheticPrefix) }

// Digits is the synthetic data set that is made where none is named. There are package synth's, of images, and package
// planted's.
const Digits = "digits"

// Synthetic is the path of a synthetic data set, in its canonical form with every parameter.
func Synthetic(set string, records int64, seed uint64) string {
	return fmt.Sprintf("%s%s?records=%d&seed=%d", syntheticPrefix, set, records, seed)
}

// openSynthetic makes the one file of a synthetic data set, whose path is the canonical form.
func (d *Dataset) openSynthetic(ctx context.Context) error {
	set, records, seed, err := parseSynthetic(d.spec.Path)
	if err != nil {
		return err
	}
	path := Synthetic(set, records, seed)
	chunks := even{records, syntheticChunkRecords}
	if table, ok := planted.ByName(set); ok {
		d.spec.Codec = codec.TFExample
		return d.add(ctx, path, &plantedFile{chunks, path, table, seed})
	}
	images, _ := synth.ByName(set)
	return d.add(ctx, path, &syntheticFile{chunks, path, images, seed})
}

func parseSynthetic(path string) (set string, records int64, seed uint64, err error) {
	fail := func(format string, args ...any) (string, int64, uint64, error) {
		return "", 0, 0, fmt.Errorf("data %q: %w", path, fmt.Errorf(format, args...))
	}
	u, err := url.Parse(path)
	if err != nil {
		return fail("%w", err)
	}
	_, images := synth.ByName(u.Host)
	_, table := planted.ByName(u.Host)
	if !images && !table || u.Path != "" || u.Fragment != "" || u.User != nil {
		return fail("there is no such synthetic data set; there are synthetic://digits?records=10000&seed=1, and the same of %s", otherSets())
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fail("%w", err)
	}
	records, seed = 10000, 1
	for name, all := range values {
		if len(all) != 1 {
			return fail("parameter %q is given %d times", name, len(all))
		}
		switch name {
		case "records":
			records, err = strconv.ParseInt(all[0], 10, 64)
			if err != nil || records < 1 || records > maxSyntheticRecords {
				return fail("records=%q is not a number from 1 to %d", all[0], int64(maxSyntheticRecords))
			}
		case "seed":
			if seed, err = strconv.ParseUint(all[0], 10, 64); err != nil {
				return fail("seed=%q is not a number from 0 to 18446744073709551615", all[0])
			}
		default:
			return fail("parameter %q is not known; there are records and seed", name)
		}
	}
	return u.Host, records, seed, nil
}

// syntheticFile is a generated set of images.
type syntheticFile struct {
	even
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

func (s *syntheticFile) layout() Layout { return s.made() }

// identify needs nothing but the generator's version: the parameters are in the path.
func (s *syntheticFile) identify(_ context.Context, w hash.Hash) error {
	hashString(w, s.set.Version)
	return nil
}

// plantedFile is a generated set of categories and numbers; its records are tf_examples.
type plantedFile struct {
	even
	path  string // the canonical form
	table planted.Table
	seed  uint64
}

// otherSets are the names of the sets besides Digits.
func otherSets() string {
	var names []string
	for _, s := range synth.Sets() {
		if s.Name != Digits {
			names = append(names, s.Name)
		}
	}
	for _, t := range planted.All() {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
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

func (s *plantedFile) layout() Layout { return s.made() }

func (s *plantedFile) identify(_ context.Context, w hash.Hash) error {
	hashString(w, s.table.Version)
	return nil
}

// made is the layout of records that a generator makes.
func (s even) made() Layout {
	return Layout{Format: "synthetic", Chunks: s.chunkOf(s.total-1) + 1, LargestChunk: min(s.perChunk, s.total), Compression: "none"}
}
