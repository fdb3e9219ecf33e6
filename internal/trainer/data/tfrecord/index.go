package tfrecord

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"sort"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/expand"
)

// chunkBytes is about how much is read together: a range of a few hundred small records, or a few large ones.
const chunkBytes = 256 << 10

// Options say how an index is made.
type Options struct {
	// ReadBytes is how much of a compressed file is read at once. 0 means 1 MiB. Of a plain file, it reads 16 bytes
	// of every record, and r may read ahead for that.
	ReadBytes int
	// WholeBytes is up to which size, decompressed, a compressed file becomes one chunk, so that it is decompressed once
	// as long as that is in memory.
	WholeBytes int64
}

// Chunk is an index entry: records that are read together.
type Chunk struct {
	Offset  int64 // of the first record, decompressed
	Bytes   int64 // of all records with lengths and checksums
	First   int64 // number in the file of the first record
	Records int64
}

// Index is the chunks of a file, in file order.
type Index struct {
	Compression Compression
	Chunks      []Chunk
	// Checksum is SHA-256 over the lengths and stored checksums of all records, in order: it says which records these
	// are without their being read.
	Checksum [sha256.Size]byte

	stored    int64 // bytes of the file
	readBytes int
}

// Records is the number of records in the file.
func (x Index) Records() int64 {
	if len(x.Chunks) == 0 {
		return 0
	}
	last := x.Chunks[len(x.Chunks)-1]
	return last.First + last.Records
}

// Find is the position in Chunks of the chunk that holds record, which must be in [0, Records()).
func (x Index) Find(record int64) int {
	return sort.Search(len(x.Chunks), func(i int) bool { return x.Chunks[i].First+x.Chunks[i].Records > record })
}

// ReadIndex makes the index of a file of size bytes. It verifies the checksums of all lengths; those of the records are
// verified when they are read. name is for messages.
func ReadIndex(r io.ReaderAt, size int64, name string, o Options) (Index, error) {
	o.ReadBytes = cmp.Or(o.ReadBytes, 1<<20)
	compression, err := detect(r, size, name)
	if err != nil {
		return Index{}, err
	}
	index := Index{Compression: compression, stored: size, readBytes: o.ReadBytes}
	if compression == None {
		return index, index.scan(&seeker{r: r, size: size}, chunkBytes, name)
	}
	stream, err := index.stream(r, name)
	if err != nil {
		return Index{}, err
	}
	if err := index.scan(&skipper{stream: stream}, chunkBytes, name); err != nil {
		return Index{}, err
	}
	if n := len(index.Chunks); n > 1 {
		last := index.Chunks[n-1]
		if total := last.Offset + last.Bytes; total <= min(o.WholeBytes, expand.Limit(size)) && index.Records() <= expand.Records(size) {
			index.Chunks = []Chunk{{Bytes: total, Records: index.Records()}}
		}
	}
	return index, nil
}

// stream reads a compressed file from its beginning.
func (x *Index) stream(r io.ReaderAt, name string) (io.Reader, error) {
	return decompress(bufio.NewReaderSize(io.NewSectionReader(r, 0, x.stored), int(min(int64(x.readBytes), max(x.stored, 16)))), x.Compression, name)
}

// forward reads a file from front to back, skipping what is not needed. Both return io.EOF at the end, and
// io.ErrUnexpectedEOF where the file ends within the requested range.
type forward interface {
	read(b []byte) error
	skip(n int64) error
}

// scan goes from record to record.
func (x *Index) scan(f forward, limit int64, name string) error {
	var chunk Chunk
	var header [headerBytes]byte
	var footer [footerBytes]byte
	checksums := sha256.New()
	for offset := int64(0); ; {
		switch err := f.read(header[:]); {
		case errors.Is(err, io.EOF):
			if chunk.Records > 0 {
				x.Chunks = append(x.Chunks, chunk)
			}
			checksums.Sum(x.Checksum[:0])
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return failure(name, offset, ErrDamaged, "the file ends within its length")
		case err != nil:
			return x.readError(name, offset, err)
		}
		length, err := parseLength(header[:], offset, name)
		if err != nil {
			return err
		}
		if x.Compression != None && length > expand.Limit(x.stored) {
			return failure(name, offset, ErrTooLarge, "it has %d bytes when it is decompressed (%s); %s", length, x.Compression, expand.Rule(x.stored))
		}
		err = f.skip(length)
		if err == nil {
			err = f.read(footer[:])
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return failure(name, offset, ErrDamaged, "the file ends within its %d bytes", length)
		case err != nil:
			return x.readError(name, offset, err)
		}
		checksums.Write(header[:])
		checksums.Write(footer[:])
		bytes := headerBytes + length + footerBytes
		if chunk.Records > 0 && chunk.Bytes+bytes > limit {
			x.Chunks = append(x.Chunks, chunk)
			chunk = Chunk{Offset: offset, First: chunk.First + chunk.Records}
		}
		chunk.Bytes += bytes
		chunk.Records++
		offset += bytes
	}
}

func (x *Index) readError(name string, offset int64, err error) error {
	if x.Compression != None {
		return failure(name, offset, ErrDamaged, "decompressing (%s): %v", x.Compression, err)
	}
	return failure(name, offset, err, "reading it")
}

// seeker reads the requested ranges, and skips the rest.
type seeker struct {
	r      io.ReaderAt
	size   int64
	offset int64 // of the next byte

	near   [footerBytes + headerBytes]byte // a record's checksum and the next one's length are read together
	nearAt int64
	nearBy int // bytes of near that are read
}

func (h *seeker) read(b []byte) error {
	switch rest := h.size - h.offset; {
	case rest == 0:
		return io.EOF
	case rest < int64(len(b)):
		return io.ErrUnexpectedEOF
	}
	if from := h.offset - h.nearAt; from < 0 || from+int64(len(b)) > int64(h.nearBy) {
		want := min(int64(len(h.near)), h.size-h.offset)
		n, err := h.r.ReadAt(h.near[:want], h.offset)
		if n < len(b) {
			return errors.Join(ErrChanged, err)
		}
		h.nearAt, h.nearBy = h.offset, n
	}
	copy(b, h.near[h.offset-h.nearAt:])
	h.offset += int64(len(b))
	return nil
}

func (h *seeker) skip(n int64) error {
	if n > h.size-h.offset {
		return io.ErrUnexpectedEOF
	}
	h.offset += n
	return nil
}

// skipper decompresses everything.
type skipper struct{ stream io.Reader }

func (s *skipper) read(b []byte) error {
	_, err := io.ReadFull(s.stream, b)
	return err
}

func (s *skipper) skip(n int64) error {
	_, err := io.CopyN(io.Discard, s.stream, n)
	return err
}
