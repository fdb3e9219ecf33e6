"""A small convolutional network for MNIST and Fashion-MNIST.

The file follows the model contract of ElasticDL's last release: custom_model, loss,
optimizer, feed and eval_metrics_fn, written with TensorFlow's names. elastic-trainer reads
it without Python or TensorFlow; `elastic-trainer model FILE` prints the layers it finds.
"""

import tensorflow as tf

from elasticdl.python.common.constants import Mode


def custom_model():
    # A record's image has 28 x 28 values and no channel axis; convolutions want one.
    image = tf.keras.Input(shape=(28, 28), name="image")
    x = tf.keras.layers.Reshape((28, 28, 1))(image)

    # Two convolutions without padding: 28 -> 26 -> 24.
    x = tf.keras.layers.Conv2D(32, kernel_size=(3, 3), activation="relu")(x)
    x = tf.keras.layers.Conv2D(64, kernel_size=(3, 3), activation="relu")(x)

    # Batch normalization and dropout behave differently in training and evaluation. The
    # trainer knows which one is running, so neither is called with training=True.
    x = tf.keras.layers.BatchNormalization()(x)
    x = tf.keras.layers.MaxPooling2D(pool_size=(2, 2))(x)
    x = tf.keras.layers.Dropout(0.25)(x)

    # One score (a logit) for each of the ten classes; the loss applies the softmax.
    x = tf.keras.layers.Flatten()(x)
    logits = tf.keras.layers.Dense(10)(x)
    return tf.keras.Model(inputs=image, outputs=logits, name="mnist")


def loss(labels, predictions):
    per_record = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.reshape(labels, [-1]), logits=predictions
    )
    return tf.reduce_mean(per_record)


# The default is used unless the job says otherwise (--learning-rate).
def optimizer(lr=0.1):
    return tf.optimizers.SGD(lr)


def feed(dataset, mode, metadata):
    # What a record holds: pixels from 0 to 255 as float32 and, except for prediction, a label.
    description = {"image": tf.io.FixedLenFeature([28, 28], tf.float32)}
    if mode != Mode.PREDICTION:
        description["label"] = tf.io.FixedLenFeature([1], tf.int64)

    def parse(record):
        values = tf.io.parse_single_example(record, description)
        features = {"image": tf.math.divide(values["image"], 255.0)}
        if mode == Mode.PREDICTION:
            return features
        return features, tf.cast(values["label"], tf.int32)

    # No shuffle here: the trainer's schedule shuffles, so that a preempted job and an
    # undisturbed one see the same records in the same order.
    return dataset.map(parse)


def eval_metrics_fn():
    return {
        "accuracy": lambda labels, predictions: tf.equal(
            tf.argmax(predictions, 1, output_type=tf.int32),
            tf.cast(tf.reshape(labels, [-1]), tf.int32),
        )
    }
