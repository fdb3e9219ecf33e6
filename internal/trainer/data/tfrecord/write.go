package tfrecord

import (
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Writer writes records to an io.Writer. Close must be called; it does not close the io.Writer.
type Writer struct {
	w          io.Writer
	compressor io.Closer // nil for a plain file
	err        error
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer, c Compression) (*Writer, error) {
	switch c {
	case None:
		return &Writer{w: w}, nil
	case Gzip:
		z := gzip.NewWriter(w)
		return &Writer{w: z, compressor: z}, nil
	case Zlib:
		z := zlib.NewWriter(w)
		return &Writer{w: z, compressor: z}, nil
	default:
		return nil, fmt.Errorf("writing TFRecord: compression %d is not one of none, gzip, zlib", c)
	}
}

// Write adds a record, which may be empty. After an error the file is not whole, and every further call returns it.
func (w *Writer) Write(record []byte) error {
	if w.err != nil {
		return w.err
	}
	if len(record) > MaxRecordBytes {
		return fmt.Errorf("writing TFRecord: a record of %d bytes; at most %d can be read back", len(record), MaxRecordBytes)
	}
	header := binary.LittleEndian.AppendUint64(make([]byte, 0, headerBytes), uint64(len(record)))
	header = binary.LittleEndian.AppendUint32(header, masked(header))
	footer := binary.LittleEndian.AppendUint32(nil, masked(record))
	for _, part := range [][]byte{header, record, footer} {
		if _, err := w.w.Write(part); err != nil {
			w.err = fmt.Errorf("writing a TFRecord record of %d bytes: %w", len(record), err)
			return w.err
		}
	}
	return nil
}

// Close ends the file. The Writer takes no more records.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	w.err = errors.New("writing TFRecord: the writer is closed")
	if w.compressor == nil {
		return nil
	}
	if err := w.compressor.Close(); err != nil {
		return fmt.Errorf("writing TFRecord: %w", err)
	}
	return nil
}
