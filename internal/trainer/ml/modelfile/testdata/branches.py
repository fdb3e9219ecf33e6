# A network with two ways: a residual sum, a gate and a concatenation, with every activation.
import tensorflow as tf
from tensorflow.keras import layers


def block(x, filters, stride):
    left = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    left = layers.BatchNormalization()(left)
    left = layers.Activation("relu")(left)
    left = layers.Conv2D(filters, 3, padding="same", activation="tanh")(left)
    right = layers.Conv2D(filters, (1, 1), strides=(stride, stride))(x)
    return layers.Activation(tf.nn.relu)(layers.Add()([left, right]))


def custom_model():
    image = tf.keras.Input(shape=(8, 8, 2), name="image")
    x = block(image, 4, 2)
    y = layers.AveragePooling2D(pool_size=2, strides=2)(image)
    y = layers.MaxPool2D(3, strides=1, padding="same")(y)
    y = layers.LeakyReLU(0.2)(y)
    x = layers.concatenate([x, y], name="both")
    x = layers.multiply((x, layers.Activation(tf.sigmoid)(x)))
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dense(3)(x)
    return tf.keras.Model(image, x, name="branches")


def loss(labels, predictions):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, predictions))


def optimizer(lr=0.01):
    return tf.keras.optimizers.SGD(lr, momentum=0.9)


def feed(dataset, mode, metadata):
    def parse(record):
        r = tf.io.parse_single_example(
            record,
            {"image": tf.io.FixedLenFeature([8, 8, 2], tf.float32), "label": tf.io.FixedLenFeature([1], tf.int64)},
        )
        return r["image"], r["label"]

    return dataset.map(parse)
