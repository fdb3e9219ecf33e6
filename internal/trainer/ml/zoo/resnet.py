"""ResNet-20 for 32 x 32 colour images (He et al. 2015, section 4.2; Keras' ResNet20 v1).

Three stages of three residual blocks, with 16, 32 and 64 filters; the first block of the
second and third stage halves the image, and its shortcut is a 1 x 1 convolution with
stride 2: 273,066 trainable parameters. Records hold `image`, 32 x 32 x 3 float32 from 0
to 255, and `label`.
"""

import tensorflow as tf

from elasticdl.python.common.constants import Mode

BLOCKS = 3  # in each stage; the network is 6 * BLOCKS + 2 layers deep


def convolution(x, filters, size, strides):
    return tf.keras.layers.Conv2D(filters, kernel_size=size, strides=strides, padding="same")(x)


def normalize(x):
    # Keras' default of 0.99 would need hundreds of steps before evaluation knows what training saw.
    return tf.keras.layers.BatchNormalization(momentum=0.9)(x)


def block(x, filters, strides):
    y = convolution(x, filters, 3, strides)
    y = normalize(y)
    y = tf.keras.layers.Activation("relu")(y)
    y = convolution(y, filters, 3, 1)
    y = normalize(y)
    if strides != 1:
        x = convolution(x, filters, 1, strides)
    x = tf.keras.layers.add([x, y])
    return tf.keras.layers.Activation("relu")(x)


def custom_model():
    image = tf.keras.layers.Input(shape=(32, 32, 3), name="image")
    x = convolution(image, 16, 3, 1)
    x = normalize(x)
    x = tf.keras.layers.Activation("relu")(x)
    for stage, filters in enumerate([16, 32, 64]):
        for i in range(BLOCKS):
            x = block(x, filters, 2 if stage > 0 and i == 0 else 1)
    x = tf.keras.layers.GlobalAveragePooling2D()(x)
    logits = tf.keras.layers.Dense(10)(x)
    return tf.keras.Model(inputs=image, outputs=logits, name="resnet20")


def loss(labels, predictions):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(labels, [-1]), logits=predictions)
    )


def optimizer(lr=0.1):
    return tf.optimizers.SGD(lr, momentum=0.9)


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
