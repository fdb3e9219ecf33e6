package data_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

func TestARecordOfADataSetOfIndicesIsItsNumber(t *testing.T) {
	d := open(t, data.Spec{Path: "indices://mine?records=10000"}) // several chunks
	b, err := data.NewBatcher(d, graph.Feed{Raw: true}, 4)
	if err != nil {
		t.Fatal(err)
	}
	var batch graph.Batch
	for _, want := range [][]int64{{9999, 0, 4095, 4096}, {5}} {
		if err := b.Fill(t.Context(), 0, want, &batch); err != nil {
			t.Fatal(err)
		}
		if batch.N != len(want) || len(batch.Records) != len(want) {
			t.Fatalf("%d records, %d", batch.N, len(batch.Records))
		}
		for i, r := range batch.Records {
			if len(r) != 8 || binary.LittleEndian.Uint64(r) != uint64(want[i]) {
				t.Errorf("record %d is % x", want[i], r)
			}
		}
	}
	if err := b.Fill(t.Context(), 0, []int64{10000}, &batch); err == nil {
		t.Error("a record behind the last one")
	}
}

func TestTheNameAndTheNumberOfIndicesIdentifyTheirDataSet(t *testing.T) {
	mine := open(t, data.Spec{Path: "indices://mine?records=10"}).Fingerprint()
	if again := open(t, data.Spec{Path: "indices://mine?records=10"}).Fingerprint(); again != mine {
		t.Error("the same data set has another fingerprint")
	}
	for _, other := range []string{"indices://yours?records=10", "indices://mine?records=11"} {
		if open(t, data.Spec{Path: other}).Fingerprint() == mine {
			t.Errorf("%s has the same fingerprint", other)
		}
	}
}

func TestIndicesThatNameNoDataSetAreRefusedWithTheForm(t *testing.T) {
	for path, want := range map[string]string{
		"indices://?records=10":              "indices://NAME?records=60000",
		"indices://mine":                     "indices://NAME?records=60000",
		"indices://mine?records=10&seed=1":   "indices://NAME?records=60000",
		"indices://mine/x?records=10":        "indices://NAME?records=60000",
		"indices://mine?records=0":           "at least 1",
		"indices://mine?records=many":        "at least 1",
		"indices://mine?records=1&records=2": "indices://NAME?records=60000",
		"indices://mine?records=%zz":         "invalid URL escape",
	} {
		d, err := data.Open(t.Context(), data.Spec{Path: path})
		if err == nil {
			err = d.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; wanted %q", path, err, want)
		}
	}
	_, err := data.Open(t.Context(), data.Spec{Path: "indices://mine?records=9", Features: []graph.Feature{{Name: "x", DType: graph.Float32}}})
	if err == nil || !strings.Contains(err.Error(), "worker command") {
		t.Errorf("for a model file: %v", err)
	}
}
