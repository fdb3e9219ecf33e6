package tfrecord_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datatest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/tfrecord"
)

var compressions = []tfrecord.Compression{tfrecord.None, tfrecord.Gzip, tfrecord.Zlib}

func readAll(file []byte, o tfrecord.Options) ([][]byte, tfrecord.Index, error) {
	index, err := tfrecord.ReadIndex(bytes.NewReader(file), int64(len(file)), "file", o)
	if err != nil {
		return nil, index, err
	}
	var all [][]byte
	for chunk := range index.Chunks {
		records, err := index.Read(bytes.NewReader(file), chunk, "file")
		if err != nil {
			return nil, index, err
		}
		all = append(all, records...)
	}
	return all, index, nil
}

func TestAChecksumIsThatOfRFC3720Masked(t *testing.T) {
	// RFC 3720, B.4: the CRC-32C of 32 zero bytes is 8a9136aa.
	file := datatest.TFRecord(t, tfrecord.None, make([]byte, 32))
	crc := uint32(0x8a9136aa)
	want := (crc>>15 | crc<<17) + 0xa282ead8
	if got := file[len(file)-4:]; fmt.Sprintf("%02x%02x%02x%02x", got[3], got[2], got[1], got[0]) != fmt.Sprintf("%08x", want) {
		t.Errorf("% x, want %08x in little-endian order", got, want)
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 300), 1, 40).Draw(t, "records")
		if rapid.Bool().Draw(t, "a large one") {
			records = append(records, bytes.Repeat([]byte{7}, 300<<10), []byte("end"))
		}
		o := tfrecord.Options{ReadBytes: rapid.IntRange(16, 4096).Draw(t, "read bytes"), WholeBytes: rapid.SampledFrom([]int64{0, 1 << 20}).Draw(t, "whole bytes")}
		for _, c := range compressions {
			got, index, err := readAll(datatest.TFRecord(t, c, records...), o)
			if err != nil {
				t.Fatalf("%s: %v", c, err)
			}
			if !slices.EqualFunc(got, records, bytes.Equal) || index.Records() != int64(len(records)) || index.Compression != c {
				t.Fatalf("%s: %d records, %d by the index (%s), of %d", c, len(got), index.Records(), index.Compression, len(records))
			}
			if c != tfrecord.None && o.WholeBytes > 0 && len(index.Chunks) != 1 {
				t.Fatalf("%s: %d chunks of what is small enough to be one", c, len(index.Chunks))
			}
		}
	})
}

func TestRandomAccess(t *testing.T) {
	var records [][]byte
	for i := range 3000 {
		records = append(records, fmt.Appendf(nil, "%0*d", 200+i%7, i))
	}
	for _, c := range compressions {
		t.Run("any record is found, "+c.String(), func(t *testing.T) {
			file := datatest.TFRecord(t, c, records...)
			index, err := tfrecord.ReadIndex(bytes.NewReader(file), int64(len(file)), "file", tfrecord.Options{})
			if err != nil || len(index.Chunks) < 3 {
				t.Fatalf("%d chunks, %v", len(index.Chunks), err)
			}
			for _, n := range []int64{0, 1, 1500, 2999} {
				chunk := index.Find(n)
				r := &counting{r: bytes.NewReader(file)}
				got, err := index.Read(r, chunk, "file")
				if err != nil || !bytes.Equal(got[n-index.Chunks[chunk].First], records[n]) {
					t.Errorf("record %d: %v", n, err)
				}
				if c == tfrecord.None && r.bytes != index.Chunks[chunk].Bytes {
					t.Errorf("record %d: %d bytes were read for a chunk of %d", n, r.bytes, index.Chunks[chunk].Bytes)
				}
			}
			first, err := index.FirstRecord(bytes.NewReader(file), "file")
			if err != nil || !bytes.Equal(first, records[0]) {
				t.Errorf("%q, %v", first, err)
			}
		})
	}
	t.Run("large records are hopped over", func(t *testing.T) {
		large := bytes.Repeat([]byte{1}, 1<<20)
		file := datatest.TFRecord(t, tfrecord.None, large, large, large, large)
		r := &counting{r: bytes.NewReader(file)}
		index, err := tfrecord.ReadIndex(r, int64(len(file)), "file", tfrecord.Options{})
		if err != nil || index.Records() != 4 || r.bytes > 100 {
			t.Errorf("%d records after reading %d of %d bytes, %v", index.Records(), r.bytes, len(file), err)
		}
	})
}

type counting struct {
	r     io.ReaderAt
	bytes int64
}

func (c *counting) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.r.ReadAt(b, at)
	c.bytes += int64(n)
	return n, err
}

func TestBadFiles(t *testing.T) {
	good := datatest.TFRecord(t, tfrecord.None, []byte("abc"), []byte("de")) // 19 and 18 bytes
	huge := datatest.TFRecord(t, tfrecord.None, nil)
	if b, err := hex.DecodeString("0000002000000001"); err == nil { // a length of more than 2^56
		w := datatest.TFRecord(t, tfrecord.None, b)
		huge = slices.Concat(b, w[len(w)-4:]) // the checksum of a record that is this length
	}
	zipped := datatest.TFRecord(t, tfrecord.Gzip, []byte("abc"), []byte("de"))
	for name, c := range map[string]struct {
		file     []byte
		kind     error
		wantText []string
	}{
		"a record that was cut off":         {good[:len(good)-1], tfrecord.ErrDamaged, []string{`"file"`, "offset 19", "within its 2 bytes"}},
		"a length that was cut off":         {good[:24], tfrecord.ErrDamaged, []string{"offset 19", "within its length"}},
		"a flipped bit in a record":         {datatest.Flip(good, 32), tfrecord.ErrDamaged, []string{"offset 19", "checksum of its 2 bytes"}},
		"a flipped bit in a later length":   {datatest.Flip(good, 19), tfrecord.ErrDamaged, []string{"offset 19", "checksum of its length"}},
		"a flipped bit in the first length": {datatest.Flip(good, 0), tfrecord.ErrForeign, []string{"offset 0"}},
		"a length beyond all bounds":        {huge, tfrecord.ErrTooLarge, []string{"72057594574798848 bytes"}},
		"RecordIO":                          {[]byte("\x04\x03\x02\x01aaaaaaaaaaaaaaaaaaaa"), tfrecord.ErrForeign, []string{`format = "recordio"`}},
		"text":                              {[]byte("id,label\n1,2\n3,4\n5,6\n"), tfrecord.ErrForeign, []string{"69 64 2c 6c"}},
		"a few bytes":                       {[]byte("abc"), tfrecord.ErrForeign, []string{"3 bytes"}},
		"gzip that was cut off":             {zipped[:len(zipped)-9], tfrecord.ErrDamaged, []string{"offset"}},
		"gzip with a wrong checksum":        {datatest.Flip(zipped, len(zipped)-6), tfrecord.ErrDamaged, []string{"checksum"}},
		"a gzip header and nothing":         {[]byte("\x1f\x8b"), tfrecord.ErrDamaged, []string{"gzip"}},
		"zlib of something else":            {[]byte("\x78\x9c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), tfrecord.ErrDamaged, []string{"zlib"}},
		"gzip of text":                      {datatest.Gzip([]byte("id,label\n1,2\n3,4\n")), tfrecord.ErrDamaged, []string{"checksum of its length"}},
	} {
		t.Run(name+" is refused with file and offset", func(t *testing.T) {
			_, _, err := readAll(c.file, tfrecord.Options{})
			if !errors.Is(err, c.kind) {
				t.Fatalf("%v, want %v", err, c.kind)
			}
			for _, text := range c.wantText {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
		})
	}
	t.Run("a file that is not the indexed one any more is refused", func(t *testing.T) {
		index, err := tfrecord.ReadIndex(bytes.NewReader(good), int64(len(good)), "file", tfrecord.Options{})
		if err != nil {
			t.Fatal(err)
		}
		other := datatest.TFRecord(t, tfrecord.None, []byte("abcdefghijklmnopqrstu"))
		for _, now := range [][]byte{good[:30], nil, other} {
			if _, err := index.Read(bytes.NewReader(now), 0, "file"); !errors.Is(err, tfrecord.ErrChanged) {
				t.Errorf("%v", err)
			}
		}
	})
}

// python is the second opinion: an implementation by the format's description alone.
func python(t *testing.T, verb string, c tfrecord.Compression, input []byte) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", "testdata/tfrecord.py", verb, c.String())
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("python3: %v\n%s", err, stderr.Bytes())
	}
	return output
}

func TestPython(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	records := [][]byte{[]byte("abc"), {}, bytes.Repeat([]byte("xyz"), 3000), {0, 255}}
	var lines bytes.Buffer
	for _, r := range records {
		fmt.Fprintf(&lines, "%x\n", r)
	}
	for _, c := range compressions {
		t.Run("a Python program's file is read, and reads ours: "+c.String(), func(t *testing.T) {
			got, index, err := readAll(python(t, "write", c, lines.Bytes()), tfrecord.Options{})
			if err != nil || !slices.EqualFunc(got, records, bytes.Equal) || index.Compression != c {
				t.Errorf("%d records (%s), %v", len(got), index.Compression, err)
			}
			if back := python(t, "read", c, datatest.TFRecord(t, c, records...)); !bytes.Equal(back, lines.Bytes()) {
				t.Errorf("%d bytes of text, want %d", len(back), lines.Len())
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	for _, c := range compressions {
		f.Add(datatest.TFRecord(f, c, []byte("abc"), nil, bytes.Repeat([]byte("xyz"), 100)))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		records, index, err := readAll(file, tfrecord.Options{ReadBytes: 64})
		if err != nil {
			return
		}
		if int64(len(records)) != index.Records() {
			t.Fatalf("%d records, and the index says %d", len(records), index.Records())
		}
		// What was read is written and read again as the same records; a plain file to the same bytes.
		again := datatest.TFRecord(t, index.Compression, records...)
		if index.Compression == tfrecord.None && !bytes.Equal(again, file) {
			t.Fatal("written again, it differs")
		}
		if got, _, err := readAll(again, tfrecord.Options{WholeBytes: 1 << 20}); len(again) > 0 && (err != nil || !slices.EqualFunc(got, records, bytes.Equal)) {
			t.Fatalf("written again: %v", err)
		}
	})
}
