package modelfile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// madeFeature is what preprocessing makes of the model's inputs: the feed does it, and the network has the result as an
// input of its own. Text and row numbers can go no other way.
type madeFeature struct {
	parts   []madePart // one behind the other
	dtype   dtype
	sparse  bool   // a SparseTensor, of which values may be missing
	weights string // of an input of the network: it is not the values, but their weights for this combiner
}

type madePart struct {
	source   int // the tf.keras.Input, in the layer graph
	elements int
	steps    []graph.Step
}

// sources are the inputs that it is made of.
func (m *madeFeature) sources() []int {
	var all []int
	for _, p := range m.parts {
		all = append(all, p.source)
	}
	return all
}

// size is how many elements it has.
func (m *madeFeature) size() int {
	n := 0
	for _, p := range m.parts {
		n += p.elements
	}
	return n
}

// then is what a step makes of it.
func (m *madeFeature) then(d dtype, steps ...graph.Step) *madeFeature {
	out := &madeFeature{dtype: d, sparse: m.sparse}
	for _, p := range m.parts {
		p.steps = append(slices.Clip(p.steps), steps...)
		out.parts = append(out.parts, p)
	}
	return out
}

// symbol is the traced value of it.
func (m *madeFeature) symbol(what string) *symbol {
	return &symbol{op: opMade, made: m, detail: what, dtype: m.dtype, dims: []int{m.size()}}
}

// The bounds on what is made of inputs: each part and step is copied whenever something is made of it.
const (
	maxParts = 1000
	maxSteps = 50
)

// check accounts for a value that something is going to be made of.
func (s *session) check(m *madeFeature) (*madeFeature, error) {
	longest := 0
	for _, p := range m.parts {
		longest = max(longest, len(p.steps))
	}
	if len(m.parts) > maxParts || longest > maxSteps {
		return nil, fmt.Errorf("preprocessing of more than %d values in more than %d steps is not implemented", maxParts, maxSteps)
	}
	return m, s.spend(callBytes * int64(1+len(m.parts)))
}

// madeOf reads a tf.keras.Input, or what is made of some.
func (s *session) madeOf(v starlark.Value) (*madeFeature, error) {
	x, ok := v.(*symbol)
	if ok && x.op == opMade {
		return s.check(x.made)
	}
	if !ok || x.op != opLayer || s.layers == nil {
		return nil, fmt.Errorf("%s is no input of the model; only a tf.keras.Input, or what preprocessing makes of one, can be preprocessed", printed(v))
	}
	if n := s.layers.nodes[x.layer]; n.Op != graph.Input || s.layers.made[x.layer] != nil {
		return nil, fmt.Errorf("%s is the output of a layer; only a tf.keras.Input, or what preprocessing makes of one, can be preprocessed", x)
	}
	if len(x.dims) > 1 {
		return nil, fmt.Errorf("input %s has shape %s; preprocessing is implemented of one axis", x, shapeText(x.dims))
	}
	n, _ := elements(x.dims)
	return &madeFeature{parts: []madePart{{source: x.layer, elements: n}}, dtype: x.dtype}, nil
}

// takes adds an input to the network that the feed makes, or finds the one that it made before.
func (g *layerGraph) takes(m *madeFeature, name string, integer bool, at graph.Place) *symbol {
	for i, n := range g.nodes {
		if have := g.made[i]; have != nil && n.Integer == integer && reflect.DeepEqual(have, m) {
			return &symbol{op: opLayer, layer: i, detail: n.Name, dtype: float32Type, dims: n.Shape}
		}
	}
	size := m.size()
	for _, p := range m.parts {
		if last := len(p.steps) - 1; last >= 0 && p.steps[last].Op == graph.OneHot {
			size += p.elements * (int(p.steps[last].Count) - 1)
		}
	}
	out := g.append(graph.Node{Op: graph.Input, Name: name, Shape: []int{size}, Integer: integer, Place: at})
	g.made[out.layer] = m
	return out
}

// asFloats is a made value as the layers of the network take it.
func (g *layerGraph) asFloats(s *symbol, at graph.Place) (*symbol, error) {
	if s.made.dtype != float32Type || s.made.sparse {
		return nil, fmt.Errorf("%s is %s, which only Embedding layers and preprocessing take", s, kindOfMade(s.made))
	}
	return g.takes(s.made, g.name("preprocessed", ""), false, at), nil
}

func kindOfMade(m *madeFeature) string {
	switch {
	case m.sparse:
		return "a sparse tensor"
	case m.dtype == stringType:
		return "text"
	}
	return "row numbers"
}

// concatenated puts made values one behind the other.
func concatenated(all []*madeFeature) (*madeFeature, error) {
	out := &madeFeature{dtype: all[0].dtype, sparse: all[0].sparse}
	for _, m := range all {
		if m.dtype != out.dtype || m.sparse != out.sparse {
			return nil, fmt.Errorf("%s of %s and %s of %s cannot be put together", kindOfMade(all[0]), all[0].dtype, kindOfMade(m), m.dtype)
		}
		if out.parts = append(out.parts, m.parts...); len(out.parts) > maxParts {
			return nil, fmt.Errorf("preprocessing of more than %d values is not implemented", maxParts)
		}
	}
	return out, nil
}

// madeList reads a list of values that are all made of inputs; ok is false where one of them is not.
func (s *session) madeList(v starlark.Value) (list []*madeFeature, ok bool) {
	values, isList := v.(starlark.Sequence)
	if !isList {
		return nil, false
	}
	some := false
	for x := range starlark.Elements(values) {
		m, err := s.madeOf(x)
		if err != nil {
			return nil, false
		}
		some = some || x.(*symbol).op == opMade
		list = append(list, m)
	}
	return list, some
}

// castMade is tf.cast of an input or of what is made of inputs.
func (s *session) castMade(x *symbol, d dtype) (*symbol, error) {
	if x.dtype == d || d == float32Type && x.op == opLayer && s.layers.nodes[x.layer].Op != graph.Input {
		return x, nil
	}
	m, err := s.madeOf(x)
	if err != nil {
		return nil, err
	}
	switch {
	case m.dtype == stringType:
		return nil, errors.New("text cannot be cast; use tf.strings.to_number")
	case d == float32Type:
		return m.then(d, graph.Step{Op: graph.ToFloat}).symbol("cast"), nil
	case (d == int32Type || d == int64Type) && m.dtype == float32Type:
		return m.then(int64Type, graph.Step{Op: graph.ToInteger}).symbol("cast"), nil
	case d == int32Type || d == int64Type:
		return m.then(int64Type).symbol("cast"), nil
	}
	return nil, fmt.Errorf("a cast to %s is not implemented here", d)
}

// madeArithmetic is a made value and a number.
func (s *session) madeArithmetic(op syntax.Token, x, y starlark.Value) (v starlark.Value, mine bool, err error) {
	of, ok := x.(*symbol)
	if !ok || of.op != opMade {
		if other, swapped := y.(*symbol); swapped && other.op == opMade && (op == syntax.PLUS || op == syntax.STAR) {
			of, y, ok = other, x, true
		}
	}
	if !ok || of.op != opMade {
		return nil, false, nil
	}
	if _, err := s.check(of.made); err != nil {
		return nil, true, err
	}
	if whole, isInt := asInt(y); isInt && of.made.dtype == int64Type && (op == syntax.PLUS || op == syntax.MINUS) {
		if op == syntax.MINUS {
			whole = -whole
		}
		return of.made.then(int64Type, graph.Step{Op: graph.Offset, Count: int64(whole)}).symbol("add"), true, nil
	}
	name, known := map[syntax.Token]string{syntax.SLASH: graph.Divide, syntax.STAR: graph.MultiplyBy, syntax.PLUS: graph.AddTo, syntax.MINUS: graph.SubtractBy}[op]
	number, isNumber := asNumber(y)
	if !known || !isNumber || of.made.dtype != float32Type {
		return nil, true, fmt.Errorf("the operator %s of %s and %s is not implemented", op, of, printed(y))
	}
	return of.made.then(float32Type, graph.Step{Op: name, Value: number}).symbol(name), true, nil
}
