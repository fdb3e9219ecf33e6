package modelfile

import (
	"slices"
	"strings"
	"testing"
)

const zooMain = `import tensorflow as tf
from shop.columns import SIZE, feed
from shop import losses as of
try:
    from nowhere.blocks import Net
except ImportError:
    from shop.blocks import Net
def custom_model():
    x = tf.keras.Input((SIZE,))
    return tf.keras.Model(x, Net(3)(x))
def loss(labels, output):
    return of.mean(labels, output)
def optimizer(lr=0.1):
    return tf.optimizers.SGD(lr)
def eval_metrics_fn():
    return {}
`

var zoo = map[string]string{
	"shop.columns": `import tensorflow as tf
from shop.sizes import SIZE
def feed(dataset, mode, _):
    def parse(record):
        r = tf.io.parse_single_example(record, {"x": tf.io.FixedLenFeature([SIZE], tf.float32), "y": tf.io.FixedLenFeature([1], tf.int64)})
        return r["x"], r["y"]
    return dataset.map(parse)
def unused():
    with open("x") as f:
        return f
`,
	"shop.sizes":  "SIZE = 4\n",
	"shop.losses": "import tensorflow as tf\ndef mean(labels, output):\n    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, output))\n",
	"shop.blocks": "import tensorflow as tf\nclass Net(tf.keras.layers.Layer):\n    def __init__(self, n):\n        super().__init__()\n        self.dense = tf.keras.layers.Dense(n)\n    def call(self, x):\n        return self.dense(x)\n",
}

// bundled is a file with what it imports of a zoo, and the names that were looked for.
func bundled(t *testing.T, main string, zoo map[string]string) (text []byte, imported []string) {
	t.Helper()
	text, err := Bundle([]byte(main), func(name string) ([]byte, bool, error) {
		imported = append(imported, name)
		module, found := zoo[name]
		return []byte(module), found, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text, imported
}

func TestAModelFileRunsWithTheModulesThatItImports(t *testing.T) {
	text, imported := bundled(t, zooMain, zoo)
	m, _, err := Load("m.py", text, Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if m.Feed.Label != "y" || len(m.Nodes) != 2 || m.Nodes[1].Name != "dense" || m.Nodes[1].Shape[0] != 3 {
		t.Errorf("%+v", m)
	}
	if slices.ContainsFunc(imported, func(name string) bool { return strings.HasPrefix(name, "tensorflow") }) {
		t.Errorf("it looked for %q", imported)
	}
	again, _ := bundled(t, string(text), nil)
	if string(again) != string(text) {
		t.Error("a bundle is bundled again")
	}
	if alone, _ := bundled(t, "import tensorflow as tf\n", zoo); string(alone) != "import tensorflow as tf\n" {
		t.Errorf("a file that imports nothing became %q", alone)
	}
}

func TestMessagesAboutAModuleNameItsFileAndLine(t *testing.T) {
	for name, c := range map[string]struct{ module, text, want string }{
		"what cannot be run":      {"shop.losses", "def mean(labels, output):\n    return 2 ** 3\n", "shop/losses.py:2:14: the power operator"},
		"what fails when it runs": {"shop.losses", "def mean(labels, output):\n    return labels.nothing\n", "shop/losses.py:2:18: nothing of a traced value is not implemented"},
		"a name that is missing":  {"shop.sizes", "LENGTH = 4\n", "module shop.sizes has no SIZE"},
		"a circle":                {"shop.sizes", "from shop.columns import SIZE\n", "module shop.columns imports itself"},
	} {
		t.Run(name, func(t *testing.T) {
			other := map[string]string{}
			for k, v := range zoo {
				other[k] = v
			}
			other[c.module] = c.text
			text, _ := bundled(t, zooMain, other)
			_, _, err := Load("m.py", text, Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; %q is wanted", err, c.want)
			}
		})
	}
	t.Run("a module of a model zoo that is not there", func(t *testing.T) {
		_, model, _ := strings.Cut(zooMain, "def custom_model")
		text := "import tensorflow as tf\nfrom model_zoo.census.columns import size\nSIZE = size()\ndef custom_model" + model
		_, _, err := Load("m.py", []byte(text), Options{})
		if err == nil || !strings.Contains(err.Error(), "its file is not with the model file") || !strings.Contains(err.Error(), "m.py:3:") {
			t.Errorf("%v", err)
		}
	})
}

func TestAScheduleOfTheLearningRateIsAFunctionOfTheStep(t *testing.T) {
	m, _ := loadFile(t, "testdata/preprocessing.py", Options{})
	for step, want := range map[int64]float64{0: 0.01, 9: 0.01, 10: 0.001, 1 << 40: 0.001} {
		if got, err := m.LearningRates.At(step); err != nil || got != want {
			t.Errorf("step %d: %v, %v; want %v", step, got, err, want)
		}
	}
	rate := 0.5
	_, _, err := Load("m.py", readFile(t, "testdata/preprocessing.py"), Options{LearningRate: &rate})
	if err == nil || !strings.Contains(err.Error(), "the job gives the learning rate 0.5, and callbacks() a schedule of it") {
		t.Errorf("a rate of the job's beside the schedule: %v", err)
	}
	other := strings.Replace(string(readFile(t, "testdata/preprocessing.py")), "return 0.001", "return 0.002", 1)
	changed, _, err := Load("m.py", []byte(other), Options{})
	if err != nil || changed.LearningRates.Digest == m.LearningRates.Digest {
		t.Errorf("another schedule has the same digest (%v)", err)
	}
}

func TestACallThatBuildsAnotherNetworkInTrainingIsRefused(t *testing.T) {
	src := strings.Replace(string(readFile(t, "testdata/subclassed.py")), "x = self._pool(x)\n        if training:", "if training:\n            x = self._pool(x)", 1)
	_, _, err := Load("m.py", []byte(src), Options{})
	if err == nil || !strings.Contains(err.Error(), "only Dropout may depend on it") || !strings.Contains(err.Error(), "m.py:") {
		t.Errorf("%v", err)
	}
}

func TestMessagesAboutLayersAndFunctionsOfAModuleNameItsFileAndLine(t *testing.T) {
	imports := "import tensorflow as tf\nfrom shop.parts import "
	model := "def custom_model():\n    x = tf.keras.Input((4,), name=\"x\")\n    return tf.keras.Model(x, tf.keras.layers.Dense(3)(x))\n"
	_, rest, _ := strings.Cut(zooMain, "def loss")
	rest = "def loss" + rest
	rest = strings.Replace(rest, "of.mean(labels, output)", "tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, output))", 1)
	_, feed, _ := strings.Cut(strings.Replace(zoo["shop.columns"], "[SIZE]", "[4]", 1), "import SIZE\n")
	for name, c := range map[string]struct{ main, module, want string }{
		"what a layer takes": {
			imports + "joined\ndef custom_model():\n    x = tf.keras.Input((4,), name=\"x\", dtype=\"int32\")\n" +
				"    y = tf.keras.layers.Flatten()(tf.keras.layers.Embedding(9, 2)(x))\n    return tf.keras.Model(x, joined(x, y))\n" + feed + rest,
			"import tensorflow as tf\ndef joined(x, y):\n    y = tf.keras.layers.Concatenate()([y, x])\n    return tf.keras.layers.Dense(3)(y)\n",
			"m.py:6:26: tf.keras.Model: layer concatenate (line 3 of shop/parts.py) takes input x, whose numbers are rows",
		},
		"what feed returns": {
			imports + "feed\n" + model + rest, "def feed(dataset, mode, _):\n    return 3\n",
			"shop/parts.py:1: feed returns 3; the mapped dataset is wanted",
		},
		"what a metric takes": {
			imports + "share\n" + model + feed + strings.Replace(rest, "{}", "{\"share\": share}", 1), "\n\ndef share(labels):\n    return 1\n",
			"shop/parts.py:3: metric \"share\": share takes 1 parameters",
		},
		"what the model's call gives": {
			imports + "Net\nmodel = Net()\n" + feed + rest,
			"import tensorflow as tf\nclass Net(tf.keras.Model):\n    def __init__(self):\n        super().__init__()\n    def call(self, x):\n        return 3\n",
			"shop/parts.py:5: Net: call ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, _ := bundled(t, c.main, map[string]string{"shop.parts": c.module})
			_, _, err := Load("m.py", text, Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; %q is wanted", err, c.want)
			}
		})
	}
	t.Run("a notice, and the layer's place", func(t *testing.T) {
		main := imports + "Net\ndef custom_model():\n    x = tf.keras.Input((4,), name=\"x\")\n    return tf.keras.Model(x, Net(3)(x))\n" + feed + rest
		always := strings.Replace(zoo["shop.blocks"], "return self.dense(x)", "return tf.keras.layers.Dropout(0.1)(self.dense(x), training=True)", 1)
		text, _ := bundled(t, main, map[string]string{"shop.parts": always})
		m, report, err := Load("m.py", text, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(report.Notices, func(n Message) bool {
			return strings.HasPrefix(n.String(), "shop/parts.py, line 7: training=True")
		}) {
			t.Errorf("%v", report.Notices)
		}
		if at := m.Nodes[m.Output].Place.String(); at != "line 7 of shop/parts.py" {
			t.Errorf("the layer is of %s", at)
		}
	})
}
