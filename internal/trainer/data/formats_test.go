package data

import (
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/planted"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/synth"
)

func TestGuessFormatGoesByTheNamesOfTheFiles(t *testing.T) {
	for files, want := range map[string]string{
		"":                                       dataset.RecordIO,
		"data-0000 data-0001":                    dataset.RecordIO,
		"README data-0000.tfrecord":              dataset.TFRecord,
		"a/b.TFRecords.GZ":                       dataset.TFRecord,
		"b.tfrecord.zlib":                        dataset.TFRecord,
		"rows/Flowers.CSV":                       dataset.CSV,
		"rows.csv.gz":                            dataset.RecordIO, // no CSV that can be read here
		"tfrecord/data-0000":                     dataset.RecordIO,
		"t10k-images-idx3-ubyte":                 dataset.IDX,
		"train-labels-idx1-ubyte":                dataset.RecordIO,
		"mnist/train-images.idx3-ubyte.gz x.csv": dataset.IDX,
	} {
		if got := guessFormat(strings.Fields(files)); got != want {
			t.Errorf("%q is guessed to be %s, want %s", files, got, want)
		}
	}
}

func TestEverySyntheticDataSetOfTheAPIHasAGenerator(t *testing.T) {
	var generators []string
	for _, set := range synth.Sets() {
		generators = append(generators, set.Name)
	}
	for _, table := range planted.All() {
		generators = append(generators, table.Name)
	}
	if names := dataset.SyntheticSets(); !slices.Equal(names, generators) {
		t.Errorf("the API names %q, and there are generators of %q", names, generators)
	}
}
