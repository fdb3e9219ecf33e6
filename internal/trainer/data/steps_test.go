package data

import (
	"math"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/farmhash"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

func texts(s string) quantity    { return quantity{kind: text, text: []byte(s)} }
func numbers(v float32) quantity { return quantity{kind: number, number: v} }
func integers(v int64) quantity  { return quantity{kind: whole, whole: v} }
func same(a, b quantity) bool {
	return a.kind == b.kind && string(a.text) == string(b.text) && a.number == b.number && a.whole == b.whole
}

// TestSteps runs each step of feature columns and preprocessing layers alone; what they should give is what TensorFlow
// and elasticdl_preprocessing document.
func TestSteps(t *testing.T) {
	words := graph.Step{Op: graph.Lookup, Words: []string{"red", "green"}}
	withOthers := graph.Step{Op: graph.Lookup, Words: words.Words, Count: 3}
	buckets := graph.Step{Op: graph.Bucketize, Boundaries: []float64{0, 10, 10, 20}}
	for name, c := range map[string]struct {
		step     graph.Step
		in, want quantity
		fails    string
	}{
		"a word has its place in the vocabulary":       {step: words, in: texts("green"), want: integers(1)},
		"a word of no vocabulary is missing":           {step: words, in: texts("blue"), want: quantity{}},
		"or in a bucket behind it":                     {step: withOthers, in: texts("blue"), want: integers(2 + farmhash.Bucket([]byte("blue"), 3))},
		"a number is no word":                          {step: words, in: integers(1), fails: "another type"},
		"below the first boundary is bucket 0":         {step: buckets, in: numbers(-0.5), want: integers(0)},
		"a boundary belongs to the bucket above":       {step: buckets, in: numbers(0), want: integers(1)},
		"of equal boundaries the last one counts":      {step: buckets, in: integers(10), want: integers(3)},
		"above the last boundary is the last bucket":   {step: buckets, in: numbers(1e9), want: integers(4)},
		"text has no bucket":                           {step: buckets, in: texts("1"), fails: "another type"},
		"integers are cut towards zero":                {step: graph.Step{Op: graph.ToInteger}, in: numbers(-2.9), want: integers(-2)},
		"infinity is no integer":                       {step: graph.Step{Op: graph.ToInteger}, in: numbers(float32(math.Inf(1))), fails: "no whole number"},
		"nor is NaN":                                   {step: graph.Step{Op: graph.Round}, in: numbers(float32(math.NaN())), fails: "no whole number"},
		"halves are rounded to even":                   {step: graph.Step{Op: graph.Round}, in: numbers(2.5), want: integers(2)},
		"an integer as a float":                        {step: graph.Step{Op: graph.ToFloat}, in: integers(3), want: numbers(3)},
		"text is no float":                             {step: graph.Step{Op: graph.ToFloat}, in: texts("3"), fails: "another type"},
		"an integer as text":                           {step: graph.Step{Op: graph.ToText}, in: integers(-7), want: texts("-7")},
		"a float has no text":                          {step: graph.Step{Op: graph.ToText}, in: numbers(1), fails: "another type"},
		"text with blanks is parsed":                   {step: graph.Step{Op: graph.ParseFloat}, in: texts(" 1.5\n"), want: numbers(1.5)},
		"other text is not":                            {step: graph.Step{Op: graph.ParseFloat}, in: texts("1,5"), fails: `"1,5" is no number`},
		"whole numbers are parsed":                     {step: graph.Step{Op: graph.ParseInt}, in: texts("-42 "), want: integers(-42)},
		"beyond 64 bits they are not":                  {step: graph.Step{Op: graph.ParseInt}, in: texts("9223372036854775808"), fails: "no whole number"},
		"an offset is added":                           {step: graph.Step{Op: graph.Offset, Count: 100}, in: integers(5), want: integers(105)},
		"to integers alone":                            {step: graph.Step{Op: graph.Offset, Count: 1}, in: numbers(5), fails: "another type"},
		"an ignored text is missing":                   {step: graph.Step{Op: graph.Ignore, Text: ""}, in: texts(""), want: quantity{}},
		"an ignored integer is missing":                {step: graph.Step{Op: graph.Ignore, Value: -1}, in: integers(-1), want: quantity{}},
		"another one stays":                            {step: graph.Step{Op: graph.Ignore, Value: -1}, in: integers(1), want: integers(1)},
		"blank text is replaced":                       {step: graph.Step{Op: graph.Replace, Text: "0"}, in: texts(" \t"), want: texts("0")},
		"other text stays":                             {step: graph.Step{Op: graph.Replace, Text: "0"}, in: texts(" 1"), want: texts(" 1")},
		"text is hashed to a bucket":                   {step: graph.Step{Op: graph.Hash, Count: 10}, in: texts("word"), want: integers(farmhash.Bucket([]byte("word"), 10))},
		"only text is hashed":                          {step: graph.Step{Op: graph.Hash, Count: 10}, in: integers(1), fails: "another type"},
		"a natural logarithm":                          {step: graph.Step{Op: graph.Log}, in: numbers(float32(math.E * math.E)), want: integers(2)},
		"a logarithm of another base":                  {step: graph.Step{Op: graph.Log, Value: 2}, in: integers(1024), want: integers(10)},
		"the logarithm of 0 is in no range":            {step: graph.Step{Op: graph.Log}, in: integers(0), want: integers(math.MinInt64)},
		"an integer in range stays":                    {step: graph.Step{Op: graph.InRange, Count: 4, Value: 1}, in: integers(3), want: integers(3)},
		"one out of range has the default":             {step: graph.Step{Op: graph.InRange, Count: 4, Value: 1}, in: integers(4), want: integers(1)},
		"a negative one, too":                          {step: graph.Step{Op: graph.InRange, Count: 4, Value: 1}, in: integers(-1), want: integers(1)},
		"what is not 0 counts":                         {step: graph.Step{Op: graph.NotZero}, in: integers(-3), want: numbers(1)},
		"0 does not":                                   {step: graph.Step{Op: graph.NotZero}, in: numbers(0), want: numbers(0)},
		"floats are divided as float32":                {step: graph.Step{Op: graph.Divide, Value: 3}, in: numbers(1), want: numbers(float32(1) / 3)},
		"floats are multiplied":                        {step: graph.Step{Op: graph.MultiplyBy, Value: 0.5}, in: numbers(3), want: numbers(1.5)},
		"a number is added":                            {step: graph.Step{Op: graph.AddTo, Value: 2}, in: numbers(1), want: numbers(3)},
		"a number is subtracted":                       {step: graph.Step{Op: graph.SubtractBy, Value: 2}, in: numbers(1), want: numbers(-1)},
		"arithmetic with integers is not of this kind": {step: graph.Step{Op: graph.Divide, Value: 2}, in: integers(4), fails: "another type"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := newStep(c.step)
			if err != nil {
				t.Fatal(err)
			}
			got, err := f(c.in)
			switch {
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Errorf("%v, %v; an error with %q is wanted", got, err, c.fails)
			case c.fails == "" && (err != nil || !same(got, c.want)):
				t.Errorf("%+v, %v; %+v is wanted", got, err, c.want)
			}
		})
	}
}

func TestStepsThatCannotBeRunAreRefusedWhenTheyAreMade(t *testing.T) {
	features := []graph.Feature{{Name: "x", DType: graph.Int64, Shape: []int{2}}}
	for name, p := range map[string]graph.Part{
		"a feature that is not there":       {Feature: "y"},
		"no buckets to hash to":             {Feature: "x", Steps: []graph.Step{{Op: graph.Hash}}},
		"boundaries that do not ascend":     {Feature: "x", Steps: []graph.Step{{Op: graph.Bucketize, Boundaries: []float64{2, 1}}}},
		"a boundary that is no number":      {Feature: "x", Steps: []graph.Step{{Op: graph.Bucketize, Boundaries: []float64{1, math.NaN()}}}},
		"a word twice":                      {Feature: "x", Steps: []graph.Step{{Op: graph.Lookup, Words: []string{"a", "a"}}}},
		"fewer than no numbers for others":  {Feature: "x", Steps: []graph.Step{{Op: graph.Lookup, Count: -1}}},
		"one-hot that is not the last step": {Feature: "x", Steps: []graph.Step{{Op: graph.OneHot, Count: 2}, {Op: graph.ToFloat}}},
		"one-hot of too many":               {Feature: "x", Steps: []graph.Step{{Op: graph.OneHot, Count: 1 << 40}}},
		"a step of a later version":         {Feature: "x", Steps: []graph.Step{{Op: "nothing"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if made, err := newPart(p, features); err == nil {
				t.Errorf("%+v", made)
			}
		})
	}
}

// columnOf makes an input of the two elements of feature x.
func columnOf(t *testing.T, p graph.Part, weights string, sparse bool) *column {
	t.Helper()
	made, err := newPart(p, []graph.Feature{{Name: "x", DType: graph.Int64, Shape: []int{2}}})
	if err != nil {
		t.Fatal(err)
	}
	return &column{parts: []part{made}, weights: weights, sparse: sparse}
}

func TestMadeInputs(t *testing.T) {
	known := graph.Part{Feature: "x", Steps: []graph.Step{{Op: graph.Ignore, Value: -1}}}
	for name, c := range map[string]struct {
		part    graph.Part
		weights string
		values  []int64
		want    []float32
	}{
		"numbers as they are": {graph.Part{Feature: "x"}, "", []int64{4, 5}, []float32{4, 5}},
		"one-hot rows":        {graph.Part{Feature: "x", Steps: []graph.Step{{Op: graph.OneHot, Count: 3}}}, "", []int64{2, 0}, []float32{0, 0, 1, 1, 0, 0}},
		"out of its range a one-hot row is of zeros": {graph.Part{Feature: "x", Steps: []graph.Step{{Op: graph.OneHot, Count: 2}}}, "", []int64{2, -1}, []float32{0, 0, 0, 0}},
		"weights of a mean":                          {known, "mean", []int64{7, 8}, []float32{0.5, 0.5}},
		"a missing element has no weight":            {known, "mean", []int64{-1, 8}, []float32{0, 1}},
		"weights of sqrtn":                           {known, "sqrtn", []int64{7, 8}, []float32{float32(1 / math.Sqrt2), float32(1 / math.Sqrt2)}},
		"weights of a sum":                           {known, "sum", []int64{7, 8}, []float32{1, 1}},
		"nothing at all":                             {known, "mean", []int64{-1, -1}, []float32{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			floats := make([]float32, len(c.want))
			for i := range floats {
				floats[i] = 9 // of the minibatch before
			}
			col := columnOf(t, c.part, c.weights, false)
			if err := col.made(graph.Example{{Ints: c.values}}, floats, nil); err != nil {
				t.Fatal(err)
			}
			for i := range c.want {
				if floats[i] != c.want[i] {
					t.Fatalf("%v; %v is wanted", floats, c.want)
				}
			}
		})
	}
	t.Run("rows of a table are 32-bit integers, and a missing one is row 0", func(t *testing.T) {
		rows := []int32{9, 9}
		if err := columnOf(t, known, "", true).made(graph.Example{{Ints: []int64{-1, 8}}}, nil, rows); err != nil || rows[0] != 0 || rows[1] != 8 {
			t.Errorf("%v, %v", rows, err)
		}
		err := columnOf(t, known, "", true).made(graph.Example{{Ints: []int64{1, 1 << 40}}}, nil, rows)
		if err == nil || !strings.Contains(err.Error(), `"x": 1099511627776 is no row of a table`) {
			t.Errorf("%v", err)
		}
	})
}
