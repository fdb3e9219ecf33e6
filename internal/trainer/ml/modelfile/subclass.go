package modelfile

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// trainingPhase is the `training` that a model's call is given: what the layers do then is theirs to know, in training
// and in inference.
type trainingPhase bool

func (p trainingPhase) String() string       { return "training" }
func (p trainingPhase) Type() string         { return "training flag" }
func (p trainingPhase) Freeze()              {}
func (p trainingPhase) Truth() starlark.Bool { return starlark.Bool(p) }
func (p trainingPhase) Hash() (uint32, error) {
	return 0, errors.New("the training flag cannot be a key")
}

// kerasInit is what Layer.__init__ and Model.__init__ take.
var kerasInit = signature{keywords: []string{"name"}, only: merged(map[string][]starlark.Value{"dynamic": falseOnly})}

// builtinInit is the __init__ of the class's last base.
func (o *object) builtinInit(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	switch o.class.builtin {
	case layerBase, modelBase:
		sig := kerasInit
		sig.name = o.class.name + ": " + string(o.class.builtin) + ".__init__"
		a, err := sig.bind(args, kwargs)
		if err != nil {
			return nil, err
		}
		if !a.none("name") {
			o.fields["name"] = starlark.String(a.text("name", ""))
		}
		return starlark.None, a.err
	}
	if len(args)+len(kwargs) > 0 {
		return nil, fmt.Errorf("%s() takes no arguments: the class has no __init__", o.class.name)
	}
	return starlark.None, nil
}

// builtinAttr is what Keras' classes add to an object; nil where they do not have the name.
func (o *object) builtinAttr(name string) (starlark.Value, error) {
	if o.class.builtin != layerBase && o.class.builtin != modelBase {
		return nil, nil
	}
	switch name {
	case "name":
		return starlark.String(snakeCase(o.class.name)), nil
	case "supports_masking", "built":
		return starlark.False, nil
	case "trainable":
		return starlark.True, nil
	case "dtype":
		return dtypeValue{float32Type}, nil
	case "build", "compute_output_shape", "get_config":
		return starlark.NewBuiltin(name, func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
			return starlark.None, nil
		}), nil
	case "add_weight", "add_variable":
		return nil, fmt.Errorf("%s.%s: variables of a layer's own are not implemented; make it of layers that have them, such as tf.keras.layers.Dense or Embedding", o.class.name, name)
	case "add_loss", "add_metric":
		return nil, fmt.Errorf("%s.%s is not implemented; losses and metrics are the functions loss and eval_metrics_fn", o.class.name, name)
	}
	return nil, nil
}

// snakeCase is Keras' name of a class: CustomModel is custom_model.
func snakeCase(name string) string {
	out := []rune{}
	for i, r := range name {
		if upper := r >= 'A' && r <= 'Z'; upper {
			if i > 0 {
				out = append(out, '_')
			}
			r += 'a' - 'A'
		}
		out = append(out, r)
	}
	return string(out)
}

// CallInternal is `object(inputs)`: the `call` of a layer or model, as Keras calls it.
func (o *object) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if o.class.builtin != layerBase && o.class.builtin != modelBase {
		if f, ok := o.class.find("__call__"); ok {
			return starlark.Call(t, f, append(starlark.Tuple{o}, args...), kwargs)
		}
		return nil, fmt.Errorf("%s is no function", o)
	}
	s := sessionOf(t)
	if s.layers == nil {
		return nil, fmt.Errorf("%s is called outside of the model", o.class.name)
	}
	member, _ := o.class.find("call")
	f, ok := member.(*starlark.Function)
	if !ok {
		return nil, fmt.Errorf("class %s has no method call(self, inputs)", o.class.name)
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("%s is called without inputs", o.class.name)
	}
	if err := o.build(t, args[0]); err != nil {
		return nil, err
	}
	mask := maskOf(args[0])
	kwargs = o.implied(s, f, mask, len(args), kwargs)
	given := slices.Clone(args)
	if mask != nil && takes(f, "mask") {
		unmasked := *args[0].(*symbol)
		unmasked.mask = nil // the call has it, and does with it what it wants
		given[0] = &unmasked
	}
	v, err := starlark.Call(t, f, append(starlark.Tuple{o}, given...), kwargs)
	if err != nil {
		return nil, err
	}
	return o.masked(t, args[0], mask, v)
}

// build calls the class's own build for the first call.
func (o *object) build(t *starlark.Thread, input starlark.Value) error {
	f, ok := o.class.find("build")
	s, tensor := input.(*symbol)
	if g := sessionOf(t).layers; !ok || g.called[o] || !tensor {
		return nil
	} else {
		g.called[o] = true
	}
	shape, err := s.Attr("shape")
	if err == nil {
		_, err = starlark.Call(t, f, starlark.Tuple{o, shape}, nil)
	}
	return err
}

// implied adds what Keras passes by itself to a call that takes it: whether it trains, and the input's mask.
func (o *object) implied(s *session, f *starlark.Function, mask *symbol, positional int, kwargs []starlark.Tuple) []starlark.Tuple {
	add := func(name string, v starlark.Value) {
		place := -1
		for i := range f.NumParams() {
			if p, _ := f.Param(i); p == name {
				place = i
			}
		}
		given := slices.ContainsFunc(kwargs, func(kw starlark.Tuple) bool { return kw[0] == starlark.String(name) })
		if place > positional && !given && v != nil {
			kwargs = append(slices.Clip(kwargs), starlark.Tuple{starlark.String(name), v})
		}
	}
	add("training", s.phase)
	if mask != nil {
		add("mask", mask)
	}
	return kwargs
}

// takes reports whether a function has a parameter of that name.
func takes(f *starlark.Function, name string) bool {
	for i := range f.NumParams() {
		if p, _ := f.Param(i); p == name {
			return true
		}
	}
	return false
}

// maskOf is the mask of a tensor, which Embedding(mask_zero=True) gives it.
func maskOf(v starlark.Value) *symbol {
	if s, ok := v.(*symbol); ok {
		return s.mask
	}
	return nil
}

// masked passes an input's mask on to the output, as the class says.
func (o *object) masked(t *starlark.Thread, input starlark.Value, mask *symbol, v starlark.Value) (starlark.Value, error) {
	out, ok := v.(*symbol)
	if mask == nil || !ok {
		return v, nil
	}
	behind := *out
	behind.mask = nil
	if f, ok := o.class.find("compute_mask"); ok {
		next, err := starlark.Call(t, f, starlark.Tuple{o, input, mask}, nil)
		if err != nil {
			return nil, err
		}
		behind.mask, _ = next.(*symbol)
		return &behind, nil
	}
	supports, err := o.Attr("supports_masking")
	if err != nil || supports != starlark.True {
		return nil, fmt.Errorf("%s does not support masking, and its input has a mask; set self.supports_masking = True, or leave mask_zero out", o.class.name)
	}
	behind.mask = mask
	return &behind, nil
}

// subclassed builds the network of a model whose call takes the records' features as feed or input_fn makes them. It is
// traced as training and as inference, which may differ in what Dropout does alone.
func (l *loader) subclassed(model starlark.Callable, early bool) (*kerasModel, error) {
	inputs, made, err := l.inputsOfFeatures(early)
	if err != nil {
		return nil, err
	}
	g := l.session.layers
	trace := func(phase trainingPhase) (*modelOutput, []graph.Node, error) {
		l.session.phase = phase
		v, err := starlark.Call(l.thread, model, starlark.Tuple{inputs}, []starlark.Tuple{{starlark.String("training"), phase}}[:takesTraining(model)])
		if err != nil {
			if located := l.locate(err); located.Line == 0 {
				at := l.placeOfCall(model)
				if o, ok := model.(*object); ok && at.Line == 0 {
					at = l.placeOf(o.class.name)
				}
				return nil, nil, refuseAt(at, "%s", located.Msg)
			}
			return nil, nil, err
		}
		out, err := outputsOf(v)
		if err != nil {
			return nil, nil, refuseAt(l.placeOfCall(model), "%s: call %s", model.Name(), err)
		}
		return out, g.nodes, nil
	}
	before := g.snapshot()
	out, inference, err := trace(false)
	if err != nil {
		return nil, err
	}
	inference, evaluated := slices.Clone(inference), out
	g.restore(before)
	out, training, err := trace(true)
	if err != nil {
		return nil, err
	}
	if !sameButDropout(inference, evaluated, training, out) {
		return nil, refuseAt(l.placeOfCall(model), "%s: call builds another network with training=True than with training=False; only Dropout may depend on it", model.Name())
	}
	l.session.phase = nil
	m := &kerasModel{name: objectName(model), layers: g, outputs: out, lenient: true, inputs: made}
	_, m.byKey = inputs.(*starlark.Dict)
	return m, nil
}

// takesTraining is 1 for a call that takes the argument training; objects and Sequential pass it on themselves.
func takesTraining(model starlark.Callable) int {
	if o, ok := model.(*object); ok {
		if f, ok := o.class.find("call"); ok {
			if f, ok := f.(*starlark.Function); ok && takes(f, "training") {
				return 1
			}
		}
	}
	return 0
}

func (l *loader) placeOfCall(model starlark.Callable) graph.Place {
	if o, ok := model.(*object); ok {
		if f, ok := o.class.find("call"); ok {
			if f, ok := f.(*starlark.Function); ok {
				return placeIn(l.file, f.Position())
			}
		}
	}
	return graph.Place{}
}

// objectName is the name that a model was given, or its class's.
func objectName(model starlark.Callable) string {
	if o, ok := model.(*object); ok {
		if v, err := o.Attr("name"); err == nil {
			if s, ok := v.(starlark.String); ok {
				return string(s)
			}
		}
	}
	return snakeCase(model.Name())
}

// sameButDropout compares two traces of one model.
func sameButDropout(a []graph.Node, aOut *modelOutput, b []graph.Node, bOut *modelOutput) bool {
	x, y := withoutDropout(a, aOut), withoutDropout(b, bOut)
	return slices.Equal(x, y)
}

// withoutDropout describes the nodes that the outputs depend on, by what they compute and of which others.
func withoutDropout(nodes []graph.Node, out *modelOutput) []string {
	text := make([]string, len(nodes)) // describes how each node is computed; the layer's name distinguishes nodes that are otherwise equal
	number := map[int]int{}
	used := map[int]bool{}
	for _, o := range out.tensors {
		used[o.layer] = true
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		if used[i] {
			for _, in := range nodes[i].Inputs {
				used[in] = true
			}
		}
	}
	var list []string
	for i, n := range nodes {
		if !used[i] {
			continue
		}
		if n.Op == graph.Dropout {
			number[i] = number[n.Inputs[0]]
			continue
		}
		var from []int
		for _, in := range n.Inputs {
			from = append(from, number[in])
		}
		text[i] = fmt.Sprint(n.Op, " ", n.Name, " ", n.Shape, " ", from)
		number[i] = len(list)
		list = append(list, text[i])
	}
	for _, o := range out.tensors {
		list = append(list, fmt.Sprint("output ", number[o.layer]))
	}
	return list
}
