package data_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/golang/snappy"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datatest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/expand"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/idx"
)

// TestCompressedFilesCostNoMoreThanTheLimitWhateverTheyExpandTo: a few hundred kilobytes of DEFLATE are a few hundred
// megabytes of nothing, and as many empty records as they have bytes.
func TestCompressedFilesCostNoMoreThanTheLimitWhateverTheyExpandTo(t *testing.T) {
	const size = 200 << 20
	zeros := gzipZeros(t, nil, size)
	var block bytes.Buffer
	w := snappy.NewBufferedWriter(&block)
	w.Write(make([]byte, size)) //nolint:errcheck // a buffer
	w.Close()                   //nolint:errcheck // a buffer
	record := binary.LittleEndian.AppendUint32(nil, size-4)
	for name, c := range map[string]struct {
		file    string
		content []byte
		format  string
		want    string
	}{
		"a RecordIO chunk of empty records":               {"a", datatest.RecordIOChunk(2, 10_000_000, zeros), dataset.RecordIO, "10000000 records, and at most 2796202 are read"},
		"a RecordIO chunk of fewer records than it holds": {"a", datatest.RecordIOChunk(2, 1000, zeros), dataset.RecordIO, "(64 MiB, or 16 times as many)"},
		"a RecordIO chunk of one record":                  {"a", datatest.RecordIOChunk(2, 1, gzipZeros(t, record, size-4)), dataset.RecordIO, "(64 MiB, or 16 times as many)"},
		"a RecordIO chunk of snappy":                      {"a", datatest.RecordIOChunk(1, 1000, block.Bytes()), dataset.RecordIO, "at most"},
		"a RecordIO chunk that is not compressed":         {"a", datatest.RecordIOChunk(0, 16<<20, make([]byte, 64<<20)), dataset.RecordIO, "16777216 records, and at most 11184810 are read"},
		"a TFRecord record":                               {"a.tfrecord", gzipZeros(t, datatest.TFRecordLength(size), size+4), dataset.TFRecord, "(64 MiB, or 16 times as many)"},
		"IDX images of one pixel":                         {"train-images-idx3-ubyte.gz", gzipZeros(t, idx.AppendHeader(nil, size, 1, 1), size), dataset.IDX, "(64 MiB, or 16 times as many)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			saveBytes(t, filepath.Join(dir, c.file), c.content)
			if c.format == dataset.IDX {
				saveBytes(t, filepath.Join(dir, "train-labels-idx1-ubyte.gz"), gzipZeros(t, idx.AppendHeader(nil, size), size))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			ds, err := data.Open(t.Context(), data.Spec{Path: dir, Format: c.format, CacheBytes: 1 << 20})
			if err == nil {
				_, err = ds.Read(t.Context(), 0, 0, ds.Files()[0].Records)
				ds.Close() //nolint:errcheck // it has no errors
			}
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want an error with %q", err, c.want)
			}
			most := uint64(4 * expand.Limit(int64(len(c.content))))
			if took := after.TotalAlloc - before.TotalAlloc; took > most {
				t.Errorf("%d MiB were allocated for a file of %d KiB; at most %d should be (%v)", took>>20, len(c.content)>>10, most>>20, err)
			} else {
				t.Logf("%d MiB for a file of %d KiB: %v", took>>20, len(c.content)>>10, err)
			}
		})
	}
}

func gzipZeros(t *testing.T, begin []byte, n int) []byte {
	t.Helper()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(begin) //nolint:errcheck // a buffer
	for zeros := make([]byte, 1<<20); n > 0; n -= len(zeros) {
		w.Write(zeros[:min(n, len(zeros))]) //nolint:errcheck // a buffer
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}
