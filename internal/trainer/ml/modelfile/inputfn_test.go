package modelfile

import (
	"encoding/binary"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// imageRecord is a record with 64 pixels, counted from first, and a label.
func imageRecord(first float32, label int64) graph.Example {
	pixels := make([]float32, 64)
	for i := range pixels {
		pixels[i] = first + float32(i)
	}
	return graph.Example{{Floats: pixels}, {Ints: []int64{label}}}
}

func TestInputFunction(t *testing.T) {
	records := []graph.Example{imageRecord(3, 2), imageRecord(100, 0), imageRecord(-7, 1)}
	var scaled []float32
	for _, r := range records {
		for _, p := range r[0].Floats {
			scaled = append(scaled, p/255)
		}
	}

	for _, file := range []string{"june_2019_mended.py", "august_2019.py"} {
		t.Run("the input_fn of "+file+" scales the pixels and flattens the labels", func(t *testing.T) {
			m, _ := loadFile(t, "testdata/"+file, Options{})
			inputs, labels, err := m.Feed.Function(records)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]float32{scaled}, inputs); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]int32{2, 0, 1}, labels); diff != "" {
				t.Error(diff)
			}
		})
	}

	t.Run("the input_fn of May 2019 gives the first bytes of the pixels, as it does in numpy", func(t *testing.T) {
		m, _ := loadFile(t, "testdata/may_2019.py", Options{})
		inputs, labels, err := m.Feed.Function(records)
		if err != nil {
			t.Fatal(err)
		}
		var want []float32
		for _, r := range records {
			var raw []byte
			for _, p := range r[0].Floats {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(p))
			}
			for _, b := range raw[:64] {
				want = append(want, float32(b)/255)
			}
		}
		if diff := cmp.Diff([][]float32{want}, inputs); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]int32{2, 0, 1}, labels); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("one record more or less changes nothing for the others", func(t *testing.T) {
		m, _ := loadFile(t, "testdata/june_2019_mended.py", Options{})
		inputs, labels, err := m.Feed.Function(records[:1])
		if err != nil || len(labels) != 1 || cmp.Diff(scaled[:64], inputs[0]) != "" {
			t.Errorf("got %v, %v, %v", inputs, labels, err)
		}
	})

	t.Run("many goroutines may call it at once", func(t *testing.T) {
		m, _ := loadFile(t, "testdata/august_2019.py", Options{})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					inputs, _, err := m.Feed.Function(records)
					if err != nil || cmp.Diff(scaled, inputs[0]) != "" {
						t.Errorf("got %v, %v", inputs, err)
						return
					}
				}
			})
		}
		wg.Wait()
	})

	for name, c := range map[string]struct {
		record graph.Example
		want   string
	}{
		"a record with a feature missing is refused": {graph.Example{{Floats: make([]float32, 64)}}, "record 0 has 1 features; 2 are declared"},
		"a record with a short feature is refused with line": {
			graph.Example{{Floats: make([]float32, 63)}, {Ints: []int64{1}}}, `august_2019.py:42:39: tf.io.parse_single_example: feature "image" has 63 elements in a record, and shape (8, 8)`,
		},
		"a record with a feature of another type is refused": {graph.Example{{Ints: make([]int64, 64)}, {Ints: []int64{1}}}, `feature "image" of a record does not hold float32`},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := loadFile(t, "testdata/august_2019.py", Options{})
			_, _, err := m.Feed.Function([]graph.Example{c.record})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}
