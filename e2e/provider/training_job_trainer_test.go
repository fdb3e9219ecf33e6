package provider_test

import (
	"os"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
)

// trainerImageVariable names the trainer's image in the cluster of kubeconfigVariable.
const trainerImageVariable = "ELASTIC_TEST_TRAINER_IMAGE"

// withTrainer is the provider's configuration for a cluster that can run the returned image of the trainer: the one
// that is named, or one of this test's own, with the trainer as it is now.
func withTrainer(t *testing.T) (configuration, image string) {
	t.Helper()
	if os.Getenv(kubeconfigVariable) != "" {
		image := os.Getenv(trainerImageVariable)
		if image == "" {
			t.Skipf("the cluster of $%s has a trainer only when $%s names its image", kubeconfigVariable, trainerImageVariable)
		}
		return asAdmin(""), image
	}
	trainer, err := program.Trainer(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own := simcluster.Start(t, simcluster.Nodes(3, "4", "15Gi"), simcluster.Image("elastic-trainer", trainer))
	shared := cluster
	cluster = own
	t.Cleanup(func() { cluster = shared })
	return asAdmin(""), "elastic-trainer"
}

// digits is a model file of the tutorial's kind, on the synthetic digits.
const digits = `
	model = { content = <<-EOT
	import tensorflow as tf

	def custom_model():
	    image = tf.keras.Input(shape=(28, 28), name="image")
	    x = tf.keras.layers.Flatten()(image)
	    return tf.keras.Model(inputs=image, outputs=tf.keras.layers.Dense(10)(x))

	def loss(labels, predictions):
	    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(labels, [-1]), logits=predictions))

	def optimizer(lr=0.1):
	    return tf.optimizers.SGD(lr)

	def feed(dataset, mode, _):
	    def parse(record):
	        values = tf.io.parse_single_example(record, {
	            "image": tf.io.FixedLenFeature([28, 28], tf.float32),
	            "label": tf.io.FixedLenFeature([1], tf.int64),
	        })
	        return {"image": tf.math.divide(values["image"], 255.0)}, tf.cast(values["label"], tf.int32)
	    return dataset.map(parse)

	def eval_metrics_fn():
	    return {"accuracy": lambda labels, predictions: tf.equal(
	        tf.argmax(predictions, 1, output_type=tf.int32), tf.cast(tf.reshape(labels, [-1]), tf.int32))}
	EOT
	}`

func TestTheTrainerRuns(t *testing.T) {
	admin, image := withTrainer(t)
	job := func(name, lines string) string {
		return admin + trainingJob(name, digits+"\n image = \""+image+"\"\n"+lines)
	}
	t.Run("a job runs to its end, and nothing of it is left after destroy", func(t *testing.T) {
		r := newTerminal(t)
		config := job("runs", "wait_for = \"succeeded\"") + "output \"sha\" {\n  value = elastic_training_job.test.model_sha256\n}\n"
		r.destroyAtTheEnd(t, "runs", config)
		printed, code := r.run(t, config, "apply", "-auto-approve")
		if code != 0 || strings.Contains(printed, "Warning: Training job") || strings.Contains(printed, "sha = null") {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		r.expectNoChanges(t, config)
	})
	t.Run("a job is resized while it runs, and destroyed while it runs", func(t *testing.T) {
		r := newTerminal(t)
		config := func(workers string) string {
			return job("long", "wait_for = \"running\"\n training = { minibatch_size = 10, grads_to_wait = 2, epochs = 100000 }\n workers = "+workers)
		}
		r.destroyAtTheEnd(t, "long", config("{ max = 1 }"))
		if printed, code := r.run(t, config("{ max = 1 }"), "apply", "-auto-approve"); code != 0 || strings.Contains(printed, "Warning: Training job") {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		r.expectNoChanges(t, config("{ max = 1 }"))
		uid := liveJob(t, "long").UID
		if printed, code := r.run(t, config("{ max = 2 }"), "apply", "-auto-approve"); code != 0 || !strings.Contains(printed, "1 changed") {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		r.expectNoChanges(t, config("{ max = 2 }"))
		if liveJob(t, "long").UID != uid {
			t.Error("the job was replaced")
		}
	})
	t.Run("a job that loses what it owns gets it back", func(t *testing.T) { losesItsParts(t, job) })
}
