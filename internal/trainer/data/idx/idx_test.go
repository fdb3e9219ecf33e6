package idx_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datatest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/idx"
)

const records = 5

// imagesFile and labelsFile are five 2×3 images, whose pixels count up from 0, and their labels 9 … 5.
func imagesFile() []byte {
	b := idx.AppendHeader(nil, records, 2, 3)
	for i := range records * 6 {
		b = append(b, byte(i))
	}
	return b
}

func labelsFile() []byte {
	return append(idx.AppendHeader(nil, records), 9, 8, 7, 6, 5)
}

// inMemory is a file that need not be closed.
type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

func stored(name string, b []byte) idx.File {
	return idx.File{Name: name, Size: int64(len(b)), Open: func(context.Context) (idx.Reader, error) { return inMemory{bytes.NewReader(b)}, nil }}
}

func TestPair(t *testing.T) {
	for _, end := range []string{"", ".gz"} {
		t.Run("any range of records is read: images"+end, func(t *testing.T) {
			images, labels := imagesFile(), labelsFile()
			if end != "" {
				images, labels = datatest.Gzip(images), datatest.Gzip(labels)
			}
			pair, err := idx.OpenPair(t.Context(), stored("dir/images"+end, images), stored("dir/labels"+end, labels))
			if err != nil {
				t.Fatal(err)
			}
			if pair.Records != records || !slices.Equal(pair.Shape, []int{2, 3}) || pair.RecordBytes() != 7 {
				t.Fatalf("%+v", pair)
			}
			for lo := int64(0); lo <= records; lo++ {
				for hi := lo; hi <= records; hi++ {
					got, err := pair.Read(t.Context(), lo, hi)
					if err != nil || int64(len(got)) != hi-lo {
						t.Fatalf("%d to %d: %d records, %v", lo, hi, len(got), err)
					}
					for i, r := range got {
						n := byte(lo) + byte(i)
						if want := []byte{6 * n, 6*n + 1, 6*n + 2, 6*n + 3, 6*n + 4, 6*n + 5, 9 - n}; !bytes.Equal(r, want) {
							t.Errorf("record %d: %v, want %v", n, r, want)
						}
					}
				}
			}
			if _, err := pair.Read(t.Context(), 3, records+1); err == nil {
				t.Error("read a record that is not there")
			}
		})
	}
}

func TestBadPairs(t *testing.T) {
	huge := idx.AppendHeader(nil, 1<<31, 1<<10, 1<<10)
	for name, c := range map[string]struct {
		images, labels []byte
		gz             bool
		kind           error
		wantText       string
	}{
		"images cut off":                          {images: imagesFile()[:40], kind: idx.ErrDamaged, wantText: "offset 16: [5 2 3] unsigned bytes need a file of 46 bytes, and it has 40"},
		"images with bytes behind":                {images: append(imagesFile(), 0), kind: idx.ErrDamaged, wantText: "has 47"},
		"labels cut off":                          {labels: labelsFile()[:11], kind: idx.ErrDamaged, wantText: "labels"},
		"a header cut off":                        {images: imagesFile()[:9], kind: idx.ErrDamaged, wantText: "header is not whole"},
		"an empty file":                           {images: []byte{}, kind: idx.ErrDamaged, wantText: "offset 0"},
		"text":                                    {images: []byte("pixel0,pixel1,pixel2"), kind: idx.ErrForeign, wantText: "70 69 78 65"},
		"floats":                                  {images: []byte{0, 0, 0x0d, 1, 0, 0, 0, 1, 0, 0, 0, 0}, kind: idx.ErrForeign, wantText: "element type 0x0d"},
		"labels in the place of images":           {images: labelsFile(), kind: idx.ErrForeign, wantText: "1 dimensions where images"},
		"images in the place of labels":           {labels: imagesFile(), kind: idx.ErrForeign, wantText: "3 dimensions where labels"},
		"five dimensions":                         {images: []byte{0, 0, 8, 5}, kind: idx.ErrForeign, wantText: "5 dimensions"},
		"images without pixels":                   {images: idx.AppendHeader(nil, 5, 0, 3), kind: idx.ErrForeign, wantText: "dimension 1 is 0"},
		"images of too many pixels":               {images: idx.AppendHeader(nil, 5, 1<<20, 1<<20), kind: idx.ErrForeign, wantText: "dimension 2"},
		"a plain file that claims petabytes":      {images: huge, kind: idx.ErrDamaged, wantText: "need a file of"},
		"other numbers of images and labels":      {labels: append(idx.AppendHeader(nil, 4), 1, 2, 3, 4), wantText: "5 images, and its labels"},
		"compressed images cut off":               {images: datatest.Gzip(imagesFile())[:40], labels: datatest.Gzip(labelsFile()), gz: true, kind: idx.ErrDamaged, wantText: "images"},
		"compressed images that hold less":        {images: datatest.Gzip(imagesFile()[:40]), labels: datatest.Gzip(labelsFile()), gz: true, kind: idx.ErrDamaged, wantText: "offset 40: it ends in record 4 of 5"},
		"compressed images that hold more":        {images: datatest.Gzip(append(imagesFile(), 1)), labels: datatest.Gzip(labelsFile()), gz: true, kind: idx.ErrDamaged, wantText: "it should end here"},
		"a compressed file that claims megabytes": {images: datatest.Gzip(idx.AppendHeader(nil, 1000, 100, 100)), labels: datatest.Gzip(labelsFile()), gz: true, kind: idx.ErrDamaged, wantText: "cannot come from a compressed file"},
		"a compressed file that claims petabytes": {images: datatest.Gzip(huge), labels: datatest.Gzip(labelsFile()), gz: true, wantText: "decompress it"},
		"plain images under a name with .gz":      {images: imagesFile(), labels: datatest.Gzip(labelsFile()), gz: true, kind: idx.ErrDamaged, wantText: "not a gzip file"},
	} {
		t.Run("refused with file and offset: "+name, func(t *testing.T) {
			end := ""
			if c.gz {
				end = ".gz"
			}
			if c.images == nil {
				c.images = imagesFile()
			}
			if c.labels == nil {
				c.labels = labelsFile()
			}
			pair, err := idx.OpenPair(t.Context(), stored("dir/images"+end, c.images), stored("dir/labels"+end, c.labels))
			if err == nil {
				_, err = pair.Read(t.Context(), 0, pair.Records)
			}
			if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.wantText) || !strings.Contains(err.Error(), "dir/") {
				t.Errorf("%v\nwant %v, saying %q", err, c.kind, c.wantText)
			}
		})
	}
}

func TestLabelsAreLookedForUnderTheNamesThatGoWithTheirImages(t *testing.T) {
	for images, want := range map[string][]string{
		"train-images-idx3-ubyte":   {"train-labels-idx1-ubyte", "train-labels-idx1-ubyte.gz"},
		"t10k-images.idx3-ubyte.gz": {"t10k-labels.idx1-ubyte.gz", "t10k-labels.idx1-ubyte"},
		"images-idx4-ubyte":         {"labels-idx1-ubyte", "labels-idx1-ubyte.gz"},
		"train-labels-idx1-ubyte":   nil,
		"data-0000":                 nil,
	} {
		if got := idx.LabelsNames(images); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", images, got, want)
		}
	}
}

func FuzzPair(f *testing.F) {
	f.Add(imagesFile(), labelsFile(), false)
	f.Add(datatest.Gzip(imagesFile()), datatest.Gzip(labelsFile()), true)
	f.Add(idx.AppendHeader(nil, 1<<31, 1<<15, 1<<15), labelsFile(), false)
	f.Fuzz(func(t *testing.T, images, labels []byte, compressed bool) {
		end := ""
		if compressed {
			end = ".gz"
		}
		pair, err := idx.OpenPair(t.Context(), stored("dir/images"+end, images), stored("dir/labels"+end, labels))
		if err != nil {
			return
		}
		got, err := pair.Read(t.Context(), 0, pair.Records)
		if err == nil && int64(len(got)) != pair.Records {
			t.Fatalf("%d records of %d", len(got), pair.Records)
		}
	})
}
