package modelfile

import (
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

func TestLosses(t *testing.T) {
	const flat = "tf.reshape(output, [-1])"
	for text, want := range map[string]graph.LossKind{
		"tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(tf.reshape(labels, [-1]), tf.float32), logits=" + flat + ")": graph.SigmoidCrossEntropy,
		"tf.math.squared_difference(" + flat + ", tf.reshape(tf.cast(labels, tf.float32), [-1]))":                            graph.MeanSquaredError,
		"tf.square(tf.reshape(labels, [-1]) - " + flat + ")":                                                                 graph.MeanSquaredError,
		"tf.math.square(tf.subtract(" + flat + ", tf.reshape(labels, [-1])))":                                                graph.MeanSquaredError,
		"tf.keras.losses.mean_squared_error(tf.reshape(labels, [-1]), " + flat + ")":                                         graph.MeanSquaredError,
	} {
		t.Run(text+" is the "+string(want), func(t *testing.T) {
			src := strings.ReplaceAll(assemble("loss", "def loss(labels, output):\n    return tf.reduce_mean("+text+")"), "Dense(2)", "Dense(1)")
			src = strings.Replace(src, "def eval_metrics_fn():\n    return {}", "", 1)
			m, _, err := Load("m.py", []byte(src), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if m.Loss != want || m.Metrics[0].Kind != graph.MetricOf(want) {
				t.Errorf("loss %s, metrics %v", m.Loss, m.Metrics)
			}
		})
	}
	t.Run("a label of floats goes with the squared error, unless it is cast to integers", func(t *testing.T) {
		src := strings.ReplaceAll(assemble("loss", "def loss(labels, output):\n    return tf.reduce_mean(tf.square(tf.reshape(output, [-1]) - tf.reshape(labels, [-1])))"), "Dense(2)", "Dense(1)")
		src = strings.Replace(src, "tf.int64)", "tf.float32)", 1)
		src = strings.Replace(src, "return {}", `return {"mse": tf.keras.metrics.MeanSquaredError()}`, 1)
		m, _, err := Load("m.py", []byte(src), Options{})
		if err != nil || m.Feed.Features[1].DType != graph.Float32 || m.Feed.Label != "label" || m.Metrics[0].Kind != graph.SquaredError {
			t.Fatal(m, err)
		}
		cast := strings.Replace(src, `r["label"]`, `tf.cast(r["label"], tf.int32)`, 1)
		if _, _, err = Load("m.py", []byte(cast), Options{}); err == nil || !strings.Contains(err.Error(), "one integer is wanted") {
			t.Errorf("a cast label: %v", err)
		}
	})
	t.Run("a loss of one value for each record refuses a model with two", func(t *testing.T) {
		src := assemble("loss", "def loss(labels, output):\n    return tf.reduce_mean(tf.square(tf.reshape(output, [-1]) - tf.reshape(labels, [-1])))")
		if _, _, err := Load("m.py", []byte(src), Options{}); err == nil || !strings.Contains(err.Error(), "Dense(1)") {
			t.Error(err)
		}
	})
}
