package tfrecord

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Read returns a chunk's records: slices of one buffer that belongs to the caller. r is the file that the index was
// made of and name its name in messages. All checksums are verified.
func (x Index) Read(r io.ReaderAt, chunk int, name string) ([][]byte, error) {
	c := x.Chunks[chunk]
	text, err := x.text(r, c.Offset, c.Bytes, name)
	if err != nil {
		return nil, err
	}
	records := make([][]byte, 0, c.Records)
	for at := int64(0); at < c.Bytes; {
		record, err := split(text[at:], c.Offset+at, name)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
		at += headerBytes + int64(len(record)) + footerBytes
	}
	if int64(len(records)) != c.Records {
		return nil, failure(name, c.Offset, ErrChanged, "%d records from here on, and there were %d", len(records), c.Records)
	}
	return records, nil
}

// FirstRecord returns the first record and reads no more than that needs.
func (x Index) FirstRecord(r io.ReaderAt, name string) ([]byte, error) {
	header, err := x.text(r, 0, headerBytes, name)
	if err != nil {
		return nil, err
	}
	length, err := parseLength(header, 0, name)
	if err != nil {
		return nil, err
	}
	text, err := x.text(r, 0, headerBytes+length+footerBytes, name)
	if err != nil {
		return nil, err
	}
	return split(text, 0, name)
}

// split takes the record off the front of text, which is at offset.
func split(text []byte, offset int64, name string) ([]byte, error) {
	if len(text) < headerBytes+footerBytes {
		return nil, failure(name, offset, ErrChanged, "a record began elsewhere")
	}
	length, err := parseLength(text, offset, name)
	if err != nil {
		return nil, err
	}
	end := headerBytes + length
	if end+footerBytes > int64(len(text)) {
		return nil, failure(name, offset, ErrChanged, "it has %d bytes, and had less", length)
	}
	record := text[headerBytes:end:end]
	if sum := binary.LittleEndian.Uint32(text[end:]); masked(record) != sum {
		return nil, failure(name, offset, ErrDamaged, "the checksum of its %d bytes is %08x, and %08x is stored", length, masked(record), sum)
	}
	return record, nil
}

// text is n bytes from offset on, decompressed. Memory grows with what arrives where n is not known to be there.
func (x Index) text(r io.ReaderAt, offset, n int64, name string) ([]byte, error) {
	if x.Compression == None {
		if offset+n > x.stored {
			return nil, failure(name, offset, ErrChanged, "it ends behind the file's %d bytes", x.stored)
		}
		text := make([]byte, n)
		if got, err := r.ReadAt(text, offset); int64(got) < n {
			if errors.Is(err, io.EOF) {
				return nil, failure(name, offset, ErrChanged, "%d of %d bytes are left", got, n)
			}
			return nil, fmt.Errorf("data %q: reading %d bytes at offset %d: %w", name, n, offset, err)
		}
		return text, nil
	}
	stream, err := x.stream(r, name)
	if err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, stream, offset); err != nil {
		return nil, failure(name, offset, ErrDamaged, "decompressing (%s) what is before it: %v", x.Compression, err)
	}
	var text bytes.Buffer
	if got, err := io.CopyN(&text, stream, n); err != nil {
		return nil, failure(name, offset+got, ErrDamaged, "decompressing (%s): %v", x.Compression, err)
	}
	return text.Bytes(), nil
}
