package modelfile

import (
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// BenchmarkLoad is what every start of a worker pays.
func BenchmarkLoad(b *testing.B) {
	src := readFile(b, "testdata/last_release.py")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Load("m.py", src, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkInputFunction is a minibatch of ten records through an input_fn over numpy; files with feed pay nothing.
func BenchmarkInputFunction(b *testing.B) {
	m, _, err := Load("m.py", readFile(b, "testdata/june_2019_mended.py"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	records := make([]graph.Example, 10)
	for i := range records {
		records[i] = imageRecord(float32(i), 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := m.Feed.Function(records); err != nil {
			b.Fatal(err)
		}
	}
}
