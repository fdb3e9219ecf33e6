// Package idx reads and writes the IDX files of MNIST and Fashion-MNIST: a pair of one file of images (unsigned bytes,
// three or more dimensions) and one of labels (unsigned bytes, one dimension), each plain or gzip-compressed.
// The format is Yann LeCun's: two zero bytes, a type (8 = unsigned byte), the number of dimensions, each dimension as a
// big-endian uint32, and the elements.
//
// A record is one image and its label: the pixels, row by row, followed by one byte of label. Nothing is allocated by a
// number in a file that the file's own size does not bear out, and every error names file and offset.
package idx

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/expand"
)

const (
	unsignedByte  = 0x08
	maxDimensions = 4 // records, height, width, channels
	// maxImageBytes bounds one image: whatever is larger is no IDX file, but something that begins like one.
	maxImageBytes = 64 << 20
	// maxExpansion is what DEFLATE can expand a byte to at most; a gzip file that claims more is lying.
	maxExpansion = 1032
)

// MaxPairBytes is the largest pair whose records are read into memory at once, which gzip-compressed files need.
const MaxPairBytes = 1 << 30

// Errors to match with errors.Is; their messages name file, offset and finding.
var (
	// ErrDamaged is a file that ends early, or late, or does not decompress.
	ErrDamaged = errors.New("the file is damaged or incomplete; copy it again")
	// ErrForeign is a file that is not IDX, or not of images or labels.
	ErrForeign = errors.New("this is not an IDX file of images or labels as MNIST's")
)

// Header is the beginning of an IDX file.
type Header struct {
	Dims []int // the first is the number of records
}

func (h Header) records() int64 { return int64(h.Dims[0]) }

// elementBytes is the size of one record's part.
func (h Header) elementBytes() int64 {
	n := int64(1)
	for _, d := range h.Dims[1:] {
		n *= int64(d)
	}
	return n
}

func (h Header) headerBytes() int64 { return 4 + 4*int64(len(h.Dims)) }

// ReadHeader reads and checks the beginning of an IDX file; name is for messages, offsets count decompressed bytes.
func ReadHeader(r io.Reader, name string) (Header, error) {
	var b [4 + 4*maxDimensions]byte
	if n, err := io.ReadFull(r, b[:4]); err != nil {
		return Header{}, failure(name, int64(n), ErrDamaged, "the header is not whole: %v", err)
	}
	dims := int(b[3])
	switch {
	case b[0] != 0 || b[1] != 0:
		return Header{}, failure(name, 0, ErrForeign, "it begins with % x, and IDX with 00 00", b[:4])
	case b[2] != unsignedByte:
		return Header{}, failure(name, 2, ErrForeign, "element type %#02x; MNIST's is 0x08 (unsigned byte)", b[2])
	case dims < 1 || dims > maxDimensions:
		return Header{}, failure(name, 3, ErrForeign, "%d dimensions; labels have 1 and images 3 or 4", dims)
	}
	if n, err := io.ReadFull(r, b[4:4+4*dims]); err != nil {
		return Header{}, failure(name, int64(4+n), ErrDamaged, "the header is not whole: %v", err)
	}
	h := Header{Dims: make([]int, dims)}
	product := int64(1)
	for i := range h.Dims {
		d := int64(binary.BigEndian.Uint32(b[4+4*i:]))
		if i > 0 && (d == 0 || product > maxImageBytes/d) {
			return Header{}, failure(name, int64(4+4*i), ErrForeign, "dimension %d is %d, which makes no image", i, d)
		}
		if i > 0 {
			product *= d
		}
		h.Dims[i] = int(d)
	}
	return h, nil
}

// AppendHeader appends the beginning of an IDX file of unsigned bytes with these dimensions.
func AppendHeader(b []byte, dims ...int) []byte {
	b = append(b, 0, 0, unsignedByte, byte(len(dims)))
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, uint32(d))
	}
	return b
}

// File is a file wherever it is stored. Name is for messages, and says by its end whether the file is compressed.
type File struct {
	Name string
	Size int64 // as stored
	Open func(ctx context.Context) (Reader, error)
}

// Reader is an open File.
type Reader interface {
	io.ReaderAt
	io.Closer
}

// Pair is a file of images and the file of their labels, checked against each other.
type Pair struct {
	Shape   []int // of an image: height, width and, where there are, channels
	Records int64

	images, labels part
}

// part is one file of a pair.
type part struct {
	File
	header     Header
	compressed bool
}

// OpenPair reads both headers and checks that the files fit each other and are as large as they say (a compressed one:
// could be).
func OpenPair(ctx context.Context, imagesFile, labelsFile File) (*Pair, error) {
	images, err := openPart(ctx, imagesFile)
	if err != nil {
		return nil, err
	}
	labels, err := openPart(ctx, labelsFile)
	if err != nil {
		return nil, err
	}
	switch {
	case len(images.header.Dims) < 3:
		return nil, failure(images.Name, 3, ErrForeign, "%d dimensions where images have 3 or 4", len(images.header.Dims))
	case len(labels.header.Dims) != 1:
		return nil, failure(labels.Name, 3, ErrForeign, "%d dimensions where labels have 1", len(labels.header.Dims))
	case images.header.records() != labels.header.records():
		return nil, fmt.Errorf("data %q holds %d images, and its labels %q are %d: these are not of one data set", images.Name, images.header.records(), labels.Name, labels.header.records())
	}
	return &Pair{Shape: images.header.Dims[1:], Records: images.header.records(), images: images, labels: labels}, nil
}

func openPart(ctx context.Context, file File) (part, error) {
	p := part{File: file, compressed: IsCompressed(file.Name)}
	f, err := file.Open(ctx)
	if err != nil {
		return part{}, err
	}
	defer f.Close() //nolint:errcheck // only read from
	var r io.Reader = io.NewSectionReader(f, 0, 4+4*maxDimensions)
	if p.compressed {
		if r, err = p.decompress(f); err != nil {
			return part{}, err
		}
	}
	if p.header, err = ReadHeader(r, file.Name); err != nil {
		return part{}, err
	}
	need := p.header.headerBytes() + p.header.records()*p.header.elementBytes()
	switch {
	case !p.compressed && need != file.Size:
		return part{}, failure(file.Name, p.header.headerBytes(), ErrDamaged, "%v unsigned bytes need a file of %d bytes, and it has %d", p.header.Dims, need, file.Size)
	case p.compressed && need > MaxPairBytes:
		return part{}, fmt.Errorf("data %q: %v unsigned bytes are more than the %d that are read from a compressed file: decompress it", file.Name, p.header.Dims, MaxPairBytes)
	case p.compressed && need+expand.RecordBytes*p.header.records() > expand.Limit(file.Size) && need/maxExpansion <= file.Size:
		return part{}, fmt.Errorf("data %q: %v unsigned bytes are more than are read from a compressed file of this size, all at once: %s; decompress it",
			file.Name, p.header.Dims, expand.Rule(file.Size))
	case p.compressed && need/maxExpansion > file.Size:
		return part{}, failure(file.Name, 4, ErrDamaged, "%v unsigned bytes cannot come from a compressed file of %d bytes", p.header.Dims, file.Size)
	}
	return p, nil
}

// IsCompressed reports by its name whether a file is gzip-compressed.
func IsCompressed(path string) bool { return strings.HasSuffix(path, ".gz") }

// Compressed reports that reading any record decompresses all before it.
func (p *Pair) Compressed() bool { return p.images.compressed || p.labels.compressed }

// RecordBytes is the size of a record: the pixels and one byte of label.
func (p *Pair) RecordBytes() int { return int(p.images.header.elementBytes()) + 1 }

// Read returns records lo … hi−1, which belong to the caller. When hi is the last record it checks
// that the files end there.
func (p *Pair) Read(ctx context.Context, lo, hi int64) ([][]byte, error) {
	if lo < 0 || lo > hi || hi > p.Records {
		return nil, fmt.Errorf("data %q: records %d to %d of %d", p.images.Name, lo, hi, p.Records)
	}
	pixels := p.RecordBytes() - 1
	if int64(pixels+1) > MaxPairBytes/max(hi-lo, 1) {
		return nil, fmt.Errorf("data %q: %d records of %d bytes are more than %d bytes at once", p.images.Name, hi-lo, pixels+1, MaxPairBytes)
	}
	b := batch{first: lo, count: int(hi - lo), recordBytes: pixels + 1}
	if err := p.images.read(ctx, &b, 0, pixels, hi == p.Records); err != nil {
		return nil, err
	}
	if err := p.labels.read(ctx, &b, pixels, pixels+1, hi == p.Records); err != nil {
		return nil, err
	}
	return b.records, nil
}

// batch is records as they are read. Memory is taken as the images arrive, because a compressed file may hold less than
// it says.
type batch struct {
	first       int64
	count       int
	recordBytes int
	records     [][]byte
	free        []byte
}

// batchBytes is how much memory is taken at once.
const batchBytes = 1 << 20

func (b *batch) record(i int) []byte {
	if i == len(b.records) {
		if len(b.free) < b.recordBytes {
			b.free = make([]byte, b.recordBytes*min(b.count-i, max(1, batchBytes/b.recordBytes)))
		}
		b.records = append(b.records, b.free[:b.recordBytes:b.recordBytes])
		b.free = b.free[b.recordBytes:]
	}
	return b.records[i]
}

// read fills bytes from … to of every record.
func (p part) read(ctx context.Context, b *batch, from, to int, last bool) error {
	first := b.first
	f, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read from
	at := p.header.headerBytes() + first*int64(to-from)
	var r io.Reader
	if p.compressed {
		if r, err = p.decompress(f); err != nil {
			return err
		}
		if n, err := io.CopyN(io.Discard, r, at); err != nil {
			return failure(p.Name, n, ErrDamaged, "it ends before record %d: %v", first, err)
		}
	} else {
		rest := p.Size - at
		r = bufio.NewReaderSize(io.NewSectionReader(f, at, rest), int(min(rest, int64(b.count*(to-from)), readBytes)))
	}
	for i := range b.count {
		if n, err := io.ReadFull(r, b.record(i)[from:to]); err != nil {
			return failure(p.Name, at+int64(n), ErrDamaged, "it ends in record %d of %d: %v", first+int64(i), p.header.records(), err)
		}
		at += int64(to - from)
	}
	if !last {
		return nil
	}
	// Asking for one byte more also verifies gzip's own checksum.
	var more [1]byte
	if n, err := io.ReadFull(r, more[:]); n > 0 || !errors.Is(err, io.EOF) {
		return failure(p.Name, at, ErrDamaged, "it should end here, behind record %d (%d bytes more, %v)", p.header.records()-1, n, err)
	}
	return nil
}

// readBytes is how much is read at once.
const readBytes = 1 << 20

// decompress reads a compressed file from its beginning.
func (p part) decompress(f io.ReaderAt) (io.Reader, error) {
	z, err := gzip.NewReader(bufio.NewReaderSize(io.NewSectionReader(f, 0, p.Size), int(min(p.Size, readBytes))))
	if err != nil {
		return nil, failure(p.Name, 0, ErrDamaged, "its name ends in .gz, and it is not a gzip file: %v", err)
	}
	return z, nil
}

func failure(name string, offset int64, kind error, format string, args ...any) error {
	return fmt.Errorf("data %q: offset %d: %s: %w", name, offset, fmt.Sprintf(format, args...), kind)
}

// LabelsNames are the names under which the labels of an images file are looked for, the likeliest first: "images"
// becomes "labels" and "idx3" (or "idx4") becomes "idx1", with the same or the other compression. No names: the file is
// not named like images.
func LabelsNames(images string) []string {
	if !IsImagesName(images) {
		return nil
	}
	at := strings.LastIndex(images, "images")
	labels := images[:at] + "labels" + images[at+len("images"):]
	labels = strings.NewReplacer("idx3", "idx1", "idx4", "idx1").Replace(labels)
	other := labels + ".gz"
	if IsCompressed(labels) {
		other = strings.TrimSuffix(labels, ".gz")
	}
	return []string{labels, other}
}

// IsImagesName recognizes train-images-idx3-ubyte, t10k-images.idx3-ubyte.gz and their like; name has no directory.
func IsImagesName(name string) bool {
	name = strings.TrimSuffix(name, ".gz")
	return slices.ContainsFunc([]string{"-idx3-ubyte", ".idx3-ubyte", "-idx4-ubyte", ".idx4-ubyte"}, func(end string) bool {
		return strings.HasSuffix(name, "images"+end)
	})
}
