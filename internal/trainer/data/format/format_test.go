package format

import (
	"strings"
	"testing"
)

func TestTheFormatIsToldByTheNamesOfTheFiles(t *testing.T) {
	for files, want := range map[string]string{
		"":                                       RecordIO,
		"data-0000 data-0001":                    RecordIO,
		"README data-0000.tfrecord":              TFRecord,
		"a/b.TFRecords.GZ":                       TFRecord,
		"b.tfrecord.zlib":                        TFRecord,
		"rows/Flowers.CSV":                       CSV,
		"rows.csv.gz":                            RecordIO, // no CSV that can be read here
		"tfrecord/data-0000":                     RecordIO,
		"t10k-images-idx3-ubyte":                 IDX,
		"train-labels-idx1-ubyte":                RecordIO,
		"mnist/train-images.idx3-ubyte.gz x.csv": IDX,
	} {
		if got := Guess(strings.Fields(files)); got != want {
			t.Errorf("%q is told to be %s, want %s", files, got, want)
		}
	}
}

func TestNoFileIsClaimedByTwoFormats(t *testing.T) {
	for _, file := range []string{"a.tfrecord", "a.tfrecords.gz", "a.csv", "train-images-idx3-ubyte", "train-images-idx3-ubyte.gz", "train-images.idx4-ubyte"} {
		var by []string
		for _, r := range table() {
			if r.isNamed != nil && r.isNamed(file) {
				by = append(by, r.name)
			}
		}
		if len(by) != 1 {
			t.Errorf("%s is claimed by %v", file, by)
		}
	}
}

func TestPeopleAreToldOfEveryFormat(t *testing.T) {
	for _, name := range Names() {
		if !strings.Contains(Choice(), name) || !strings.Contains(Described(), "`"+name+"`") {
			t.Errorf("%s is not in %q or not in %q", name, Choice(), Described())
		}
	}
	if !strings.HasPrefix(Described(), "`"+Default+"` (default), ") {
		t.Errorf("%q does not say which is meant where a job says nothing", Described())
	}
}
