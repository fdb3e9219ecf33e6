package data

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
)

// Fingerprint identifies the data: SHA-256 over every file's path, size, record count and the checksums of RecordIO's
// chunks or of TFRecord's records (CSV: the whole text and its options; IDX: all of it, or 64 samples of a file larger
// than 64 MiB; synthetic data: its parameters), in the order of Files.
func (d *Dataset) Fingerprint() [sha256.Size]byte {
	h := sha256.New()
	hashString(h, "elastic data 1")
	for _, f := range d.files {
		h.Write(f.Digest[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Match compares the files with those that another process opened, and names the first that differs.
func (d *Dataset) Match(want []File) error {
	for i := 0; i < max(len(want), len(d.files)); i++ {
		switch {
		case i >= len(want) || i < len(d.files) && d.files[i].Path < want[i].Path:
			return fmt.Errorf("data %q: file %q is here and not where the job was started; every worker must see the same files", d.spec.Path, d.files[i].Path)
		case i >= len(d.files) || d.files[i].Path > want[i].Path:
			return fmt.Errorf("data %q: file %q is missing here; every worker must see the same files", d.spec.Path, want[i].Path)
		case d.files[i].Bytes != want[i].Bytes || d.files[i].Records != want[i].Records:
			return fmt.Errorf("data %q: file %q has %d bytes and %d records, and where the job was started %d and %d; every worker must see the same files",
				d.spec.Path, want[i].Path, d.files[i].Bytes, d.files[i].Records, want[i].Bytes, want[i].Records)
		case d.files[i].Digest != want[i].Digest:
			return fmt.Errorf("data %q: file %q has the expected size and other contents than where the job was started; every worker must see the same files", d.spec.Path, want[i].Path)
		}
	}
	return nil
}

// identify sets the digest of a file whose other fields are set.
func (f *File) identify(ctx context.Context, s source) error {
	h := sha256.New()
	hashString(h, "elastic data file 1")
	hashString(h, f.Path)
	hashUint64(h, uint64(f.Bytes))
	hashUint64(h, uint64(f.Records))
	if err := s.identify(ctx, h); err != nil {
		return err
	}
	h.Sum(f.Digest[:0])
	return nil
}

func hashString(h hash.Hash, s string) {
	hashUint64(h, uint64(len(s)))
	h.Write([]byte(s))
}

func hashStrings(h hash.Hash, all []string) {
	hashUint64(h, uint64(len(all)))
	for _, s := range all {
		hashString(h, s)
	}
}

func hashUint64(h hash.Hash, n uint64) {
	h.Write(binary.LittleEndian.AppendUint64(nil, n))
}
