"""ElasticDL's CIFAR-10 network, for 32 x 32 colour images.

Three times two convolutions with "same" padding, each normalized before its ReLU, then
max-pooling and dropout: 308,394 trainable parameters. Records hold `image`, 32 x 32 x 3
float32 from 0 to 255, and `label`.
"""

import tensorflow as tf

from elasticdl.python.common.constants import Mode


def convolution(x, filters):
    x = tf.keras.layers.Conv2D(filters, kernel_size=(3, 3), padding="same")(x)
    x = tf.keras.layers.BatchNormalization(epsilon=1e-06, axis=-1, momentum=0.9)(x)
    return tf.keras.layers.Activation(tf.nn.relu)(x)


def custom_model():
    image = tf.keras.layers.Input(shape=(32, 32, 3), name="image")
    x = image
    for filters, rate in [(32, 0.2), (64, 0.3), (128, 0.4)]:
        x = convolution(x, filters)
        x = convolution(x, filters)
        x = tf.keras.layers.MaxPooling2D(pool_size=(2, 2))(x)
        x = tf.keras.layers.Dropout(rate)(x)
    x = tf.keras.layers.Flatten()(x)
    logits = tf.keras.layers.Dense(10, name="output")(x)
    return tf.keras.Model(inputs=image, outputs=logits, name="cifar10_model")


def loss(labels, predictions):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(labels, [-1]), logits=predictions)
    )


def optimizer(lr=0.1):
    return tf.optimizers.SGD(lr)


def feed(dataset, mode, metadata):
    description = {"image": tf.io.FixedLenFeature([32, 32, 3], tf.float32)}
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
