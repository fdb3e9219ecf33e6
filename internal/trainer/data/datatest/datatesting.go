// Package datatest creates data files for tests: valid ones, and files with wrong numbers and correct checksums.
package datatest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/recordio"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/tfrecord"
)

// T is a test, a benchmark, a fuzz test, or one of rapid's.
type T interface {
	Helper()
	Fatal(args ...any)
}

// RecordIO is a file of records.
func RecordIO(t T, o recordio.WriterOptions, records ...[]byte) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := recordio.NewWriter(&file, o)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w, records)
	return file.Bytes()
}

// TFRecord is a file of records.
func TFRecord(t T, c tfrecord.Compression, records ...[]byte) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := tfrecord.NewWriter(&file, c)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w, records)
	return file.Bytes()
}

func write(t T, w interface {
	Write(record []byte) error
	Close() error
}, records [][]byte,
) {
	t.Helper()
	for _, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// RecordIOChunk is a chunk with the given header, which need not match its payload.
func RecordIOChunk(compressor, records uint32, payload []byte) []byte {
	var b []byte
	for _, v := range []uint32{0x01020304, crc32.ChecksumIEEE(payload), compressor, uint32(len(payload)), records} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return append(b, payload...)
}

// TFRecordLength is what stands before a record of so many bytes.
func TFRecordLength(n uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, n)
	sum := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return binary.LittleEndian.AppendUint32(b, (sum>>15|sum<<17)+0xa282ead8)
}

// Gzip compresses a file.
func Gzip(file []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(file) //nolint:errcheck // a buffer
	w.Close()     //nolint:errcheck // a buffer
	return z.Bytes()
}

// Flip is a file with another bit at a byte.
func Flip(file []byte, at int) []byte {
	changed := slices.Clone(file)
	changed[at] ^= 0x10
	return changed
}
