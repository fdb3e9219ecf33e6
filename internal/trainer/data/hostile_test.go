package data_test

import (
	"encoding/binary"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datatest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/idx"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// hostileBytes is what a file of a hundred kilobytes may make a reader allocate: buffers for reading are of a fixed
// size.
const hostileBytes = 24 << 20

// TestHostileFiles: every number in a file may be a lie, and none of them may cost memory that the file does not bear
// out.
func TestHostileFiles(t *testing.T) {
	padding := make([]byte, 100<<10)
	rand.NewChaCha8([32]byte{}).Read(padding) //nolint:errcheck // has none; what does not compress
	tried := map[string]bool{}
	for name, c := range map[string]struct {
		name    string
		content []byte
		format  string
		codec   string
	}{
		"a RecordIO chunk that says it decompresses to half a gigabyte": {"a", datatest.RecordIOChunk(2, 1, lyingGzip(padding)), dataset.RecordIO, ""},
		"a RecordIO chunk of many records":                              {"a", datatest.RecordIOChunk(2, 1<<20, datatest.Gzip(padding)), dataset.RecordIO, ""},
		"a RecordIO record of half a gigabyte":                          {"a", datatest.RecordIOChunk(2, 1, datatest.Gzip([]byte("\xff\xff\xff\x1fabc"))), dataset.RecordIO, ""},
		"a RecordIO chunk of snappy's largest block":                    {"a", datatest.RecordIOChunk(1, 1, []byte("\xff\x06\x00\x00sNaPpY\x00\x0a\x00\x00aaaa\xff\xff\xff\xff\x0f.")), dataset.RecordIO, ""},
		"a TFRecord record of half a gigabyte":                          {"a.tfrecord", append(datatest.TFRecordLength(500<<20), padding...), dataset.TFRecord, ""},
		"a compressed TFRecord record of half a gigabyte":               {"a.tfrecord", datatest.Gzip(append(datatest.TFRecordLength(500<<20), padding...)), dataset.TFRecord, ""},
		"a TFRecord record of more than memory":                         {"a.tfrecord", append(datatest.TFRecordLength(1<<62), padding...), dataset.TFRecord, ""},
		"a compressed IDX file that says it holds 90 MB":                {"train-images-idx3-ubyte.gz", datatest.Gzip(append(idx.AppendHeader(nil, 1000, 300, 300), padding...)), dataset.IDX, ""},
		"an IDX file that says it holds a petabyte":                     {"train-images-idx3-ubyte", idx.AppendHeader(nil, 1<<31, 1<<10, 1<<10), dataset.IDX, ""},
		"a CSV header of nothing but commas":                            {"a.csv", []byte(strings.Repeat(",", 64<<10) + "\n1\n"), dataset.CSV, ""},
		"a CSV quote that is never closed":                              {"a.csv", []byte("a\n\"" + strings.Repeat("x\n", 64<<10)), dataset.CSV, ""},
		"a tf_example list that says it is long":                        {"a", datatest.RecordIOChunk(0, 1, lengthOf(lyingExample())), dataset.RecordIO, dataset.TFExampleCodec},
		"a record of another length than the schema's":                  {"a", datatest.RecordIOChunk(0, 1, lengthOf(padding)), dataset.RecordIO, dataset.BytesCodec},
	} {
		tried[c.format] = true
		t.Run("refused without taking memory: "+name, func(t *testing.T) {
			dir := t.TempDir()
			saveBytes(t, filepath.Join(dir, c.name), c.content)
			if c.format == dataset.IDX {
				saveBytes(t, filepath.Join(dir, "train-labels-idx1-ubyte"), append(idx.AppendHeader(nil, 1000), make([]byte, 1000)...))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			ds, err := data.Open(t.Context(), data.Spec{Path: dir, Format: c.format, Codec: c.codec, Features: featuresOf(c.format), CacheBytes: 1 << 20})
			if err == nil {
				_, err = ds.Read(t.Context(), 0, 0, ds.Files()[0].Records)
				ds.Close() //nolint:errcheck // it has no errors
			}
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.name) {
				t.Errorf("%v; want an error with the file's name", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > hostileBytes {
				t.Errorf("%d bytes were allocated for a file of %d (%v)", took, len(c.content), err)
			}
		})
	}
	for _, name := range dataset.Formats() {
		if !tried[name] {
			t.Errorf("no file of format %s has been tried", name)
		}
	}
}

func featuresOf(name string) []graph.Feature {
	if name == dataset.IDX {
		return []graph.Feature{{Name: "image", DType: graph.Uint8, Shape: []int{300, 300}}, {Name: "label", DType: graph.Int64, Shape: []int{1}}}
	}
	return small
}

// lyingGzip ends with a size of half a gigabyte.
func lyingGzip(b []byte) []byte {
	z := datatest.Gzip(b)
	binary.LittleEndian.PutUint32(z[len(z)-4:], 500<<20)
	return z
}

func lengthOf(record []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(record))), record...)
}

// lyingExample is a tf.train.Example whose float_list is longer than the record.
func lyingExample() []byte {
	list := protowire.AppendVarint([]byte{0x0a}, 1<<30)
	b := protowire.AppendBytes([]byte{0x12}, list)                                               // Feature.float_list
	b = protowire.AppendBytes(append(protowire.AppendBytes([]byte{0x0a}, []byte("x")), 0x12), b) // an entry of the map
	b = protowire.AppendBytes([]byte{0x0a}, b)                                                   // Features.feature
	return protowire.AppendBytes([]byte{0x0a}, b)                                                // Example.features
}
