package data_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datatest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/idx"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/recordio"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a schema of records that are quickly made: two numbers and a label.
var small = []graph.Feature{
	{Name: "x", DType: graph.Float32, Shape: []int{2}},
	{Name: "label", DType: graph.Int64, Shape: []int{1}},
}

// smallValues is record i: x = (i, i/2), label = i mod 10.
func smallValues(i int) graph.Example {
	return graph.Example{{Floats: []float32{float32(i), float32(i) / 2}}, {Ints: []int64{int64(i % 10)}}}
}

func smallRecord(t testing.TB, name string, i int) []byte {
	t.Helper()
	b, err := codec.Append(nil, name, small, smallValues(i))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// smallRecords are records from … to−1.
func smallRecords(t testing.TB, codecName string, from, to int) (records [][]byte) {
	t.Helper()
	for i := from; i < to; i++ {
		records = append(records, smallRecord(t, codecName, i))
	}
	return records
}

// save writes a RecordIO file with records from … to−1 and perChunk records in a chunk.
func save(t testing.TB, path, codecName string, from, to, perChunk int) string {
	t.Helper()
	o := recordio.WriterOptions{MaxChunkRecords: perChunk, Compressor: recordio.Snappy}
	saveBytes(t, path, datatest.RecordIO(t, o, smallRecords(t, codecName, from, to)...))
	return path
}

func saveBytes(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, spec data.Spec) *data.Dataset {
	t.Helper()
	ds, err := data.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ds.Close(); err != nil {
			t.Error(err)
		}
	})
	return ds
}

func refuse(t *testing.T, spec data.Spec, wantText ...string) {
	t.Helper()
	ds, err := data.Open(t.Context(), spec)
	if err == nil {
		ds.Close() //nolint:errcheck // the test has failed already
		t.Fatalf("accepted; want an error that says %q", wantText)
	}
	for _, text := range wantText {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
}

func paths(ds *data.Dataset) []string {
	var all []string
	for _, f := range ds.Files() {
		all = append(all, f.Path)
	}
	return all
}

func TestDirectory(t *testing.T) {
	t.Run("files are listed in bytewise order of their relative paths, and what is no data is left out", func(t *testing.T) {
		dir, elsewhere := t.TempDir(), t.TempDir()
		for _, name := range []string{"b", "a/z", "a.1", "B", ".hidden", "_SUCCESS", ".git/x", "_temporary/0"} {
			save(t, filepath.Join(dir, name), dataset.BytesCodec, 0, 3, 2)
		}
		saveBytes(t, filepath.Join(dir, "empty"), nil)
		if err := os.Symlink(save(t, filepath.Join(elsewhere, "far"), dataset.BytesCodec, 0, 4, 2), filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		ds := open(t, data.Spec{Path: dir, Features: small})
		if want := []string{"B", "a.1", "a/z", "b", "link"}; !slices.Equal(paths(ds), want) {
			t.Errorf("%q, want %q", paths(ds), want)
		}
		if ds.Records() != 16 || ds.Files()[4].Records != 4 {
			t.Errorf("%d records: %+v", ds.Records(), ds.Files())
		}
		if n := ds.Notices(); len(n) != 1 || !strings.Contains(n[0], "empty") {
			t.Errorf("notices: %q", n)
		}
	})
	t.Run("two paths to one file or directory are refused by name", func(t *testing.T) {
		for name, link := range map[string]func(dir string) error{
			"symbolic link": func(dir string) error {
				return os.Symlink(filepath.Join(dir, "sub", "a"), filepath.Join(dir, "second"))
			},
			"hard link":          func(dir string) error { return os.Link(filepath.Join(dir, "sub", "a"), filepath.Join(dir, "second")) },
			"linked directory":   func(dir string) error { return os.Symlink(filepath.Join(dir, "sub"), filepath.Join(dir, "second")) },
			"link to the parent": func(dir string) error { return os.Symlink(dir, filepath.Join(dir, "sub", "second")) },
		} {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				save(t, filepath.Join(dir, "sub", "a"), dataset.BytesCodec, 0, 3, 2)
				if err := link(dir); err != nil {
					t.Fatal(err)
				}
				refuse(t, data.Spec{Path: dir}, "second", "the same file", "remove one of the links")
			})
		}
	})
	t.Run("no records at all are refused with what was left out", func(t *testing.T) {
		dir := t.TempDir()
		refuse(t, data.Spec{Path: dir}, "holds no records")
		saveBytes(t, filepath.Join(dir, "nothing"), nil)
		refuse(t, data.Spec{Path: dir}, "holds no records", "nothing", "is empty")
	})
	t.Run("a path that is not there, a link to nothing and an unknown format are refused", func(t *testing.T) {
		dir := t.TempDir()
		refuse(t, data.Spec{Path: filepath.Join(dir, "absent")}, "absent")
		refuse(t, data.Spec{Path: save(t, filepath.Join(dir, "a"), dataset.BytesCodec, 0, 1, 1), Format: "parquet"}, `"parquet"`, dataset.FormatChoice())
		if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
			t.Fatal(err)
		}
		refuse(t, data.Spec{Path: dir}, "dangling")
	})
	t.Run("a file whose first record does not fit the schema is refused with file and record", func(t *testing.T) {
		dir := t.TempDir()
		save(t, filepath.Join(dir, "good"), dataset.BytesCodec, 0, 3, 2)
		save(t, filepath.Join(dir, "other"), dataset.TFExampleCodec, 0, 3, 2)
		refuse(t, data.Spec{Path: dir, Features: small}, "other", "record 0", `set codec = "tf_example"`)
		refuse(t, data.Spec{Path: dir, Features: small, Codec: dataset.TFExampleCodec}, "good", `set codec = "bytes"`)
	})
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	save(t, filepath.Join(dir, "a"), dataset.BytesCodec, 0, 50, 7)
	save(t, filepath.Join(dir, "b"), dataset.BytesCodec, 50, 60, 100)
	want := func(t *testing.T, got [][]byte, from int) {
		t.Helper()
		for i, r := range got {
			if !bytes.Equal(r, smallRecord(t, dataset.BytesCodec, from+i)) {
				t.Fatalf("record %d is another", from+i)
			}
		}
	}
	for name, cacheBytes := range map[string]int64{"the default cache": 0, "a cache of one chunk": 1} {
		t.Run("every range of records is read with "+name, func(t *testing.T) {
			ds := open(t, data.Spec{Path: dir, Features: small, CacheBytes: cacheBytes})
			for lo := int64(0); lo <= 50; lo++ {
				for hi := lo; hi <= 50; hi += 3 {
					got, err := ds.Read(t.Context(), 0, lo, hi)
					if err != nil || int64(len(got)) != hi-lo {
						t.Fatalf("%d to %d: %d records, %v", lo, hi, len(got), err)
					}
					want(t, got, int(lo))
				}
			}
			got, err := ds.Read(t.Context(), 1, 3, 10)
			if err != nil || len(got) != 7 {
				t.Fatal(err)
			}
			want(t, got, 53)
		})
	}
	t.Run("records that are not there are refused", func(t *testing.T) {
		ds := open(t, data.Spec{Path: dir})
		for _, r := range [][3]int64{{0, 0, 51}, {0, -1, 2}, {0, 3, 2}, {2, 0, 1}, {-1, 0, 1}} {
			if _, err := ds.Read(t.Context(), int(r[0]), r[1], r[2]); err == nil {
				t.Errorf("read %v", r)
			}
		}
	})
	t.Run("reading ahead brings the records in, and changes nothing", func(t *testing.T) {
		ds := open(t, data.Spec{Path: dir})
		for i := range int64(40) {
			ds.Prefetch(0, i, i+10)
		}
		ds.Prefetch(0, 0, 0)
		ds.Prefetch(5, 0, 1)
		got, err := ds.Read(t.Context(), 0, 0, 50)
		if err != nil {
			t.Fatal(err)
		}
		want(t, got, 0)
	})
	t.Run("what was read ahead is not waited for, and what was not is counted", func(t *testing.T) {
		ds := open(t, data.Spec{Path: dir})
		if !ds.Prefetch(0, 7, 20) {
			t.Fatal("not taken")
		}
		if !ds.Prefetch(0, 49, 50) {
			t.Fatal("not taken")
		}
		inMemory(t, ds, 0, 7, 49)
		if _, err := ds.Read(t.Context(), 0, 7, 20); err != nil {
			t.Fatal(err)
		}
		if times, waited := ds.Waits(); times != 0 || waited != 0 {
			t.Errorf("waited %d times, %s, for what was in memory", times, waited)
		}
		if _, err := ds.Read(t.Context(), 1, 0, 10); err != nil {
			t.Fatal(err)
		}
		if times, waited := ds.Waits(); times != 1 || waited <= 0 {
			t.Errorf("waited %d times, %s, for one chunk", times, waited)
		}
	})
	t.Run("a cancelled context ends reading what is not in memory", func(t *testing.T) {
		ds := open(t, data.Spec{Path: dir})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := ds.Read(ctx, 0, 0, 1); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("closing twice does nothing", func(t *testing.T) {
		ds := open(t, data.Spec{Path: dir})
		if err := ds.Close(); err != nil {
			t.Error(err)
		}
	})
}

// inMemory waits until reading ahead has brought records in.
func inMemory(t *testing.T, ds *data.Dataset, file int, records ...int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that nothing is read that is not in memory
	for _, record := range records {
		eventually.True(t, fmt.Sprintf("record %d is read ahead", record), func() bool {
			_, err := ds.Read(ctx, file, record, record+1)
			return err == nil
		})
	}
}

func TestChangedFiles(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"grew":                     func(t *testing.T, path string) { save(t, path, dataset.BytesCodec, 0, 51, 7) },
		"was written again, later": func(t *testing.T, path string) { touch(t, path, time.Hour) },
		"became empty":             func(t *testing.T, path string) { saveBytes(t, path, nil) },
		"was replaced by another of its time": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			b := bytes.Repeat([]byte{1}, int(info.Size()))
			saveBytes(t, path, b)
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run("a file that "+name+" under the run is an error", func(t *testing.T) {
			path := save(t, filepath.Join(t.TempDir(), "a"), dataset.BytesCodec, 0, 50, 7)
			ds := open(t, data.Spec{Path: path, CacheBytes: 1})
			if _, err := ds.Read(t.Context(), 0, 0, 50); err != nil {
				t.Fatal(err)
			}
			change(t, path)
			_, err := ds.Read(t.Context(), 0, 0, 50)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "changed while it was in use") {
				t.Error(err)
			}
		})
	}
	t.Run("a file that is gone is an error", func(t *testing.T) {
		path := save(t, filepath.Join(t.TempDir(), "a"), dataset.BytesCodec, 0, 50, 7)
		ds := open(t, data.Spec{Path: path})
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := ds.Read(t.Context(), 0, 0, 1); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("a damaged chunk is an error when it is used, and the chunks before it are not", func(t *testing.T) {
		path := save(t, filepath.Join(t.TempDir(), "a"), dataset.BytesCodec, 0, 50, 7)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-1] ^= 1
		saveBytes(t, path, b)
		ds := open(t, data.Spec{Path: path, Features: small})
		if _, err := ds.Read(t.Context(), 0, 0, 49); err != nil {
			t.Error(err)
		}
		for range 2 { // the second time too
			if _, err := ds.Read(t.Context(), 0, 48, 50); !errors.Is(err, recordio.ErrDamaged) {
				t.Error(err)
			}
		}
	})
}

func touch(t *testing.T, path string, later time.Duration) {
	t.Helper()
	at := time.Now().Add(later)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestFingerprint(t *testing.T) {
	build := func(t *testing.T) string {
		dir := t.TempDir()
		save(t, filepath.Join(dir, "a"), dataset.BytesCodec, 0, 50, 7)
		save(t, filepath.Join(dir, "sub", "b"), dataset.BytesCodec, 50, 60, 100)
		return dir
	}
	dir := build(t)
	first := open(t, data.Spec{Path: dir})
	t.Run("a copy elsewhere, at another time, is the same data", func(t *testing.T) {
		copied := build(t)
		touch(t, filepath.Join(copied, "a"), time.Hour)
		saveBytes(t, filepath.Join(copied, "_SUCCESS"), nil)
		second := open(t, data.Spec{Path: copied, Features: small})
		if second.Fingerprint() != first.Fingerprint() {
			t.Error("another fingerprint")
		}
		if err := second.Match(first.Files()); err != nil {
			t.Error(err)
		}
	})
	for name, c := range map[string]struct {
		change   func(dir string) error
		wantText []string
	}{
		"a file that was renamed": {
			func(dir string) error { return os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "c")) }, []string{`"a" is missing here`},
		},
		"a file more": {
			func(dir string) error { save(t, filepath.Join(dir, "b"), dataset.BytesCodec, 0, 1, 1); return nil }, []string{`"b" is here and not`},
		},
		"a file at the end more": {
			func(dir string) error { save(t, filepath.Join(dir, "z"), dataset.BytesCodec, 0, 1, 1); return nil }, []string{`"z" is here and not`},
		},
		"the last file less": {
			func(dir string) error { return os.Remove(filepath.Join(dir, "sub", "b")) }, []string{`"sub/b" is missing here`},
		},
		"other records": {
			func(dir string) error {
				save(t, filepath.Join(dir, "sub", "b"), dataset.BytesCodec, 50, 61, 100)
				return nil
			}, []string{`"sub/b"`, "11 records"},
		},
		"one other bit in a record": {
			func(dir string) error {
				path := filepath.Join(dir, "a")
				index := readIndex(path)
				c := index.Chunks[3]
				f, err := os.OpenFile(path, os.O_RDWR, 0)
				if err != nil {
					return err
				}
				// The same size and count, and another checksum in a header.
				_, err = f.WriteAt([]byte{byte(c.Checksum) ^ 1}, c.Offset+4)
				return errors.Join(err, f.Close())
			}, []string{`"a"`, "other contents"},
		},
	} {
		t.Run("data with "+name+" has another fingerprint, and the file is named", func(t *testing.T) {
			changed := build(t)
			if err := c.change(changed); err != nil {
				t.Fatal(err)
			}
			second := open(t, data.Spec{Path: changed})
			if second.Fingerprint() == first.Fingerprint() {
				t.Error("the same fingerprint")
			}
			err := second.Match(first.Files())
			if err == nil {
				t.Fatal("it matches")
			}
			for _, text := range c.wantText {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
		})
	}
}

func readIndex(path string) recordio.Index {
	b, err := os.ReadFile(path)
	if err != nil {
		return recordio.Index{}
	}
	index, err := recordio.ReadIndex(bytes.NewReader(b), int64(len(b)), path)
	if err != nil {
		return recordio.Index{}
	}
	return index
}

// saveMNIST writes a pair of IDX files of n 28×28 images whose pixels are all their number, and their labels.
func saveMNIST(t testing.TB, dir, prefix, end string, n int) {
	t.Helper()
	images, labels := idx.AppendHeader(nil, n, 28, 28), idx.AppendHeader(nil, n)
	for i := range n {
		images = append(images, bytes.Repeat([]byte{byte(i)}, 784)...)
		labels = append(labels, byte(i%10))
	}
	for name, b := range map[string][]byte{prefix + "-images-idx3-ubyte": images, prefix + "-labels-idx1-ubyte": labels} {
		if end == ".gz" {
			b = datatest.Gzip(b)
		}
		saveBytes(t, filepath.Join(dir, name+end), b)
	}
}

var mnist = []graph.Feature{
	{Name: "image", DType: graph.Float32, Shape: []int{1, 28, 28}},
	{Name: "label", DType: graph.Int64, Shape: []int{1}},
}

func TestIDX(t *testing.T) {
	for _, end := range []string{"", ".gz"} {
		t.Run("a directory with one pair is a data set"+end, func(t *testing.T) {
			dir := t.TempDir()
			saveMNIST(t, dir, "t10k", end, 2000)
			saveBytes(t, filepath.Join(dir, "README"), []byte("about"))
			ds := open(t, data.Spec{Path: dir, Format: dataset.IDX, Features: mnist})
			if ds.Records() != 2000 || !slices.Equal(paths(ds), []string{"t10k-images-idx3-ubyte" + end}) {
				t.Errorf("%+v", ds.Files())
			}
			got, err := ds.Read(t.Context(), 0, 1020, 1030)
			if err != nil || got[3][0] != byte(1023%256) || got[3][784] != 3 {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("training and test images in one directory are refused, and each is a data set by its file", func(t *testing.T) {
		dir := t.TempDir()
		saveMNIST(t, dir, "train", "", 20)
		saveMNIST(t, dir, "t10k", ".gz", 10)
		refuse(t, data.Spec{Path: dir}, "more than one file of images", "train-images-idx3-ubyte", "instead of the directory")
		ds := open(t, data.Spec{Path: filepath.Join(dir, "t10k-images-idx3-ubyte.gz")})
		if ds.Records() != 10 {
			t.Errorf("%+v", ds.Files())
		}
		refuse(t, data.Spec{Path: filepath.Join(dir, "t10k-labels-idx1-ubyte.gz"), Format: dataset.IDX}, "is named like")
	})
	t.Run("images without labels and a directory without images are refused", func(t *testing.T) {
		dir := t.TempDir()
		saveMNIST(t, dir, "train", "", 2)
		if err := os.Remove(filepath.Join(dir, "train-labels-idx1-ubyte")); err != nil {
			t.Fatal(err)
		}
		refuse(t, data.Spec{Path: dir}, "train-labels-idx1-ubyte and train-labels-idx1-ubyte.gz")
		refuse(t, data.Spec{Path: t.TempDir(), Format: dataset.IDX}, "holds no images")
	})
	t.Run("a schema that does not fit is refused with both shapes", func(t *testing.T) {
		dir := t.TempDir()
		saveMNIST(t, dir, "train", "", 2)
		for name, c := range map[string]struct {
			features []graph.Feature
			wantText string
		}{
			"CIFAR-10":    {[]graph.Feature{{Name: "image", DType: graph.Float32, Shape: []int{32, 32, 3}}, mnist[1]}, `"image" has 3072 elements, and the image 784`},
			"two images":  {[]graph.Feature{mnist[0], {Name: "mask", DType: graph.Uint8, Shape: []int{28, 28}}}, "no feature has a single element"},
			"one feature": {mnist[:1], "1 features, not 2"},
			"real labels": {[]graph.Feature{mnist[0], {Name: "y", DType: graph.Float32}}, `"y" is of float32`},
		} {
			t.Run(name, func(t *testing.T) {
				refuse(t, data.Spec{Path: dir, Features: c.features}, "[28 28] pixels", c.wantText)
			})
		}
	})
}

func TestSynthetic(t *testing.T) {
	t.Run("the path's canonical form has every parameter", func(t *testing.T) {
		for path, want := range map[string]string{
			"synthetic://digits":                   "synthetic://digits?records=10000&seed=1",
			"synthetic://digits?seed=7&records=30": "synthetic://digits?records=30&seed=7",
		} {
			if got := paths(open(t, data.Spec{Path: path, Features: mnist})); !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %q", path, got)
			}
		}
	})
	t.Run("the parameters decide the fingerprint, not how they are written", func(t *testing.T) {
		a := open(t, data.Spec{Path: "synthetic://digits"})
		b := open(t, data.Spec{Path: "synthetic://digits?seed=1"})
		c := open(t, data.Spec{Path: "synthetic://digits?seed=2"})
		if a.Fingerprint() != b.Fingerprint() || a.Fingerprint() == c.Fingerprint() {
			t.Error("fingerprints do not follow the parameters")
		}
	})
	for path, wantText := range map[string]string{
		"synthetic://digits?record=5":            `"record" is not known`,
		"synthetic://digits?records=0":           `records="0"`,
		"synthetic://digits?records=many":        `records="many"`,
		"synthetic://digits?records=99999999999": "not a number from 1 to",
		"synthetic://digits?seed=-1":             `seed="-1"`,
		"synthetic://digits?seed=1&seed=2":       "2 times",
		"synthetic://letters":                    "no such synthetic data set",
		"synthetic://digits/train":               "no such synthetic data set",
		"synthetic://digits?seed=%zz":            "synthetic",
	} {
		t.Run(fmt.Sprintf("%s is refused", path), func(t *testing.T) {
			refuse(t, data.Spec{Path: path}, wantText)
		})
	}
}
