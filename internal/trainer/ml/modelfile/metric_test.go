package modelfile

import (
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

func TestMetricsOfALogit(t *testing.T) {
	const labels = "tf.cast(tf.reshape(labels, [-1]), tf.int32)"
	for text, want := range map[string]graph.Metric{
		"tf.keras.metrics.AUC(from_logits=True)":                                                                                                          {Kind: graph.AUC},
		"tf.keras.metrics.AUC(num_thresholds=200, curve=\"ROC\", from_logits=True, name=\"a\")":                                                           {Kind: graph.AUC},
		"tf.keras.metrics.BinaryAccuracy(threshold=0.5)":                                                                                                  {Kind: graph.BinaryAccuracy, Threshold: 0.5},
		"lambda labels, predictions: tf.equal(tf.cast(tf.reshape(predictions, [-1]) > 0.0, tf.int32), " + labels + ")":                                    {Kind: graph.BinaryAccuracy},
		"lambda labels, predictions: tf.equal(" + labels + ", tf.cast(tf.greater(tf.reshape(predictions, [-1]), 0.5), tf.int32))":                         {Kind: graph.BinaryAccuracy, Threshold: 0.5},
		"lambda labels, predictions: tf.reduce_mean(tf.cast(tf.equal(tf.cast(0 < tf.reshape(predictions, [-1]), tf.int32), " + labels + "), tf.float32))": {Kind: graph.BinaryAccuracy},
	} {
		t.Run(text+" is the "+string(want.Kind), func(t *testing.T) {
			src := assemble("loss", "def loss(labels, output):\n    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(tf.reshape(labels, [-1]), tf.float32), logits=tf.reshape(output, [-1])))")
			src = strings.ReplaceAll(src, "Dense(2)", "Dense(1)")
			src = strings.Replace(src, "return {}", `return {"m": `+text+`}`, 1)
			m, _, err := Load("m.py", []byte(src), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if want.Name = "m"; len(m.Metrics) != 1 || m.Metrics[0] != want {
				t.Errorf("%+v", m.Metrics)
			}
		})
	}
	for text, want := range map[string]string{
		"tf.keras.metrics.AUC()":                  "from_logits=True",
		"tf.keras.metrics.AUC(num_thresholds=50)": "num_thresholds=50 is not implemented; only 200 is",
		"tf.keras.metrics.AUC(curve=\"PR\")":      "only \"ROC\" is",
		"tf.keras.metrics.Accuracy()":             "SparseCategoricalAccuracy()",
		"tf.keras.metrics.MeanSquaredError()":     "does not go with the loss sigmoid_cross_entropy; binary_accuracy or auc does",
		"tf.keras.metrics.Precision()":            "tf.keras.metrics.Precision is not implemented",
		"lambda labels, predictions: tf.equal(tf.cast(predictions > 0.0, tf.int32), " + labels + ")": "implemented are", // n × n comparisons in TensorFlow
	} {
		t.Run(text+" is refused by name and line", func(t *testing.T) {
			src := assemble("loss", "def loss(labels, output):\n    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(tf.reshape(labels, [-1]), tf.float32), logits=tf.reshape(output, [-1])))")
			src = strings.ReplaceAll(src, "Dense(2)", "Dense(1)")
			src = strings.Replace(src, "return {}", `return {"m": `+text+`}`, 1)
			_, _, err := Load("m.py", []byte(src), Options{})
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "m.py:1") {
				t.Error(err)
			}
		})
	}
	t.Run("SparseCategoricalAccuracy() is the accuracy of class numbers", func(t *testing.T) {
		src := strings.Replace(assemble("metrics", "def eval_metrics_fn():\n    return {}"), "return {}", `return {"m": tf.keras.metrics.SparseCategoricalAccuracy()}`, 1)
		m, _, err := Load("m.py", []byte(src), Options{})
		if err != nil || m.Metrics[0].Kind != graph.Accuracy {
			t.Error(m, err)
		}
	})
}
