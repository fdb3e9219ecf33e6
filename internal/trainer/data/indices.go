package data

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash"
	"net/url"
	"strconv"
	"strings"
)

// indicesPrefix begins the name of a data set whose records a script has itself: indices://NAME?records=60000. What it
// is dealt are their numbers: record i is i, as eight bytes, little-endian. NAME is in the fingerprint, and nothing else
// of what the records hold.
const indicesPrefix = "indices://"

func isIndices(path string) bool { return strings.HasPrefix(path, indicesPrefix) }

// indicesFile is the one file of such a data set.
type indicesFile struct {
	even
	path string // the canonical form
}

const indicesChunkRecords = 4096

func (d *Dataset) openIndices(ctx context.Context) error {
	name, records, err := parseIndices(d.spec.Path)
	if err != nil {
		return err
	}
	if len(d.spec.Features) > 0 {
		return fmt.Errorf("data %q: a model file cannot read records that only a script has; give the job a worker command, or name files", d.spec.Path)
	}
	path := fmt.Sprintf("%s%s?records=%d", indicesPrefix, name, records)
	return d.add(ctx, path, &indicesFile{even{records, indicesChunkRecords}, path})
}

func parseIndices(path string) (name string, records int64, err error) {
	u, err := url.Parse(path)
	if err != nil {
		return "", 0, fmt.Errorf("data %q: %w", path, err)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", 0, fmt.Errorf("data %q: %w", path, err)
	}
	if u.Host == "" || u.Path != "" || u.Fragment != "" || u.User != nil || len(values) != 1 || len(values["records"]) != 1 {
		return "", 0, fmt.Errorf("data %q: name a data set of the script's own with its number of records: %sNAME?records=60000", path, indicesPrefix)
	}
	records, err = strconv.ParseInt(values.Get("records"), 10, 64)
	if err != nil || records < 1 {
		return "", 0, fmt.Errorf("data %q: records=%q is not a number of at least 1", path, values.Get("records"))
	}
	return u.Host, records, nil
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
