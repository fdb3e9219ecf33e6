package recordio

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/golang/snappy"
)

// WriterOptions say when a chunk ends and how it is compressed.
type WriterOptions struct {
	// MaxChunkBytes ends a chunk before its record bytes (lengths not counted) would exceed it; a record larger than it
	// gets a chunk of its own. 0 means DefaultMaxChunkBytes.
	MaxChunkBytes int
	// MaxChunkRecords ends a chunk after that many records; 0 means no such limit. One range of records per chunk makes
	// random access cheap.
	MaxChunkRecords int
	// Compressor of every chunk. The zero value is None; upstream's default is Snappy.
	Compressor Compressor
}

// Writer writes records in chunks to an io.Writer. Close must be called; it does not close the io.Writer.
type Writer struct {
	w           io.Writer
	options     WriterOptions
	payload     []byte
	recordBytes int
	records     uint32
	compressed  bytes.Buffer
	err         error
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer, options WriterOptions) (*Writer, error) {
	if options.Compressor > Gzip {
		return nil, fmt.Errorf("writing RecordIO: %s is not one of none, snappy, gzip", options.Compressor)
	}
	if options.MaxChunkBytes < 0 || options.MaxChunkBytes > MaxDecodedChunkBytes {
		return nil, fmt.Errorf("writing RecordIO: chunks of %d bytes; use 1 to %d, or 0 for %d", options.MaxChunkBytes, MaxDecodedChunkBytes, DefaultMaxChunkBytes)
	}
	if options.MaxChunkRecords < 0 || int64(options.MaxChunkRecords) > math.MaxUint32 {
		return nil, fmt.Errorf("writing RecordIO: chunks of %d records; use a positive number, or 0 for no limit", options.MaxChunkRecords)
	}
	options.MaxChunkBytes = cmp.Or(options.MaxChunkBytes, DefaultMaxChunkBytes)
	return &Writer{w: w, options: options}, nil
}

// Write adds a record, which may be empty. After an error the file is not whole, and every further call returns it.
func (w *Writer) Write(record []byte) error {
	if w.err != nil {
		return w.err
	}
	if len(record) > MaxDecodedChunkBytes-lengthBytes {
		return fmt.Errorf("writing RecordIO: a record of %d bytes; at most %d can be read back", len(record), MaxDecodedChunkBytes-lengthBytes)
	}
	full := w.recordBytes+len(record) > w.options.MaxChunkBytes ||
		w.options.MaxChunkRecords > 0 && w.records >= uint32(w.options.MaxChunkRecords) ||
		// Many empty records: the lengths alone could outgrow what is read back.
		len(w.payload)+lengthBytes+len(record) > MaxDecodedChunkBytes
	if full {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.payload = binary.LittleEndian.AppendUint32(w.payload, uint32(len(record)))
	w.payload = append(w.payload, record...)
	w.recordBytes += len(record)
	w.records++
	return nil
}

// Close writes the last chunk. The Writer takes no more records.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	err := w.flush()
	if w.err == nil {
		w.err = errors.New("writing RecordIO: the writer is closed")
	}
	return err
}

// flush writes the chunk that was collected; without a record there is none.
func (w *Writer) flush() error {
	if w.records == 0 {
		return nil
	}
	stored, err := w.compress()
	if err == nil && len(stored) > MaxDecodedChunkBytes {
		err = fmt.Errorf("a chunk of %d bytes; at most %d can be read back", len(stored), MaxDecodedChunkBytes)
	}
	if err == nil {
		chunk := Chunk{
			Checksum:     crc32.ChecksumIEEE(stored),
			Compressor:   w.options.Compressor,
			PayloadBytes: uint32(len(stored)),
			Records:      w.records,
		}
		h := chunk.header()
		if _, err = w.w.Write(h[:]); err == nil {
			_, err = w.w.Write(stored)
		}
	}
	if err != nil {
		w.err = fmt.Errorf("writing a RecordIO chunk of %d records: %w", w.records, err)
		return w.err
	}
	w.payload, w.recordBytes, w.records = w.payload[:0], 0, 0
	return nil
}

func (w *Writer) compress() ([]byte, error) {
	w.compressed.Reset()
	var compressor io.WriteCloser
	switch w.options.Compressor {
	case Snappy:
		compressor = snappy.NewBufferedWriter(&w.compressed)
	case Gzip:
		compressor = gzip.NewWriter(&w.compressed)
	default:
		return w.payload, nil
	}
	if _, err := compressor.Write(w.payload); err != nil {
		return nil, err
	}
	if err := compressor.Close(); err != nil {
		return nil, err
	}
	return w.compressed.Bytes(), nil
}
