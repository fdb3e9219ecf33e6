"""A small dense network for Fisher's iris flowers.

Two hidden layers of ten and three classes: 193 parameters. Records hold `features`, four
float32 (length and width of sepal and petal, in centimetres), and `label` (0 setosa,
1 versicolor, 2 virginica).
"""

import tensorflow as tf

from elasticdl.python.common.constants import Mode


def custom_model():
    features = tf.keras.Input(shape=(4,), name="features")
    x = tf.keras.layers.Dense(10, activation="relu")(features)
    x = tf.keras.layers.Dense(10, activation="relu")(x)
    logits = tf.keras.layers.Dense(3)(x)
    return tf.keras.Model(inputs=features, outputs=logits, name="iris")


def loss(labels, predictions):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(labels, [-1]), logits=predictions)
    )


def optimizer(lr=0.01):
    return tf.optimizers.Adam(lr)


def feed(dataset, mode, metadata):
    description = {"features": tf.io.FixedLenFeature([4], tf.float32)}
    if mode != Mode.PREDICTION:
        description["label"] = tf.io.FixedLenFeature([1], tf.int64)

    def parse(record):
        values = tf.io.parse_single_example(record, description)
        features = {"features": values["features"]}
        if mode == Mode.PREDICTION:
            return features
        return features, tf.cast(values["label"], tf.int32)

    return dataset.map(parse)


def eval_metrics_fn():
    return {
        "accuracy": lambda labels, predictions: tf.equal(
            tf.argmax(predictions, 1, output_type=tf.int32), tf.cast(tf.reshape(labels, [-1]), tf.int32)
        )
    }
