package data_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datatest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/tfrecord"
)

// TestAChangeInTheMiddleOfAFileChangesTheFingerprint replaces one byte of contents of the same size, far from both
// ends.
func TestAChangeInTheMiddleOfAFileChangesTheFingerprint(t *testing.T) {
	records := func(middle byte) (all [][]byte) {
		for i := range 400 {
			all = append(all, bytes.Repeat([]byte{byte(i)}, 1000))
		}
		all[200][500] = middle
		return all
	}
	rows := func(middle byte) []byte {
		text := flowersCSV(40_000)
		at := len(text)/2 + bytes.IndexByte(text[len(text)/2:], '\n') + 1
		text[at] = middle
		return text
	}
	images := func(middle byte) []byte {
		file := append([]byte{0, 0, 8, 3, 0, 0, 1, 0, 0, 0, 0, 28, 0, 0, 0, 28}, make([]byte, 256*28*28)...)
		file[len(file)/2] = middle
		return file
	}
	labels := append([]byte{0, 0, 8, 1, 0, 0, 1, 0}, make([]byte, 256)...)
	for name, c := range map[string]struct {
		file     func(middle byte) []byte
		path     string
		a, b     byte
		spec     data.Spec
		withIDX1 bool
	}{
		"TFRecord":              {file: func(m byte) []byte { return datatest.TFRecord(t, tfrecord.None, records(m)...) }, path: "a.tfrecord", a: 1, b: 2},
		"a gzip'd TFRecord":     {file: func(m byte) []byte { return datatest.TFRecord(t, tfrecord.Gzip, records(m)...) }, path: "a.tfrecord", a: 1, b: 2},
		"CSV":                   {file: rows, path: "a.csv", a: '1', b: '2', spec: data.Spec{Features: flowers, Table: flowersTable}},
		"IDX, the images' file": {file: images, path: "train-images-idx3-ubyte", a: 1, b: 2, withIDX1: true},
	} {
		t.Run(name, func(t *testing.T) {
			var sets []*data.Dataset
			for _, middle := range []byte{c.a, c.b, c.a} {
				dir := t.TempDir()
				saveBytes(t, filepath.Join(dir, c.path), c.file(middle))
				if c.withIDX1 {
					saveBytes(t, filepath.Join(dir, "train-labels-idx1-ubyte"), labels)
				}
				spec := c.spec
				spec.Path = dir
				if strings.HasSuffix(c.path, ".tfrecord") {
					spec.Format = "tfrecord"
				}
				sets = append(sets, open(t, spec))
			}
			if sets[0].Fingerprint() != sets[2].Fingerprint() {
				t.Error("the same contents have another fingerprint")
			}
			if sets[0].Fingerprint() == sets[1].Fingerprint() {
				t.Error("other contents have the same fingerprint")
			}
			if err := sets[1].Match(sets[0].Files()); c.file(c.a) != nil && err == nil {
				t.Error("other contents match")
			}
		})
	}
}
