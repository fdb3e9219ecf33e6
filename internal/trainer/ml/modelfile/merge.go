package modelfile

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// mergeFunctions are the layers of several inputs, as classes (Add()([x, y])) and as functions (add([x, y])).
func mergeFunctions() map[string]starlark.Value {
	const layers = "tensorflow.keras.layers."
	values := map[string]starlark.Value{}
	for class, op := range map[string]graph.Op{"Add": graph.Add, "Multiply": graph.Multiply, "Concatenate": graph.Concatenate, "Subtract": graph.Subtract} {
		snake := string(op)
		sig := signature{name: "tf.keras.layers." + class}
		if op == graph.Concatenate {
			sig.positional, sig.only = []string{"axis"}, map[string][]starlark.Value{"axis": lastAxis}
		}
		values[layers+class] = constructor(sig, snake, func(_ *arguments, l *layer) { merging(l, op) })

		call := sig
		call.name, call.positional, call.keywords = "tf.keras.layers."+snake, append([]string{"inputs"}, sig.positional...), []string{"name"}
		values[layers+snake] = function(call, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
			g := sessionOf(t).layers
			if g == nil {
				return nil, fmt.Errorf("%s is called outside of the model", call.name)
			}
			given := ""
			if !a.none("name") {
				given = a.text("name", "")
			}
			if a.err != nil {
				return nil, a.err
			}
			l := &layer{fn: call.name}
			merging(l, op)
			l.node.Name = g.name(snake, given)
			if op == graph.Concatenate {
				if all, made := sessionOf(t).madeList(a.values["inputs"]); made {
					m, err := concatenated(all)
					if err != nil {
						return nil, fmt.Errorf("%s: %w", call.name, err)
					}
					return m.symbol(l.node.Name), nil
				}
			}
			return l.CallInternal(t, starlark.Tuple{a.values["inputs"]}, nil)
		})
	}
	return values
}

func merging(l *layer, op graph.Op) {
	l.node.Op, l.merges = op, true
	l.merge = func(n *graph.Node, ins [][]int) error {
		if op == graph.Subtract && len(ins) != 2 {
			return fmt.Errorf("it takes two inputs, and not %d", len(ins))
		}
		shape := slices.Clone(ins[0])
		last := len(shape) - 1
		width := shape[last]
		for _, in := range ins[1:] {
			if len(in) != len(shape) || !slices.Equal(in[:last], shape[:last]) || op != graph.Concatenate && in[last] != shape[last] {
				return fmt.Errorf("the shapes %s and %s of its inputs do not fit; of broadcasting, only that of a last axis of size 1 is implemented", shapeText(ins[0]), shapeText(in))
			}
			width += in[last]
		}
		if op == graph.Concatenate {
			shape[last] = width
		}
		n.Shape = shape
		return nil
	}
}
