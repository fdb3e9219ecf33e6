package modelfile

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// poolFunctions are the pooling layers.
func poolFunctions() map[string]starlark.Value {
	const layers = "tensorflow.keras.layers."
	values := map[string]starlark.Value{}
	for _, name := range []string{"MaxPooling2D", "MaxPool2D"} {
		values[layers+name] = poolLayer(name, "max_pooling2d", func(n *graph.Node, w window) {
			n.Op, n.MaxPool = graph.MaxPool, &graph.MaxPoolAttrs{PoolH: w.height, PoolW: w.width, StrideH: w.rows, StrideW: w.columns, Padding: w.padding}
		})
	}
	for _, name := range []string{"AveragePooling2D", "AvgPool2D"} {
		values[layers+name] = poolLayer(name, "average_pooling2d", func(n *graph.Node, w window) {
			n.Op, n.AveragePool = graph.AveragePool, &graph.AveragePoolAttrs{PoolH: w.height, PoolW: w.width, StrideH: w.rows, StrideW: w.columns, Padding: w.padding}
		})
	}
	for _, name := range []string{"GlobalAveragePooling2D", "GlobalAvgPool2D"} {
		sig := signature{name: "tf.keras.layers." + name, positional: []string{"data_format"}, only: map[string][]starlark.Value{"data_format": lastOnly}}
		values[layers+name] = constructor(sig, "global_average_pooling2d", func(_ *arguments, l *layer) {
			l.node.Op = graph.GlobalAveragePool
			l.complete = func(n *graph.Node, in []int) error {
				if len(in) != 3 {
					return fmt.Errorf("the input has shape %s; (height, width, channels) is wanted", shapeText(in))
				}
				n.Shape = in[2:]
				return nil
			}
		})
	}
	return values
}

// window is what a pooling layer looks at, and the distance from one window to the next.
type window struct {
	height, width, rows, columns int
	padding                      string // as in the graph: "" is "valid"
}

func poolLayer(name, snake string, set func(*graph.Node, window)) starlark.Value {
	sig := signature{
		name:       "tf.keras.layers." + name,
		positional: []string{"pool_size", "strides", "padding", "data_format"},
		only:       map[string][]starlark.Value{"data_format": lastOnly},
	}
	return constructor(sig, snake, func(a *arguments, l *layer) {
		var w window
		w.height, w.width = a.pair("pool_size", 2)
		w.rows, w.columns = w.height, w.width
		if !a.none("strides") {
			w.rows, w.columns = a.pair("strides", 1)
		}
		switch a.text("padding", "valid") {
		case "valid":
		case "same":
			w.padding = "same"
		default:
			a.wrong("padding", `"valid" or "same"`)
		}
		set(&l.node, w)
		l.complete = func(n *graph.Node, in []int) error {
			if len(in) == 3 && w.padding == "same" {
				n.Shape = []int{(in[0] + w.rows - 1) / w.rows, (in[1] + w.columns - 1) / w.columns, in[2]}
				return nil
			}
			if len(in) != 3 || in[0] < w.height || in[1] < w.width {
				return fmt.Errorf("a window of %dx%d does not fit the input %s, which should be (height, width, channels)", w.height, w.width, shapeText(in))
			}
			n.Shape = []int{(in[0]-w.height)/w.rows + 1, (in[1]-w.width)/w.columns + 1, in[2]}
			return nil
		}
	})
}
