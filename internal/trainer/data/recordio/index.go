package recordio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sort"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/expand"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/tfrecord"
)

// Index is the chunks of a file, in file order.
type Index struct {
	Chunks []Chunk
}

// ReadIndex makes the index of a file of size bytes by hopping over its chunk headers: it reads 20 bytes per chunk and
// no payload. name is for messages. A file that ends inside a chunk, or holds anything but chunks, is refused.
func ReadIndex(r io.ReaderAt, size int64, name string) (Index, error) {
	var index Index
	var first int64
	for offset := int64(0); offset < size; {
		var h [headerBytes]byte
		n, err := r.ReadAt(h[:min(headerBytes, size-offset)], offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return Index{}, fmt.Errorf("data %q: reading the chunk header at offset %d: %w", name, offset, err)
		}
		chunk, isMagic := parseHeader(h[:], offset)
		switch {
		case !isMagic && offset == 0:
			return Index{}, failure(name, offset, ErrForeign, "it begins with % x, and RecordIO with 04 03 02 01%s", h[:min(n, 4)], otherFormat(h[:n]))
		case n < headerBytes:
			return Index{}, failure(name, offset, ErrDamaged, "the file ends %d bytes into the 20-byte header", n)
		case !isMagic:
			return Index{}, failure(name, offset, ErrDamaged, "found % x where a chunk should begin with 04 03 02 01", h[:4])
		}
		if err := chunk.check(size, name); err != nil {
			if isPyRecordIO2(r, h, offset, size) {
				return Index{}, pyRecordIO2Error(name, offset)
			}
			return Index{}, err
		}
		chunk.First = first
		first += int64(chunk.Records)
		offset = chunk.end()
		index.Chunks = append(index.Chunks, chunk)
	}
	return index, nil
}

// check refuses a header that cannot be true in a file of size bytes.
func (c Chunk) check(size int64, name string) error {
	switch {
	case c.Compressor > Gzip:
		return failure(name, c.Offset, ErrDamaged, "compressor %d is none of 0 (none), 1 (snappy), 2 (gzip)", uint32(c.Compressor))
	case c.end() > size:
		return failure(name, c.Offset, ErrDamaged, "its payload of %d bytes ends at %d, and the file at %d", c.PayloadBytes, c.end(), size)
	case c.PayloadBytes > MaxDecodedChunkBytes:
		return failure(name, c.Offset, ErrTooLarge, "its payload has %d bytes, and at most %d are read", c.PayloadBytes, MaxDecodedChunkBytes)
	case int64(c.Records)*lengthBytes > c.maxDecodedBytes():
		return failure(name, c.Offset, ErrDamaged, "its %d payload bytes (%s) cannot hold the %d records that its header states", c.PayloadBytes, c.Compressor, c.Records)
	case int64(c.Records) > expand.Records(int64(c.PayloadBytes)):
		return failure(name, c.Offset, ErrTooLarge, "its %d payload bytes hold %d records, and at most %d are read from them",
			c.PayloadBytes, c.Records, expand.Records(int64(c.PayloadBytes)))
	}
	return nil
}

// maxDecodedBytes bounds the decompressed payload by what the stored bytes can expand to (DEFLATE stays below 1032 to
// 1, and a snappy copy of at most 64 bytes takes at least two, the stream's own chunk headers on top), and by what they
// may.
func (c Chunk) maxDecodedBytes() int64 {
	stored := int64(c.PayloadBytes)
	most := stored
	switch c.Compressor {
	case Snappy:
		most = min(32*stored, expand.Limit(stored))
	case Gzip:
		most = min(1032*stored, expand.Limit(stored))
	}
	return min(most, MaxDecodedChunkBytes)
}

// Records is the number of records in the file.
func (x Index) Records() int64 {
	if len(x.Chunks) == 0 {
		return 0
	}
	last := x.Chunks[len(x.Chunks)-1]
	return last.First + int64(last.Records)
}

// Find is the position in Chunks of the chunk that holds record, which must be in [0, Records()).
func (x Index) Find(record int64) int {
	return sort.Search(len(x.Chunks), func(i int) bool {
		return x.Chunks[i].First+int64(x.Chunks[i].Records) > record
	})
}

// isPyRecordIO2 recognizes the layout of elasticdl/pyrecordio v0.0.2, another project with the same magic: magic,
// number of records, CRC-32C, compressor 1…3, payload size. Its checksum has to match, so there is no false alarm.
func isPyRecordIO2(r io.ReaderAt, h [headerBytes]byte, offset, size int64) bool {
	compressor, payload := binary.LittleEndian.Uint32(h[12:]), int64(binary.LittleEndian.Uint32(h[16:]))
	if compressor < 1 || compressor > 3 || offset+headerBytes+payload > size {
		return false
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if _, err := io.Copy(sum, io.NewSectionReader(r, offset+headerBytes, payload)); err != nil {
		return false
	}
	return sum.Sum32() == binary.LittleEndian.Uint32(h[8:])
}

func pyRecordIO2Error(name string, offset int64) error {
	return failure(name, offset, ErrForeign, "the header is in the layout of elasticdl/pyrecordio v0.0.2 (magic, records, CRC-32C, compressor, size), which shares "+
		"the magic and nothing else; write the file again with pyrecordio 0.0.6 or later, or another writer of the wangkuiyi/recordio layout")
}

// otherFormat names a well-known format from a file's first 20 bytes, as the end of a sentence.
func otherFormat(h []byte) string {
	switch {
	case bytes.HasPrefix(h, []byte{0x1f, 0x8b}):
		return " (this is a gzip file: decompress it, or set format = \"idx\" if it is one of MNIST's)"
	case len(h) >= 4 && h[0] == 0 && h[1] == 0 && h[2] == 8 && h[3] >= 1 && h[3] <= 4:
		return " (this looks like MNIST's IDX: set format = \"idx\")"
	case tfrecord.Begins(h):
		return " (this is a TFRecord file: set format = \"tfrecord\")"
	default:
		return ""
	}
}
