package modelfile

import (
	"math"
	"testing"

	"go.starlark.net/starlark"
	"pgregory.net/rapid"
)

// fataler is what *testing.T and *rapid.T share.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// run executes Python statements behind `import numpy as np` and `import tensorflow as tf`, and gives the module.
func run(t fataler, src string) (starlark.StringDict, error) {
	t.Helper()
	report := &Report{}
	translated, refused := translate("import numpy as np\nimport tensorflow as tf\n"+src, nil, report)
	if refused != nil {
		t.Fatal(refused)
	}
	s := &session{limits: defaultLimits, report: report, layers: newLayerGraph(), schema: &schema{}}
	l := &loader{
		file: "m.py", opt: Options{}, parts: translated.parts, facade: newFacade(), shared: &sharedValues{values: starlark.StringDict{}},
		session: s, thread: s.thread("m.py"),
	}
	return l.execute(l.file, translated)
}

// TestNumpy compares with what numpy 1.26 answers; the values follow from its documented rules.
func TestNumpy(t *testing.T) {
	for name, c := range map[string]struct {
		src   string
		dtype dtype
		want  []float64
	}{
		"integers divide as float64":                       {"x = np.array([1, 2]) / 2", float64Type, []float64{0.5, 1}},
		"float32 divides in float32":                       {"x = np.array([1], dtype='float32') / 3", float32Type, []float64{float64(float32(1) / 3)}},
		"float32 stays with a Python float":                {"x = np.array([1], dtype=np.float32) * 0.1", float32Type, []float64{float64(float32(0.1))}},
		"uint8 wraps":                                      {"x = np.array([250], dtype=np.uint8) + 10", uint8Type, []float64{4}},
		"int32 and float32 make float64":                   {"x = np.array([1], dtype='int32') + np.array([0.5], dtype='float32')", float64Type, []float64{1.5}},
		"uint8 and float32 make float32":                   {"x = np.array([1], dtype='uint8') + np.array([0.5], dtype='float32')", float32Type, []float64{1.5}},
		"int64 and int32 make int64":                       {"x = np.array([1]) - np.array([3], dtype='int32')", int64Type, []float64{-2}},
		"a float makes float64 of integers":                {"x = np.array([1, 2]) * 1.5", float64Type, []float64{1.5, 3}},
		"a number may stand on the left":                   {"x = 1 - np.array([0.25, 3])", float64Type, []float64{0.75, -2}},
		"minus negates":                                    {"x = -np.array([1, -2])", int64Type, []float64{-1, 2}},
		"astype cuts floats off towards zero":              {"x = np.array([1.9, -1.9]).astype(np.int32)", int32Type, []float64{1, -1}},
		"astype wraps integers":                            {"x = np.array([300, -1]).astype('uint8')", uint8Type, []float64{44, 255}},
		"astype rounds to float32":                         {"x = np.array([0.1]).astype(np.float32)", float32Type, []float64{float64(float32(0.1))}},
		"division in place changes the array itself":       {"x = np.array([4.0]); y = x; y /= 2", float64Type, []float64{2}},
		"division in place changes the array of a view":    {"x = np.array([[4.0], [6.0]]); y = x[1]; y /= 2", float64Type, []float64{4, 3}},
		"a reshape is a view":                              {"x = np.array([1.0, 2.0]); y = np.reshape(x, (2, 1)); y *= 3", float64Type, []float64{3, 6}},
		"astype is a copy":                                 {"x = np.array([1.0]); y = x.astype(np.float64); y *= 3", float64Type, []float64{1}},
		"flatten is a copy":                                {"x = np.array([[1.0]]); y = x.flatten(); y *= 3", float64Type, []float64{1}},
		"division without an operator in place does not":   {"x = np.array([4.0]); y = x; y = y / 2", float64Type, []float64{4}},
		"float64 is rounded into a float32 array in place": {"x = np.array([1], dtype='float32'); x /= np.array([3.0])", float32Type, []float64{float64(float32(1.0 / 3))}},
		"frombuffer reads bytes little-endian":             {"x = np.frombuffer(np.array([1.0], dtype='float32'), dtype='uint8')", uint8Type, []float64{0, 0, 128, 63}},
		"frombuffer reads float64 when nothing is said":    {"x = np.frombuffer(np.array([1.5]))", float64Type, []float64{1.5}},
		"frombuffer reads negative integers":               {"x = np.frombuffer(np.array([255, 255, 255, 255], dtype='uint8'), np.int32)", int32Type, []float64{-1}},
		"resize cuts off":                                  {"x = np.resize(np.array([1, 2, 3]), (2, 1))", int64Type, []float64{1, 2}},
		"resize repeats":                                   {"x = np.resize(np.array([1, 2]), new_shape=5)", int64Type, []float64{1, 2, 1, 2, 1}},
		"concatenate joins rows":                           {"x = np.concatenate([np.array([[1, 2]]), np.array([[3, 4]])], axis=0)", int64Type, []float64{1, 2, 3, 4}},
		"concatenate promotes":                             {"x = np.concatenate([np.array([1]), np.array([0.5])])", float64Type, []float64{1, 0.5}},
		"stack makes a new axis":                           {"x = np.stack([np.array([1, 2]), np.array([3, 4])])[1]", int64Type, []float64{3, 4}},
		"array of arrays":                                  {"x = np.array([np.array([1], dtype='int32'), np.array([2], dtype='int32')])", int32Type, []float64{1, 2}},
		"array of mixed numbers is float64":                {"x = np.array([[1, 2.5], [3, 4]])", float64Type, []float64{1, 2.5, 3, 4}},
		"indices may be negative, and more than one":       {"x = np.array([[1, 2], [3, 4]])[-1, 0]", int64Type, []float64{3}},
		"slices take rows":                                 {"x = np.array([[1, 2], [3, 4], [5, 6]])[1:]", int64Type, []float64{3, 4, 5, 6}},
		"a loop goes over rows":                            {"x = np.concatenate([r * 2 for r in np.array([[1, 2], [3, 4]])])", int64Type, []float64{2, 4, 6, 8}},
		"sum adds arrays":                                  {"x = sum([np.array([1, 2]), np.array([3, 4])])", int64Type, []float64{4, 6}},
		"shape and len are numbers":                        {"y = np.array([[1, 2, 3]]); x = np.array([len(y), y.shape[1], y.size, y.ndim])", int64Type, []float64{1, 3, 3, 2}},
		"elements convert to numbers":                      {"x = np.array([int(np.array([2.9])[0]), float(np.array([3])) / 2])", float64Type, []float64{2, 1.5}},
		"a tensor's numpy is its array":                    {"x = tf.convert_to_tensor(np.array([1.5])).numpy()", float64Type, []float64{1.5}},
		"tensors compute in their own type":                {"x = tf.math.divide(tf.cast(np.array([10]), tf.float32), 4).numpy()", float32Type, []float64{2.5}},
		"tensors reshape":                                  {"x = tf.reshape(tf.convert_to_tensor(np.array([[1], [2]])), [-1]).numpy()", int64Type, []float64{1, 2}},
		"a list grows in place":                            {"y = [1]; z = y; z += [2]; z += z; x = np.array(y)", int64Type, []float64{1, 2, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := run(t, c.src)
			if err != nil {
				t.Fatal(err)
			}
			x, ok := g["x"].(*array)
			if !ok || x.dtype != c.dtype || x.size() != len(c.want) {
				t.Fatalf("x is %v, want %d elements of %s", g["x"], len(c.want), c.dtype)
			}
			for k, want := range c.want {
				if x.at(k) != want {
					t.Errorf("element %d is %v, want %v", k, x.at(k), want)
				}
			}
		})
	}
}

func TestIsInstanceAnswersAsPythonDoes(t *testing.T) {
	g, err := run(t, `
from tensorflow.python.framework.ops import EagerTensor
a = np.array([1])
e = tf.convert_to_tensor(a)
answers = [isinstance(e, EagerTensor), isinstance(a, EagerTensor), isinstance(a, np.ndarray), isinstance(a, (int, EagerTensor)),
           isinstance(True, int), isinstance("s", str), isinstance({}, (list, dict)), isinstance(1, float), hasattr(e, "numpy"), hasattr(a, "numpy")]
`)
	if err != nil {
		t.Fatal(err)
	}
	want := "[True, False, True, False, True, True, True, False, True, False]"
	if got := g["answers"].String(); got != want {
		t.Errorf("answers %s, want %s", got, want)
	}
}

func TestArrayMemory(t *testing.T) {
	t.Run("reading an array's bytes back gives the array", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			d := rapid.SampledFrom([]dtype{uint8Type, int32Type, int64Type, float32Type, float64Type}).Draw(t, "dtype")
			raw := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "raw")
			raw = raw[:len(raw)/d.bytes()*d.bytes()]
			s := &session{limits: defaultLimits}
			a, err := newArray(s, d, []int{len(raw) / d.bytes()})
			if err != nil {
				t.Fatal(err)
			}
			a.fill(raw)
			for k := range a.size() {
				if math.IsNaN(a.at(k)) { // a NaN's payload does not survive the conversion to float64
					t.Skip("NaN")
				}
			}
			if got := a.raw(); string(got) != string(raw) {
				t.Fatalf("got % x, want % x", got, raw)
			}
		})
	})
	t.Run("operations on float32 round as the processor's float32 does", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			x, y := rapid.Float32().Draw(t, "x"), rapid.Float32().Draw(t, "y")
			g, err := run(t, "def loss(x, y): return [x + y, x - y, x * y, x / y]")
			if err != nil {
				t.Fatal(err)
			}
			s := &session{limits: defaultLimits}
			one := func(v float32) *array { return &array{dtype: float32Type, shape: []int{1}, f: []float64{float64(v)}} }
			list, err := starlark.Call(s.thread("t"), g["loss"], starlark.Tuple{one(x), one(y)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for k, want := range []float32{x + y, x - y, x * y, x / y} {
				got := float32(list.(*starlark.List).Index(k).(*array).f[0])
				if got != want && !math.IsNaN(float64(want)) {
					t.Errorf("operation %d of %v and %v gives %v, want %v", k, x, y, got, want)
				}
			}
		})
	})
}
