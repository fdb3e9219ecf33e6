"""The elastic scheduling tutorial's network, for 28 x 28 grey images (MNIST, Fashion-MNIST).

Two convolutions, batch normalization, max-pooling, dropout and one dense layer: 111,114
trainable parameters. Records hold `image`, 28 x 28 float32 from 0 to 255, and `label`.
"""

import tensorflow as tf

from elasticdl.python.common.constants import Mode


def custom_model():
    image = tf.keras.Input(shape=(28, 28), name="image")
    x = tf.keras.layers.Reshape((28, 28, 1))(image)
    x = tf.keras.layers.Conv2D(32, kernel_size=(3, 3), activation="relu")(x)
    x = tf.keras.layers.Conv2D(64, kernel_size=(3, 3), activation="relu")(x)
    x = tf.keras.layers.BatchNormalization()(x)
    x = tf.keras.layers.MaxPooling2D(pool_size=(2, 2))(x)
    x = tf.keras.layers.Dropout(0.25)(x)
    x = tf.keras.layers.Flatten()(x)
    logits = tf.keras.layers.Dense(10)(x)
    return tf.keras.Model(inputs=image, outputs=logits, name="mnist")


def loss(labels, predictions):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(labels, [-1]), logits=predictions)
    )


def optimizer(lr=0.1):
    return tf.optimizers.SGD(lr)


def feed(dataset, mode, metadata):
    description = {"image": tf.io.FixedLenFeature([28, 28], tf.float32)}
    if mode != Mode.PREDICTION:
        description["label"] = tf.io.FixedLenFeature([1], tf.int64)

    def parse(record):
        values = tf.io.parse_single_example(record, description)
        features = {"image": tf.math.divide(values["image"], 255.0)}
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
