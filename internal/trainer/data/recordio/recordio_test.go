package recordio_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datatest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/recordio"
)

// vector is three uncompressed records ("abc", "defg", "") as upstream writes them.
const vector = "04030201bf9d87270000000013000000030000000300000061626304000000" + "6465666700000000"

// readAll reads every record of a file, chunk by chunk.
func readAll(file []byte) ([][]byte, recordio.Index, error) {
	r := bytes.NewReader(file)
	index, err := recordio.ReadIndex(r, int64(len(file)), "file")
	if err != nil {
		return nil, index, err
	}
	var all [][]byte
	for _, c := range index.Chunks {
		records, err := c.Read(r, "file")
		if err != nil {
			return nil, index, err
		}
		all = append(all, records...)
	}
	return all, index, nil
}

func TestLayout(t *testing.T) {
	want, err := hex.DecodeString(vector)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("three records are written as upstream's 39 bytes", func(t *testing.T) {
		got := datatest.RecordIO(t, recordio.WriterOptions{}, []byte("abc"), []byte("defg"), nil)
		if !bytes.Equal(got, want) || len(got) != 39 {
			t.Errorf("% x\nwant\n% x", got, want)
		}
	})
	t.Run("upstream's 39 bytes are read as three records", func(t *testing.T) {
		got, index, err := readAll(want)
		if err != nil || len(got) != 3 || string(got[0]) != "abc" || string(got[1]) != "defg" || len(got[2]) != 0 {
			t.Errorf("%q, %v", got, err)
		}
		if index.Records() != 3 || len(index.Chunks) != 1 {
			t.Errorf("%+v", index)
		}
	})
	for compressor, vector := range map[recordio.Compressor]string{
		// As written by wangkuiyi/recordio at 4fd178b, which makes a snappy frame of every length and every record.
		recordio.Snappy: "04030201a04dee9e010000004500000003000000" + "ff060000734e61507059" + "01080000633f7f2803000000" + "010700006e57f121616263" +
			"010800006251eb9604000000" + "0108000027071ba164656667" + "01080000a67b113a00000000",
		recordio.Gzip: "04030201b632492b020000002b00000003000000" + "1f8b08000000000000ff62666060484c4a6661606048494d4b6760606000040000ffffbf9d872713000000",
	} {
		t.Run("upstream's own file is read as three records: "+compressor.String(), func(t *testing.T) {
			file, err := hex.DecodeString(vector)
			if err != nil {
				t.Fatal(err)
			}
			got, index, err := readAll(file)
			if err != nil || len(got) != 3 || string(got[0]) != "abc" || string(got[1]) != "defg" || len(got[2]) != 0 || index.Chunks[0].Compressor != compressor {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	t.Run("no record makes an empty file, and an empty file no record", func(t *testing.T) {
		if got := datatest.RecordIO(t, recordio.WriterOptions{}); len(got) != 0 {
			t.Errorf("% x", got)
		}
		if got, _, err := readAll(nil); len(got) != 0 || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("a chunk ends before its record bytes would exceed the limit, lengths not counted", func(t *testing.T) {
		_, index, err := readAll(datatest.RecordIO(t, recordio.WriterOptions{MaxChunkBytes: 6}, []byte("abc"), []byte("def"), []byte("g"), []byte("too long"), nil))
		if err != nil {
			t.Fatal(err)
		}
		var records []uint32
		for _, c := range index.Chunks {
			records = append(records, c.Records)
		}
		// "abc"+"def" fill six bytes; "g" is alone, because the next is too large for any chunk and gets one of its own;
		// behind it even an empty record exceeds the limit.
		if !slices.Equal(records, []uint32{2, 1, 1, 1}) {
			t.Errorf("records per chunk: %v", records)
		}
	})
	t.Run("a chunk ends after the asked number of records", func(t *testing.T) {
		_, index, err := readAll(datatest.RecordIO(t, recordio.WriterOptions{MaxChunkRecords: 2}, nil, nil, nil, nil, nil))
		if err != nil || len(index.Chunks) != 3 || index.Chunks[2].First != 4 || index.Find(3) != 1 || index.Find(4) != 2 {
			t.Errorf("%+v, %v", index, err)
		}
	})
}

func TestWriteRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 300)).Draw(t, "records")
		options := recordio.WriterOptions{
			MaxChunkBytes:   rapid.IntRange(1, 2000).Draw(t, "chunk bytes"),
			MaxChunkRecords: rapid.IntRange(0, 20).Draw(t, "chunk records"),
			Compressor:      rapid.SampledFrom([]recordio.Compressor{recordio.None, recordio.Snappy, recordio.Gzip}).Draw(t, "compressor"),
		}
		file := datatest.RecordIO(t, options, records...)
		got, index, err := readAll(file)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, records, bytes.Equal) || index.Records() != int64(len(records)) {
			t.Fatalf("read %d records, wrote %d, or other bytes", len(got), len(records))
		}
		for i := range records {
			c := index.Chunks[index.Find(int64(i))]
			if int64(i) < c.First || int64(i) >= c.First+int64(c.Records) {
				t.Fatalf("record %d is not in chunk %+v", i, c)
			}
		}
		for _, c := range index.Chunks {
			first, err := c.FirstRecord(bytes.NewReader(file), "file")
			if err != nil || !bytes.Equal(first, records[c.First]) {
				t.Fatalf("first record of %+v: %q, %v", c, first, err)
			}
		}
	})
}

func TestLargeChunks(t *testing.T) {
	records := make([][]byte, 3000)
	for i := range records {
		records[i] = bytes.Repeat([]byte{byte(i), byte(i >> 3)}, 400)
	}
	for _, compressor := range []recordio.Compressor{recordio.None, recordio.Snappy, recordio.Gzip} {
		t.Run("a chunk of many snappy frames or gzip blocks is read back: "+compressor.String(), func(t *testing.T) {
			got, index, err := readAll(datatest.RecordIO(t, recordio.WriterOptions{Compressor: compressor}, records...))
			if err != nil || len(index.Chunks) != 1 || !slices.EqualFunc(got, records, bytes.Equal) {
				t.Errorf("%d records in %d chunks, %v", len(got), len(index.Chunks), err)
			}
		})
	}
}

func TestBadFiles(t *testing.T) {
	good := datatest.RecordIO(t, recordio.WriterOptions{MaxChunkRecords: 1}, []byte("abc"), []byte("defg"))
	second := 20 + 4 + 3
	pyrecordio2 := binary.LittleEndian.AppendUint32(nil, 0x01020304)
	for _, v := range []uint32{1, crc32.Checksum([]byte("\x03\x00\x00\x00abc"), crc32.MakeTable(crc32.Castagnoli)), 1, 7} {
		pyrecordio2 = binary.LittleEndian.AppendUint32(pyrecordio2, v)
	}
	pyrecordio2 = append(pyrecordio2, "\x03\x00\x00\x00abc"...)
	for name, c := range map[string]struct {
		file     []byte
		kind     error
		wantText []string
	}{
		"a payload that was cut off":                      {good[:len(good)-1], recordio.ErrDamaged, []string{`"file"`, "offset 27", "ends at 55, and the file at 54"}},
		"a header that was cut off":                       {good[:second+7], recordio.ErrDamaged, []string{"offset 27", "7 bytes into the 20-byte header"}},
		"a flipped bit in a payload":                      {datatest.Flip(good, second+25), recordio.ErrDamaged, []string{"offset 27", "checksum"}},
		"a flipped bit in a later magic":                  {datatest.Flip(good, second), recordio.ErrDamaged, []string{"offset 27", "04 03 02 01"}},
		"text":                                            {[]byte("id,label\n1,2\n3,4\n5,6\n"), recordio.ErrForeign, []string{"offset 0", "69 64 2c 6c"}},
		"gzip":                                            {[]byte("\x1f\x8b\x08\x00aaaaaaaaaaaaaaaaaaaa"), recordio.ErrForeign, []string{"gzip"}},
		"MNIST's images":                                  {append([]byte{0, 0, 8, 3}, make([]byte, 40)...), recordio.ErrForeign, []string{`format = "idx"`}},
		"a TFRecord file":                                 {append(datatest.TFRecordLength(3), "abc....."...), recordio.ErrForeign, []string{"TFRecord"}},
		"the layout of pyrecordio v0.0.2":                 {pyrecordio2, recordio.ErrForeign, []string{"pyrecordio v0.0.2", "0.0.6"}},
		"an unknown compressor":                           {datatest.RecordIOChunk(7, 1, []byte("\x00\x00\x00\x00")), recordio.ErrDamaged, []string{"compressor 7"}},
		"a record count beyond the payload":               {datatest.RecordIOChunk(0, 1<<31, []byte("\x00\x00\x00\x00")), recordio.ErrDamaged, []string{"cannot hold the 2147483648 records"}},
		"a record length beyond the payload":              {datatest.RecordIOChunk(0, 1, []byte("\xff\xff\xff\xffabc")), recordio.ErrDamaged, []string{"record 0 of 1", "4294967295 bytes"}},
		"a record without its length":                     {datatest.RecordIOChunk(0, 2, []byte("\x02\x00\x00\x00abcd")), recordio.ErrDamaged, []string{"record 1 of 2"}},
		"bytes behind the last record":                    {datatest.RecordIOChunk(0, 1, []byte("\x01\x00\x00\x00ab")), recordio.ErrDamaged, []string{"1 bytes are left"}},
		"a payload that is no snappy stream":              {datatest.RecordIOChunk(1, 1, []byte("nonsense")), recordio.ErrDamaged, []string{"snappy"}},
		"a payload that is no gzip stream":                {datatest.RecordIOChunk(2, 1, []byte("nonsense")), recordio.ErrDamaged, []string{"gzip"}},
		"a snappy payload that says it holds a gigabyte":  {datatest.RecordIOChunk(1, 1<<28, append([]byte("\xff\x06\x00\x00sNaPpY\x00\x0a\x00\x00aaaa"), "\xff\xff\xff\xff\x0f."...)), recordio.ErrDamaged, []string{"cannot hold"}},
		"a chunk of no records with a payload of nothing": {datatest.RecordIOChunk(0, 0, []byte("abcd")), recordio.ErrDamaged, []string{"4 bytes are left behind its 0 records"}},
	} {
		t.Run(name+" is refused with file and offset", func(t *testing.T) {
			_, _, err := readAll(c.file)
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
	t.Run("a chunk that is not the indexed one any more is refused", func(t *testing.T) {
		index, err := recordio.ReadIndex(bytes.NewReader(good), int64(len(good)), "file")
		if err != nil {
			t.Fatal(err)
		}
		for _, now := range [][]byte{datatest.Flip(good, second+5), good[:second+22], nil} {
			if _, err := index.Chunks[1].Read(bytes.NewReader(now), "file"); !errors.Is(err, recordio.ErrChanged) {
				t.Errorf("%v", err)
			}
		}
	})
	t.Run("a stated record length allocates nothing that the file does not hold", func(t *testing.T) {
		file := datatest.RecordIOChunk(2, 1, datatest.Gzip([]byte("\xff\xff\xff\x1fabc")))
		index, err := recordio.ReadIndex(bytes.NewReader(file), int64(len(file)), "file")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := index.Chunks[0].FirstRecord(bytes.NewReader(file), "file"); !errors.Is(err, recordio.ErrDamaged) {
			t.Errorf("%v", err)
		}
	})
}

func TestWriterRefusesBadOptions(t *testing.T) {
	for name, options := range map[string]recordio.WriterOptions{
		"an unknown compressor":   {Compressor: 3},
		"a negative chunk size":   {MaxChunkBytes: -1},
		"a chunk nobody can read": {MaxChunkBytes: recordio.MaxDecodedChunkBytes + 1},
		"a negative record count": {MaxChunkRecords: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := recordio.NewWriter(&bytes.Buffer{}, options); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	good, err := hex.DecodeString(vector)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	for _, compressor := range []recordio.Compressor{recordio.None, recordio.Snappy, recordio.Gzip} {
		f.Add(datatest.RecordIO(f, recordio.WriterOptions{Compressor: compressor, MaxChunkRecords: 2}, []byte("abc"), nil, bytes.Repeat([]byte("xyz"), 100)))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		records, index, err := readAll(file)
		if err != nil {
			return
		}
		if int64(len(records)) != index.Records() {
			t.Fatalf("%d records, and the index says %d", len(records), index.Records())
		}
		// What was read is written and read again as the same records.
		again, _, err := readAll(datatest.RecordIO(t, recordio.WriterOptions{}, records...))
		if err != nil || !slices.EqualFunc(again, records, bytes.Equal) {
			t.Fatalf("written again: %v", err)
		}
	})
}
