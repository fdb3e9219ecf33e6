// Package recordio reads and writes RecordIO files in the layout of github.com/wangkuiyi/recordio and
// PaddlePaddle/recordio, which is what ElasticDL's Python package pyrecordio (0.0.6 and later) wraps.
//
// A file is chunks back to back, without a header, footer or index of its own. A chunk is a header of five
// little-endian uint32 (magic, CRC-32 IEEE of the compressed payload, compressor, size of the compressed payload,
// number of records) and a payload: per record a little-endian uint32 length and the bytes. An empty record is legal.
//
// Reading never trusts a number in a file: an index entry is made only for a chunk that lies inside the file, and a
// payload is decompressed only after its checksum matched and only up to a limit. Every error names file and offset.
// Opening files, caching chunks and decoding records is left to package data.
package recordio

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	magic       = 0x01020304
	headerBytes = 20
	lengthBytes = 4 // in front of every record
)

// DefaultMaxChunkBytes is the writer's default limit of a chunk's record bytes, as upstream's.
const DefaultMaxChunkBytes = 32 << 20

// MaxDecodedChunkBytes is the largest payload, compressed or not, that Read accepts: sixteen times upstream's default
// chunk. Of a compressed one it also accepts no more than expand.Limit.
const MaxDecodedChunkBytes = 512 << 20

// Errors to match with errors.Is; their messages name file, offset and finding.
var (
	// ErrDamaged is a file that was RecordIO and is not whole any more.
	ErrDamaged = errors.New("the file is damaged or incomplete; copy it again")
	// ErrForeign is a file in another format or in an incompatible layout.
	ErrForeign = errors.New("this is not a RecordIO file that can be read here")
	// ErrTooLarge is a chunk beyond MaxDecodedChunkBytes.
	ErrTooLarge = errors.New("the chunk is too large; write the file again with smaller chunks (data convert --records-per-chunk)")
	// ErrChanged is a chunk that is not the one that was indexed.
	ErrChanged = errors.New("the file was changed while it was in use; data must stay as it is during a run")
)

// Compressor defines how a chunk's payload is compressed.
type Compressor uint32

// The compressors of the layout.
const (
	None   Compressor = 0
	Snappy Compressor = 1 // the framing (stream) format, not a raw block
	Gzip   Compressor = 2
)

// String is the compressor's name in flags and tables.
func (c Compressor) String() string {
	switch c {
	case None:
		return "none"
	case Snappy:
		return "snappy"
	case Gzip:
		return "gzip"
	default:
		return fmt.Sprintf("compressor %d", uint32(c))
	}
}

// Chunk is an index entry: where a chunk is and what its header says.
type Chunk struct {
	Offset       int64 // of the header in the file
	Checksum     uint32
	Compressor   Compressor
	PayloadBytes uint32 // as stored
	Records      uint32
	First        int64 // number in the file of the chunk's first record
}

func (c Chunk) payloadOffset() int64 { return c.Offset + headerBytes }

func (c Chunk) end() int64 { return c.payloadOffset() + int64(c.PayloadBytes) }

func (c Chunk) header() (h [headerBytes]byte) {
	binary.LittleEndian.PutUint32(h[0:], magic)
	binary.LittleEndian.PutUint32(h[4:], c.Checksum)
	binary.LittleEndian.PutUint32(h[8:], uint32(c.Compressor))
	binary.LittleEndian.PutUint32(h[12:], c.PayloadBytes)
	binary.LittleEndian.PutUint32(h[16:], c.Records)
	return h
}

func parseHeader(h []byte, offset int64) (Chunk, bool) {
	return Chunk{
		Offset:       offset,
		Checksum:     binary.LittleEndian.Uint32(h[4:]),
		Compressor:   Compressor(binary.LittleEndian.Uint32(h[8:])),
		PayloadBytes: binary.LittleEndian.Uint32(h[12:]),
		Records:      binary.LittleEndian.Uint32(h[16:]),
	}, binary.LittleEndian.Uint32(h[0:]) == magic
}

// failure is an error about one chunk: kind is one of the sentinels above.
func failure(name string, offset int64, kind error, format string, args ...any) error {
	return fmt.Errorf("data %q: chunk at offset %d: %s: %w", name, offset, fmt.Sprintf(format, args...), kind)
}
