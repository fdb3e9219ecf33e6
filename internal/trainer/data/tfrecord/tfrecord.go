// Package tfrecord reads and writes TFRecord files (tensorflow/core/lib/io/record_writer.h): records back to back, each
// a little-endian uint64 length, a checksum of it, the bytes, and a checksum of them. The checksums are CRC-32C,
// masked. A file may be compressed as a whole, with GZIP or ZLIB (TensorFlow's compression_type).
//
// Reading never trusts a number in a file. The index of a plain file is made by hopping from length to length. In a
// compressed file there is no way into the middle: its index is made by decompressing all of it once, and reading a
// chunk decompresses all before that chunk, unless the whole file is one chunk. Memory is bounded in both. Every error
// names file and offset, which counts decompressed bytes.
package tfrecord

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	lengthBytes = 8
	headerBytes = lengthBytes + 4 // and its checksum
	footerBytes = 4               // the record's checksum
)

// MaxRecordBytes is the largest record that is read or written.
const MaxRecordBytes = 512 << 20

// Errors to match with errors.Is; their messages name file, offset and finding.
var (
	// ErrDamaged is a file that was TFRecord and is not whole any more.
	ErrDamaged = errors.New("the file is damaged or incomplete; copy it again")
	// ErrForeign is a file in another format.
	ErrForeign = errors.New("this is not a TFRecord file")
	// ErrTooLarge is a record beyond MaxRecordBytes.
	ErrTooLarge = errors.New("the record is too large to be read")
	// ErrChanged is a record that is not where it was.
	ErrChanged = errors.New("the file was changed while it was in use; data must stay as it is during a run")
)

// Compression is of a whole file.
type Compression uint8

// TensorFlow's compression types.
const (
	None Compression = iota
	Gzip
	Zlib
)

// String is the compression's name in flags and tables.
func (c Compression) String() string { return [...]string{"none", "gzip", "zlib"}[c] }

// Begins recognizes a plain TFRecord file by its first 12 bytes: the checksum of a length has to match, so there is no
// false alarm.
func Begins(b []byte) bool {
	return len(b) >= headerBytes && masked(b[:lengthBytes]) == binary.LittleEndian.Uint32(b[lengthBytes:])
}

// detect finds out how a file is compressed. A plain file is recognized first, because a length may look like a header
// of zlib.
func detect(r io.ReaderAt, size int64, name string) (Compression, error) {
	begin := make([]byte, min(size, headerBytes))
	if n, err := r.ReadAt(begin, 0); n < len(begin) {
		return None, fmt.Errorf("data %q: reading its first %d bytes: %w", name, len(begin), err)
	}
	switch {
	case Begins(begin):
		return None, nil
	case bytes.HasPrefix(begin, []byte{0x1f, 0x8b}):
		return Gzip, nil
	case len(begin) >= 2 && begin[0]&0x0f == 8 && begin[0] <= 0x78 && binary.BigEndian.Uint16(begin)%31 == 0: // RFC 1950
		return Zlib, nil
	case bytes.HasPrefix(begin, []byte{4, 3, 2, 1}):
		return None, failure(name, 0, ErrForeign, `it begins with 04 03 02 01, as RecordIO does: set format = "recordio"`)
	case len(begin) < headerBytes:
		return None, failure(name, 0, ErrForeign, "it has %d bytes, and the shortest record 16", len(begin))
	default:
		return None, failure(name, 0, ErrForeign, "it begins with % x, which is neither a length with its checksum nor gzip nor zlib", begin)
	}
}

// decompress reads a compressed file from its beginning.
func decompress(r io.Reader, c Compression, name string) (stream io.Reader, err error) {
	if c == Gzip {
		stream, err = gzip.NewReader(r)
	} else {
		stream, err = zlib.NewReader(r)
	}
	if err != nil {
		return nil, failure(name, 0, ErrDamaged, "it does not begin as %s does: %v", c, err)
	}
	return stream, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the checksum of b as it is stored: TensorFlow rotates and shifts it, because a CRC of bytes with CRCs in
// them is a poor one.
func masked(b []byte) uint32 {
	sum := crc32.Checksum(b, castagnoli)
	return (sum>>15 | sum<<17) + 0xa282ead8
}

// parseLength reads the beginning of the record at offset.
func parseLength(h []byte, offset int64, name string) (int64, error) {
	if sum := binary.LittleEndian.Uint32(h[lengthBytes:]); masked(h[:lengthBytes]) != sum {
		return 0, failure(name, offset, ErrDamaged, "the checksum of its length is %08x, and %08x is stored", masked(h[:lengthBytes]), sum)
	}
	length := binary.LittleEndian.Uint64(h)
	if length > MaxRecordBytes {
		return 0, failure(name, offset, ErrTooLarge, "it has %d bytes, and at most %d are read", length, MaxRecordBytes)
	}
	return int64(length), nil
}

func failure(name string, offset int64, kind error, format string, args ...any) error {
	return fmt.Errorf("data %q: record at offset %d: %s: %w", name, offset, fmt.Sprintf(format, args...), kind)
}
