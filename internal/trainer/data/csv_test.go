package data_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/table"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// flowers is the schema of a model on the columns of flowersCSV.
var flowers = []graph.Feature{
	{Name: "features", DType: graph.Float32, Shape: []int{2}},
	{Name: "label", DType: graph.Int64, Shape: []int{1}},
}

var flowersTable = table.Options{
	Columns: map[string][]string{"features": {"length", "width"}, "label": {"species"}},
	Words:   map[string][]string{"species": {"setosa", "versicolor"}},
}

func flowersCSV(rows int) []byte {
	var b strings.Builder
	b.WriteString("species,remark,width,length\n")
	for i := range rows {
		fmt.Fprintf(&b, "%s,\"wild,\nblue\",%d.5,%d\n", []string{"setosa", "versicolor"}[i%2], i, i)
	}
	return []byte(b.String())
}

func TestCSV(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flowers.csv")
	saveBytes(t, path, flowersCSV(5000))
	t.Run("rows feed a model by the names of their columns", func(t *testing.T) {
		ds := open(t, data.Spec{Path: path, Features: flowers, Table: flowersTable})
		if l := ds.Layout(0); ds.Records() != 5000 || l.Format != dataset.CSV || l.Chunks < 2 || ds.Codec() != dataset.TFExampleCodec {
			t.Fatalf("%d records, %+v", ds.Records(), l)
		}
		b, err := data.NewBatcher(ds, graph.Feed{Features: flowers, Columns: []graph.Column{{Feature: "features"}}, Label: "label"}, 3)
		if err != nil {
			t.Fatal(err)
		}
		var batch graph.Batch
		if err := b.Fill(t.Context(), 0, []int64{4999, 0, 7}, &batch); err != nil {
			t.Fatal(err)
		}
		if want := []float32{4999, 4999.5, 0, 0.5, 7, 7.5}; !slices.Equal(batch.Inputs[0], want) || !slices.Equal(batch.Labels, []int32{1, 0, 1}) {
			t.Errorf("%v and %v, want %v", batch.Inputs[0], batch.Labels, want)
		}
	})
	t.Run("what the columns mean is in the fingerprint", func(t *testing.T) {
		first := open(t, data.Spec{Path: path, Features: flowers, Table: flowersTable}).Fingerprint()
		other := flowersTable
		other.Words = map[string][]string{"species": {"versicolor", "setosa"}}
		if open(t, data.Spec{Path: path, Features: flowers, Table: other}).Fingerprint() == first {
			t.Error("words in another order are the same data")
		}
		other = flowersTable
		other.Columns = map[string][]string{"features": {"width", "length"}, "label": {"species"}}
		if open(t, data.Spec{Path: path, Features: flowers, Table: other}).Fingerprint() == first {
			t.Error("columns in another order are the same data")
		}
	})
	t.Run("a column that is not there, and a cell that does not fit, are refused with file and line", func(t *testing.T) {
		refuse(t, data.Spec{Path: path, Features: flowers}, path, `needs a column "features_0"`, `"species" "remark"`)
		bad := filepath.Join(t.TempDir(), "bad.csv")
		saveBytes(t, bad, append(flowersCSV(1), "setosa,,,3\n"...))
		refuse(t, data.Spec{Path: bad, Features: flowers, Table: flowersTable}, bad, "line 4", `column "width": "" is empty`)
	})
	t.Run("a header without rows is left out", func(t *testing.T) {
		empty := filepath.Join(t.TempDir(), "empty.csv")
		saveBytes(t, empty, flowersCSV(0))
		refuse(t, data.Spec{Path: empty, Features: flowers, Table: flowersTable}, "holds no records")
	})
}
