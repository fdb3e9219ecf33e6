package recordio

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/golang/snappy"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/expand"
)

// Read returns the chunk's records: slices of one buffer that belongs to the caller. r is the file that the index was
// made of and name its name in messages. The header is read again and compared, and the checksum is verified before
// anything is decompressed.
func (c Chunk) Read(r io.ReaderAt, name string) ([][]byte, error) {
	stored := make([]byte, headerBytes+int64(c.PayloadBytes))
	if n, err := r.ReadAt(stored, c.Offset); n < len(stored) {
		if errors.Is(err, io.EOF) {
			return nil, failure(name, c.Offset, ErrChanged, "%d of %d bytes are left", n, len(stored))
		}
		return nil, fmt.Errorf("data %q: reading the chunk at offset %d: %w", name, c.Offset, err)
	}
	if h := c.header(); !bytes.Equal(h[:], stored[:headerBytes]) {
		return nil, failure(name, c.Offset, ErrChanged, "its header is not the one that was there when the file was opened")
	}
	payload := stored[headerBytes:]
	if sum := crc32.ChecksumIEEE(payload); sum != c.Checksum {
		return nil, failure(name, c.Offset, ErrDamaged, "checksum %08x of its payload does not match %08x in its header", sum, c.Checksum)
	}
	decoded, err := c.decompress(payload, name)
	if err != nil {
		return nil, err
	}
	return c.split(decoded, name)
}

// FirstRecord returns the chunk's first record and reads no more of the payload than that needs. The checksum is not
// verified, so an answer may only be used to recognize what is in the file. A chunk without records gives nil.
func (c Chunk) FirstRecord(r io.ReaderAt, name string) ([]byte, error) {
	if c.Records == 0 {
		return nil, nil
	}
	payload, err := c.reader(io.NewSectionReader(r, c.payloadOffset(), int64(c.PayloadBytes)))
	if err != nil {
		return nil, failure(name, c.Offset, ErrDamaged, "its %s payload does not begin as one: %v", c.Compressor, err)
	}
	var length [lengthBytes]byte
	if _, err := io.ReadFull(payload, length[:]); err != nil {
		return nil, failure(name, c.Offset, ErrDamaged, "decompressing (%s) the first record's length: %v", c.Compressor, err)
	}
	size := int64(binary.LittleEndian.Uint32(length[:]))
	if size > c.maxDecodedBytes()-lengthBytes {
		return nil, failure(name, c.Offset, ErrDamaged, "record 0 states a length of %d bytes, more than the chunk can hold", size)
	}
	// bytes.Buffer grows with what arrives, so that a wrong length costs no more than the file holds.
	var record bytes.Buffer
	if _, err := io.CopyN(&record, payload, size); err != nil {
		return nil, failure(name, c.Offset, ErrDamaged, "decompressing (%s) the first record of %d bytes: %v", c.Compressor, size, err)
	}
	return record.Bytes(), nil
}

func (c Chunk) reader(stored io.Reader) (io.Reader, error) {
	switch c.Compressor {
	case Snappy:
		return snappy.NewReader(stored), nil
	case Gzip:
		return gzip.NewReader(stored)
	default:
		return stored, nil
	}
}

func (c Chunk) decompress(payload []byte, name string) ([]byte, error) {
	if c.Compressor == None {
		return payload, nil
	}
	r, err := c.reader(bytes.NewReader(payload))
	if err != nil {
		return nil, failure(name, c.Offset, ErrDamaged, "its %s payload does not begin as one: %v", c.Compressor, err)
	}
	limit := c.maxDecodedBytes()
	// A lie costs no more memory than a few times what was read; a chunk that is smaller still grows into it.
	decoded := make([]byte, 0, min(c.decodedBytesHint(payload), limit, 16*int64(len(payload))+bytes.MinRead))
	for {
		if len(decoded) == cap(decoded) {
			var one [1]byte // a right hint ends here, without growing the buffer for nothing
			n, err := io.ReadFull(r, one[:])
			if n == 0 && errors.Is(err, io.EOF) {
				return decoded, nil
			}
			if err != nil {
				return nil, failure(name, c.Offset, ErrDamaged, "decompressing (%s) after %d bytes: %v", c.Compressor, len(decoded), err)
			}
			decoded = append(slices.Grow(decoded, int(min(int64(len(decoded)), limit-int64(len(decoded))))+1), one[0])
		}
		n, err := r.Read(decoded[len(decoded):cap(decoded)])
		decoded = decoded[:len(decoded)+n]
		switch {
		case int64(len(decoded)) > limit:
			return nil, failure(name, c.Offset, ErrTooLarge, "its %d bytes (%s) decompress to more than %d; %s", len(payload), c.Compressor, limit, expand.Rule(int64(len(payload))))
		case errors.Is(err, io.EOF):
			return decoded, nil
		case err != nil:
			return nil, failure(name, c.Offset, ErrDamaged, "decompressing (%s) after %d bytes: %v", c.Compressor, len(decoded), err)
		}
	}
}

// decodedBytesHint guesses the decompressed size, so that a chunk is usually decompressed into a buffer of its own
// size. It is only a hint: the caller bounds it and grows the buffer when it is wrong.
func (c Chunk) decodedBytesHint(payload []byte) int64 {
	switch c.Compressor {
	case Gzip: // ISIZE, the last four bytes of a member (RFC 1952)
		if len(payload) >= 4 {
			return int64(binary.LittleEndian.Uint32(payload[len(payload)-4:]))
		}
	case Snappy: // frames: type, 24-bit length, and for data a 32-bit checksum in front
		var sum int64
		for len(payload) >= 8 {
			length := int(payload[1]) | int(payload[2])<<8 | int(payload[3])<<16
			if length < 4 || 4+length > len(payload) {
				break
			}
			switch body := payload[8 : 4+length]; payload[0] {
			case 0x00:
				if n, err := snappy.DecodedLen(body); err == nil {
					sum += int64(n)
				}
			case 0x01:
				sum += int64(len(body))
			}
			payload = payload[4+length:]
		}
		return sum
	}
	return 0
}

// split cuts a decompressed payload into its records.
func (c Chunk) split(decoded []byte, name string) ([][]byte, error) {
	if int64(c.Records)*lengthBytes > int64(len(decoded)) {
		return nil, failure(name, c.Offset, ErrDamaged, "its header states %d records, and its %d decompressed bytes cannot hold them", c.Records, len(decoded))
	}
	records := make([][]byte, c.Records)
	at := 0
	for i := range records {
		if len(decoded)-at < lengthBytes {
			return nil, failure(name, c.Offset, ErrDamaged, "record %d of %d: its length is missing at byte %d of the decompressed payload", i, c.Records, at)
		}
		size := int64(binary.LittleEndian.Uint32(decoded[at:]))
		at += lengthBytes
		if size > int64(len(decoded)-at) {
			return nil, failure(name, c.Offset, ErrDamaged, "record %d of %d: %d bytes at byte %d do not fit the decompressed payload of %d", i, c.Records, size, at, len(decoded))
		}
		records[i] = decoded[at : at+int(size) : at+int(size)]
		at += int(size)
	}
	if at != len(decoded) {
		return nil, failure(name, c.Offset, ErrDamaged, "%d bytes are left behind its %d records", len(decoded)-at, c.Records)
	}
	return records, nil
}
