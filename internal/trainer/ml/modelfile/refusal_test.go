package modelfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// baseFile is a model file in sections that a case of testdata/refusals replaces by name. Every section stays in its
// place, so the lines of messages are small.
var baseFile = []struct{ name, text string }{
	{"imports", "import tensorflow as tf"},
	{"model", "def custom_model():\n    image = tf.keras.Input(shape=(4, 4, 1))\n    x = tf.keras.layers.Flatten()(image)\n    return tf.keras.Model(image, tf.keras.layers.Dense(2)(x))"},
	{"loss", "def loss(labels, output):\n    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, output))"},
	{"optimizer", "def optimizer(lr=0.1):\n    return tf.optimizers.SGD(lr)"},
	{"feed", "def feed(dataset, mode, _):\n    def parse(record):\n        r = tf.io.parse_single_example(record, {\n" +
		"            \"image\": tf.io.FixedLenFeature([16], tf.float32), \"label\": tf.io.FixedLenFeature([1], tf.int64)})\n" +
		"        return r[\"image\"], r[\"label\"]\n    return dataset.map(parse)"},
	{"metrics", "def eval_metrics_fn():\n    return {}"},
	{"rest", ""},
}

// twoInputs is a file with an input of numbers and one of row numbers, as tf.keras.Model is given them and feed returns
// them.
const twoInputs = `import tensorflow as tf
def custom_model():
    image, rows = tf.keras.Input((4, 4, 1), name="image"), tf.keras.Input((1,), name="rows", dtype="int32")
    y = tf.keras.layers.Flatten()(tf.keras.layers.Embedding(10, 2)(rows))
    x = tf.keras.layers.Concatenate()([tf.keras.layers.Flatten()(image), y])
    return tf.keras.Model(%s, tf.keras.layers.Dense(2)(x))
def loss(labels, output):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, output))
def optimizer(lr=0.1):
    return tf.optimizers.SGD(lr)
def feed(dataset, mode, _):
    def parse(record):
        r = tf.io.parse_single_example(record, {"image": tf.io.FixedLenFeature([16], tf.float32),
            "rows": tf.io.FixedLenFeature([1], tf.int64), "label": tf.io.FixedLenFeature([1], tf.int64)})
        return %s, r["label"]
    return dataset.map(parse)
def eval_metrics_fn():
    return {}`

// assemble gives the base file with one section replaced; body replaces the layers of custom_model instead, and inputs
// is twoInputs with a line of inputs and a line of features.
func assemble(section, input string) string {
	if section == "inputs" {
		inputs, features, _ := strings.Cut(input, "\n")
		return fmt.Sprintf(twoInputs, inputs, features)
	}
	var lines []string
	for _, part := range baseFile {
		text := part.text
		switch {
		case section == "file":
			return input
		case part.name == section:
			text = input
		case part.name == "model" && section == "body":
			text = "def custom_model():\n    x = tf.keras.Input(shape=(4, 4, 1))\n    " +
				strings.ReplaceAll(input, "\n", "\n    ") + "\n    return x"
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestRefusals runs the scripts of testdata/refusals: a command names the section of the base file that its input
// replaces, and what follows ---- is the refusal, or the notices and warnings of a file that is accepted.
func TestRefusals(t *testing.T) {
	for _, script := range []string{"python", "layers", "functions", "feed", "input_fn", "limits"} {
		t.Run("the "+script+" script gives the messages that it lists", func(t *testing.T) {
			datadriven.RunTest(t, "testdata/refusals/"+script, func(t *testing.T, d *datadriven.TestData) string {
				small := limits{steps: 1e6, memory: 6 << 20, sequenceSize: 1 << 16, integerBits: 4096}
				_, report, err := Load("m.py", []byte(assemble(d.Cmd, d.Input)), Options{limits: small})
				if err != nil {
					return err.Error() + "\n"
				}
				out := "accepted\n"
				for _, n := range report.Notices {
					out += "notice: " + n.String() + "\n"
				}
				for _, w := range report.Warnings {
					out += "warning: " + w.String() + "\n"
				}
				return out
			})
		})
	}
}
