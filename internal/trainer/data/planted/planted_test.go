package planted

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/example"
)

// known are the hashes of 1,000 records: they change with Version only, because every job on the data has another
// lineage then.
var known = map[string]string{
	"frappe": "86d66ce4fdb3872cf97deeed",
	"census": "1ff69e0870112a1a6c75515d",
}

func TestTheRecordsOfAVersionAreTheSameEverywhere(t *testing.T) {
	for _, table := range All() {
		h := sha256.New()
		for i := range uint32(1000) {
			h.Write(table.Record(7, i))
		}
		if got := fmt.Sprintf("%x", h.Sum(nil)[:12]); got != known[table.Name] {
			t.Errorf("%s: %s, and %q is known", table.Version, got, known[table.Name])
		}
	}
}

func TestASeedHasRecordsOfItsOwn(t *testing.T) {
	for _, table := range All() {
		if bytes.Equal(table.Record(1, 5), table.Record(2, 5)) || bytes.Equal(table.Record(1, 5), table.Record(1, 6)) {
			t.Errorf("%s: two records are equal", table.Name)
		}
		if !bytes.Equal(table.Record(1, 5), table.Record(1, 5)) {
			t.Errorf("%s: a record is not always the same", table.Name)
		}
	}
}

func TestTheShareOfLabelOneIsWhatIsStatedAndCategoriesAreThoseOfTheirFields(t *testing.T) {
	for name, want := range map[string]float64{"frappe": 1. / 3, "census": 1. / 4} {
		table, ok := ByName(name)
		if !ok {
			t.Fatalf("there is no %s", name)
		}
		decoder, values := example.NewDecoder(table.Features), codec.NewExample(table.Features)
		const records = 4000
		ones := 0
		for i := range uint32(records) {
			if err := decoder.Decode(table.Record(3, i), values); err != nil {
				t.Fatal(err)
			}
			ones += int(values[len(values)-1].Ints[0])
			before := int64(1)
			for k, categories := range frappeFields {
				if id := values[0].Ints[min(k, len(values[0].Ints)-1)]; name == "frappe" && (id < before || id >= before+int64(categories)) {
					t.Fatalf("field %d of record %d is %d", k, i, id)
				}
				before += int64(categories)
			}
			for k, f := range censusFields {
				if name == "census" && (values[k].Ints[0] < 0 || values[k].Ints[0] >= int64(f.categories)) {
					t.Fatalf("%s of record %d is %d", f.name, i, values[k].Ints[0])
				}
			}
		}
		if share := float64(ones) / records; share < want-0.04 || share > want+0.04 {
			t.Errorf("%s: the share of label 1 is %.3f, and should be about %.3f", name, share, want)
		}
	}
	if _, ok := ByName("digits"); ok {
		t.Error("digits are no table")
	}
}
