package data

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/farmhash"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

// part is a graph.Part with its feature looked up and its steps made ready.
type part struct {
	name     string
	feature  int
	dtype    graph.DType
	elements int
	steps    []step
	width    int // floats or integers that an element becomes
}

// quantity is a value between two steps.
type quantity struct {
	kind   quantityKind
	text   []byte
	number float32
	whole  int64
}

type quantityKind int

const (
	missing quantityKind = iota
	text
	number
	whole
)

// step makes a quantity of another, which is not missing.
type step func(quantity) (quantity, error)

// newPart checks a part and makes its steps ready.
func newPart(p graph.Part, features []graph.Feature) (part, error) {
	i, err := indexOf(features, p.Feature)
	if err != nil {
		return part{}, err
	}
	made := part{name: p.Feature, feature: i, dtype: features[i].DType, elements: features[i].Elements(), width: 1}
	for at, s := range p.Steps {
		if s.Op == graph.OneHot {
			if at != len(p.Steps)-1 || s.Count < 1 || s.Count > 1<<24 {
				return part{}, fmt.Errorf("feature %q: %s to %d numbers is not the last step, or too many", p.Feature, s.Op, s.Count)
			}
			made.width = int(s.Count)
			continue
		}
		f, err := newStep(s)
		if err != nil {
			return part{}, fmt.Errorf("feature %q: %w", p.Feature, err)
		}
		made.steps = append(made.steps, f)
	}
	return made, nil
}

// evaluate is the quantity of element k of a feature's value after the steps.
func (p *part) evaluate(v graph.Value, k int) (quantity, error) {
	var q quantity
	switch p.dtype {
	case graph.String:
		q = quantity{kind: text, text: v.Strings[k]}
	case graph.Float32:
		q = quantity{kind: number, number: v.Floats[k]}
	case graph.Uint8:
		q = quantity{kind: whole, whole: int64(v.Bytes[k])}
	default:
		q = quantity{kind: whole, whole: v.Ints[k]}
	}
	for _, s := range p.steps {
		if q.kind == missing {
			break
		}
		var err error
		if q, err = s(q); err != nil {
			return q, fmt.Errorf("the feature %q: %w", p.name, err)
		}
	}
	return q, nil
}

var errKind = errors.New("a step of the feed takes another type of value")

func newStep(s graph.Step) (step, error) {
	switch s.Op {
	case graph.Hash, graph.InRange:
		if s.Count < 1 {
			return nil, fmt.Errorf("%s of %d values", s.Op, s.Count)
		}
	case graph.Lookup:
		return newLookup(s)
	case graph.Bucketize:
		return newBucketize(s)
	case graph.Divide, graph.MultiplyBy, graph.AddTo, graph.SubtractBy:
		t := []transform{{map[string]byte{graph.Divide: '/', graph.MultiplyBy: '*', graph.AddTo: '+', graph.SubtractBy: '-'}[s.Op], float32(s.Value)}}
		return func(q quantity) (quantity, error) {
			if q.kind != number {
				return q, errKind
			}
			one := [1]float32{q.number}
			t[0].apply(one[:])
			q.number = one[0]
			return q, nil
		}, nil
	}
	f, ok := simpleSteps[s.Op]
	if !ok {
		return nil, fmt.Errorf("the feed's step %q is not known", s.Op)
	}
	return func(q quantity) (quantity, error) { return f(s, q) }, nil
}

func newLookup(s graph.Step) (step, error) {
	if s.Count < 0 {
		return nil, fmt.Errorf("%d numbers for words that are not in the vocabulary", s.Count)
	}
	places := make(map[string]int64, len(s.Words))
	for i, w := range s.Words {
		if _, twice := places[w]; twice {
			return nil, fmt.Errorf("the word %q is in the vocabulary twice", w)
		}
		places[w] = int64(i)
	}
	return func(q quantity) (quantity, error) {
		if q.kind != text {
			return q, errKind
		}
		if place, ok := places[string(q.text)]; ok {
			return quantity{kind: whole, whole: place}, nil
		}
		if s.Count == 0 {
			return quantity{}, nil
		}
		return quantity{kind: whole, whole: int64(len(s.Words)) + farmhash.Bucket(q.text, s.Count)}, nil
	}, nil
}

func newBucketize(s graph.Step) (step, error) {
	boundaries := make([]float32, len(s.Boundaries))
	for i, b := range s.Boundaries {
		boundaries[i] = float32(b)
		if i > 0 && !(boundaries[i-1] <= boundaries[i]) {
			return nil, fmt.Errorf("the boundaries %v are not ascending", s.Boundaries)
		}
	}
	return func(q quantity) (quantity, error) {
		v := q.number
		switch q.kind {
		case whole:
			v = float32(q.whole)
		case text:
			return q, errKind
		}
		return quantity{kind: whole, whole: int64(sort.Search(len(boundaries), func(i int) bool { return boundaries[i] > v }))}, nil
	}, nil
}

// simpleSteps are those that need nothing made ready.
var simpleSteps = map[string]func(graph.Step, quantity) (quantity, error){
	graph.ToFloat: func(_ graph.Step, q quantity) (quantity, error) {
		switch q.kind {
		case whole:
			return quantity{kind: number, number: float32(q.whole)}, nil
		case number:
			return q, nil
		}
		return q, errKind
	},
	graph.ToInteger: func(_ graph.Step, q quantity) (quantity, error) {
		if q.kind == number {
			return integer(math.Trunc(float64(q.number)))
		}
		if q.kind == text {
			return q, errKind
		}
		return q, nil
	},
	graph.ToText: func(_ graph.Step, q quantity) (quantity, error) {
		if q.kind != whole {
			return q, errKind
		}
		return quantity{kind: text, text: strconv.AppendInt(nil, q.whole, 10)}, nil
	},
	graph.ParseFloat: func(_ graph.Step, q quantity) (quantity, error) {
		v, err := strconv.ParseFloat(strings.TrimSpace(string(q.text)), 32)
		if q.kind != text || err != nil {
			return q, fmt.Errorf("%q is no number", q.text)
		}
		return quantity{kind: number, number: float32(v)}, nil
	},
	graph.ParseInt: func(_ graph.Step, q quantity) (quantity, error) {
		v, err := strconv.ParseInt(strings.TrimSpace(string(q.text)), 10, 64)
		if q.kind != text || err != nil {
			return q, fmt.Errorf("%q is no whole number", q.text)
		}
		return quantity{kind: whole, whole: v}, nil
	},
	graph.Offset: func(s graph.Step, q quantity) (quantity, error) {
		if q.kind != whole {
			return q, errKind
		}
		q.whole += s.Count
		return q, nil
	},
	graph.Ignore: func(s graph.Step, q quantity) (quantity, error) {
		if q.kind == text && string(q.text) == s.Text || q.kind == number && q.number == float32(s.Value) || q.kind == whole && q.whole == int64(s.Value) {
			return quantity{}, nil
		}
		return q, nil
	},
	graph.Replace: func(s graph.Step, q quantity) (quantity, error) {
		if q.kind != text {
			return q, errKind
		}
		if len(bytes.TrimSpace(q.text)) == 0 {
			q.text = []byte(s.Text)
		}
		return q, nil
	},
	graph.Hash: func(s graph.Step, q quantity) (quantity, error) {
		if q.kind != text {
			return q, errKind
		}
		return quantity{kind: whole, whole: farmhash.Bucket(q.text, s.Count)}, nil
	},
	graph.Round: func(_ graph.Step, q quantity) (quantity, error) {
		if q.kind != number {
			return q, errKind
		}
		return integer(math.RoundToEven(float64(q.number)))
	},
	graph.Log: func(s graph.Step, q quantity) (quantity, error) {
		v := float64(q.number)
		switch q.kind {
		case whole:
			v = float64(q.whole)
		case text:
			return q, errKind
		}
		if !(v > 0) { // −∞ or NaN, which are in no range
			return quantity{kind: whole, whole: math.MinInt64}, nil
		}
		v = kernel.Log(v)
		if s.Value > 0 {
			v /= kernel.Log(s.Value)
		}
		return integer(math.RoundToEven(v))
	},
	graph.InRange: func(s graph.Step, q quantity) (quantity, error) {
		if q.kind != whole {
			return q, errKind
		}
		if q.whole < 0 || q.whole >= s.Count {
			q.whole = int64(s.Value)
		}
		return q, nil
	},
	graph.NotZero: func(_ graph.Step, q quantity) (quantity, error) {
		if q.kind == text {
			return q, errKind
		}
		out := quantity{kind: number}
		if q.kind == whole && q.whole != 0 || q.kind == number && q.number != 0 {
			out.number = 1
		}
		return out, nil
	},
}

// integer is a whole float64 as an int64.
func integer(v float64) (quantity, error) {
	if !(v >= -(1<<62) && v <= 1<<62) {
		return quantity{}, fmt.Errorf("%v is no whole number of 64 bits", v)
	}
	return quantity{kind: whole, whole: int64(v)}, nil
}

// made fills the input of one record with the parts of a column.
func (c *column) made(example graph.Example, floats []float32, integers []int32) error {
	at, present := 0, 0
	for i := range c.parts {
		p := &c.parts[i]
		for k := range p.elements {
			q, err := p.evaluate(example[p.feature], k)
			if err != nil {
				return err
			}
			if c.weights != "" {
				floats[at] = 0
				if q.kind != missing && (q.kind != whole || q.whole >= 0) {
					floats[at], present = 1, present+1
				}
			} else if err := put(q, p, c.sparse, floats, integers, at); err != nil {
				return fmt.Errorf("the feature %q: %w", p.name, err)
			}
			at += p.width
		}
	}
	if weight := float32(1); present > 1 && c.weights != "sum" {
		weight /= float32(present)
		if c.weights == "sqrtn" {
			weight = float32(1 / math.Sqrt(float64(present)))
		}
		for i := range floats {
			floats[i] *= weight
		}
	}
	return nil
}

// put puts an element where it belongs.
func put(q quantity, p *part, sparse bool, floats []float32, integers []int32, at int) error {
	switch {
	case integers != nil:
		if q.kind == missing || sparse && q.kind == whole && q.whole < 0 {
			q = quantity{kind: whole}
		}
		if q.kind != whole || q.whole < math.MinInt32 || q.whole > math.MaxInt32 {
			return fmt.Errorf("%d is no row of a table", q.whole)
		}
		integers[at] = int32(q.whole)
	case p.width > 1:
		clear(floats[at : at+p.width])
		if q.kind == whole && q.whole >= 0 && q.whole < int64(p.width) {
			floats[at+int(q.whole)] = 1
		}
	case q.kind == whole:
		floats[at] = float32(q.whole)
	case q.kind == text:
		return errKind
	default:
		floats[at] = q.number
	}
	return nil
}
