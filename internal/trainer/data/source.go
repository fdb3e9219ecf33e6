package data

import (
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/idx"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/recordio"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/synth"
)

// source is one file (or pair, or generator) of a data set: records in chunks that are read as a whole.
type source interface {
	records() int64
	bytes() int64
	// chunkOf returns the position of the chunk that holds record, and first returns the number of a chunk's first record.
	chunkOf(record int64) int
	first(chunk int) int64
	load(chunk int) ([][]byte, error)
	// firstRecord is the first record as the codec reads it, as cheaply as it can be had.
	firstRecord() ([]byte, error)
	layout() Layout
	// identify writes what the fingerprint holds besides path, size and number of records.
	identify(w hash.Hash) error
}

// recordioFile is a RecordIO file with its index. The file is opened for every chunk that is read, so that a data set
// of many files needs no file descriptors, and its stamp is compared each time.
type recordioFile struct {
	entry
	index recordio.Index
}

func openRecordIO(e entry) (*recordioFile, error) {
	f, err := os.Open(e.absolute)
	if err != nil {
		return nil, fmt.Errorf("opening data: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	index, err := recordio.ReadIndex(f, e.stamp.size, e.absolute)
	if err != nil {
		return nil, err
	}
	return &recordioFile{e, index}, nil
}

func (s *recordioFile) records() int64           { return s.index.Records() }
func (s *recordioFile) bytes() int64             { return s.stamp.size }
func (s *recordioFile) chunkOf(record int64) int { return s.index.Find(record) }
func (s *recordioFile) first(chunk int) int64    { return s.index.Chunks[chunk].First }

func (s *recordioFile) load(chunk int) (records [][]byte, err error) {
	err = s.open(func(f *os.File) error {
		records, err = s.index.Chunks[chunk].Read(f, s.absolute)
		return err
	})
	return records, err
}

func (s *recordioFile) firstRecord() (record []byte, err error) {
	err = s.open(func(f *os.File) error {
		record, err = s.index.Chunks[s.chunkOf(0)].FirstRecord(f, s.absolute)
		return err
	})
	return record, err
}

func (s *recordioFile) open(read func(*os.File) error) error {
	f, err := os.Open(s.absolute)
	if err != nil {
		return fmt.Errorf("reading data: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("reading data: %w", err)
	}
	if err := s.stamp.check(info, s.absolute); err != nil {
		return err
	}
	return read(f)
}

func (s *recordioFile) layout() Layout {
	l := Layout{Format: RecordIO, Chunks: len(s.index.Chunks)}
	var used [recordio.Gzip + 1]bool
	for _, c := range s.index.Chunks {
		l.LargestChunk = max(l.LargestChunk, int64(c.Records))
		used[c.Compressor] = true
	}
	var names []string
	for c, is := range used {
		if is {
			names = append(names, recordio.Compressor(c).String())
		}
	}
	l.Compression = strings.Join(names, ",")
	return l
}

func (s *recordioFile) identify(w hash.Hash) error {
	b := binary.LittleEndian.AppendUint64([]byte("recordio\n"), uint64(len(s.index.Chunks)))
	for _, c := range s.index.Chunks {
		b = binary.LittleEndian.AppendUint32(b, c.Checksum)
	}
	_, err := w.Write(b)
	return err
}

// even cuts records into chunks of one size, the last one shorter.
type even struct {
	total, perChunk int64
}

func (s even) records() int64           { return s.total }
func (s even) chunkOf(record int64) int { return int(record / s.perChunk) }
func (s even) first(chunk int) int64    { return int64(chunk) * s.perChunk }
func (s even) span(chunk int) (lo, hi int64) {
	lo = s.first(chunk)
	return lo, min(lo+s.perChunk, s.total)
}

// idxFile is MNIST's pair of files. A compressed pair is one chunk, because there is no way into the middle of it.
type idxFile struct {
	even
	pair           *idx.Pair
	images, labels entry
}

// idxChunkRecords makes a chunk of MNIST about 800 kB.
const idxChunkRecords = 1024

func openIDX(images, labels entry) (*idxFile, error) {
	pair, err := idx.OpenPair(images.absolute, labels.absolute)
	if err != nil {
		return nil, err
	}
	s := &idxFile{even{pair.Records, idxChunkRecords}, pair, images, labels}
	if pair.Compressed() {
		s.perChunk = max(pair.Records, 1)
	}
	return s, nil
}

func (s *idxFile) bytes() int64 { return s.images.stamp.size + s.labels.stamp.size }

func (s *idxFile) load(chunk int) ([][]byte, error) {
	for _, e := range []entry{s.images, s.labels} {
		info, err := os.Stat(e.absolute)
		if err != nil {
			return nil, fmt.Errorf("reading data: %w", err)
		}
		if err := e.stamp.check(info, e.absolute); err != nil {
			return nil, err
		}
	}
	return s.pair.Read(s.span(chunk))
}

func (s *idxFile) firstRecord() ([]byte, error) {
	records, err := s.pair.Read(0, 1)
	if err != nil {
		return nil, err
	}
	return records[0], nil
}

func (s *idxFile) layout() Layout {
	l := Layout{Format: IDX, Chunks: s.chunkOf(s.total-1) + 1, LargestChunk: min(s.perChunk, s.total), Compression: "none"}
	if s.pair.Compressed() {
		l.Compression = "gzip"
	}
	return l
}

// identifyBytes is how much of each end of a file without checksums of its own is in the fingerprint.
const identifyBytes = 64 << 10

func (s *idxFile) identify(w hash.Hash) error {
	for _, e := range []entry{s.images, s.labels} {
		f, err := os.Open(e.absolute)
		if err != nil {
			return fmt.Errorf("reading data: %w", err)
		}
		hashString(w, e.relative)
		hashUint64(w, uint64(e.stamp.size))
		for _, at := range []int64{0, max(0, e.stamp.size-identifyBytes)} {
			if _, err = io.Copy(w, io.NewSectionReader(f, at, identifyBytes)); err != nil {
				break
			}
		}
		f.Close() //nolint:errcheck // only read from
		if err != nil {
			return fmt.Errorf("reading data %q: %w", e.absolute, err)
		}
	}
	return nil
}

// syntheticFile is the generated digit set.
type syntheticFile struct {
	even
	seed uint64
}

// syntheticChunkRecords is small, because a record costs far more to make than to read.
const syntheticChunkRecords = 128

func (s *syntheticFile) bytes() int64 { return s.total * synth.RecordBytes }

func (s *syntheticFile) load(chunk int) ([][]byte, error) {
	lo, hi := s.span(chunk)
	buffer := make([]byte, (hi-lo)*synth.RecordBytes)
	records := make([][]byte, hi-lo)
	for i := range records {
		records[i] = buffer[i*synth.RecordBytes : (i+1)*synth.RecordBytes : (i+1)*synth.RecordBytes]
		records[i][synth.Pixels] = synth.Digit(s.seed, uint32(lo)+uint32(i), records[i][:synth.Pixels])
	}
	return records, nil
}

func (s *syntheticFile) firstRecord() ([]byte, error) {
	record := make([]byte, synth.RecordBytes)
	record[synth.Pixels] = synth.Digit(s.seed, 0, record[:synth.Pixels])
	return record, nil
}

func (s *syntheticFile) layout() Layout {
	return Layout{Format: "synthetic", Chunks: s.chunkOf(s.total-1) + 1, LargestChunk: min(s.perChunk, s.total), Compression: "none"}
}

// identify needs nothing but the generator's version: the parameters are in the path.
func (s *syntheticFile) identify(w hash.Hash) error {
	hashString(w, synth.Version)
	return nil
}
