"""The last style, with all that surrounds models in real files: import (this is no import)."""
import os, sys
import tensorflow as tf

from elasticdl.python.common.constants import (  # a comment with a ) in it
    MaxComputeConfig,
    Mode,
)
from elasticdl.python.worker.prediction_outputs_processor import \
    BasePredictionOutputsProcessor
from tensorflow.keras import layers


def custom_model():
    from tensorflow.python.keras.layers import (
        Dense as Full,
        Flatten,
    ); inputs = tf.keras.layers.Input(shape=(8, 8, 3), name="image")
    use_bias = True
    x = layers.Conv2D(
        8,
        kernel_size=(3, 3),
        padding="same",
        use_bias=use_bias,
        activation=None,
    )(inputs)
    x = layers.BatchNormalization(epsilon=1e-06, axis=-1, momentum=0.9)(x)
    x = layers.Activation(tf.nn.relu)(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Dropout(0.2)(x)
    unused = layers.ReLU()(x)
    outputs = Full(3, name="output")(Flatten()(x))
    return tf.keras.Model(inputs=inputs, outputs=outputs, name="last_model")


def loss(labels, predictions):
    labels = tf.reshape(labels, [-1])
    return tf.reduce_mean(
        input_tensor=tf.nn.sparse_softmax_cross_entropy_with_logits(
            logits=predictions, labels=labels
        )
    )


def optimizer(lr=0.01):
    return tf.optimizers.SGD(lr)


def callbacks():
    return []


def feed(dataset, mode, _):
    def _describe():
        if mode == Mode.PREDICTION:
            return {"image": tf.io.FixedLenFeature([8 * 8 * 3], tf.int64)}
        return {
            "label": tf.io.FixedLenFeature([], tf.int64),
            "image": tf.io.FixedLenFeature([8 * 8 * 3], tf.int64),
        }

    def _parse_data(record):
        r = tf.io.parse_single_example(record, _describe())
        features = {"image": tf.math.divide(tf.cast(r["image"], tf.float32), 255.0)}
        if mode == Mode.PREDICTION:
            return features
        else:
            return features, tf.cast(r["label"], tf.int32)

    dataset = dataset.map(_parse_data)

    if mode == Mode.TRAINING:
        dataset = dataset.shuffle(buffer_size=1024)
    return dataset


def eval_metrics_fn():
    return {
        "accuracy": lambda labels, predictions: tf.equal(
            tf.argmax(predictions, 1, output_type=tf.int32),
            tf.cast(tf.reshape(labels, [-1]), tf.int32),
        )
    }


# Only prediction uses the class, and it needs what cannot be run.
class PredictionOutputsProcessor(BasePredictionOutputsProcessor):
    def __init__(self):
        self.table = os.environ[MaxComputeConfig.PROJECT_NAME]

    def process(self, predictions, worker_id):
        with open(self.table) as f:
            f.write(f"{worker_id}: {predictions.numpy()}")


def convert(path):
    try:
        return [line.strip() for line in open(path)]
    except IOError:
        return None


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(convert(name))
