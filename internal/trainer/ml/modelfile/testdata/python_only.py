import tensorflow as tf
import numpy as np

"""Constructs that Python has and Starlark lacks, where training comes along."""

MESSAGE = ("units must be positive, "
           'not "zero", '
           "as given in " u"custom_model")


def dense(units, *args, activation=None, **kwargs):
    assert units > 0, MESSAGE
    assert isinstance(units, int)
    if activation is not None and kwargs.get("name") is None:
        name = "hidden"
    else:
        name = None
    if len(args) > 0:
        raise ValueError("dense takes no more than units: "
                         "%d given" % len(args))
    return tf.keras.layers.Dense(units, activation=activation, name=name)


def custom_model():
    image = tf.keras.Input(shape=(4,))
    total = \
        4 + \
        2
    x = dense(total, activation="relu")(image)
    return tf.keras.Model(image, dense(2)(x))


@tf.function
def loss(labels, predictions):
    import numpy; flat = tf.reshape(labels, [-1])
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(flat, predictions)
    )


def optimizer(lr=0.1):
    return tf.optimizers.SGD(learning_rate=lr)


def feed(dataset, mode, metadata):
    offsets = [0.0]
    offsets += [1.5 for _ in range(2) if not None]

    def parse(record):
        r = tf.io.parse_single_example(record, {"x": tf.io.FixedLenFeature((2, 2), tf.float32), "y": tf.io.FixedLenFeature((), tf.int64)})
        x = tf.reshape(r["x"], (4,))
        x -= offsets[-1]
        return [x], r["y"]

    return dataset.map(parse)
