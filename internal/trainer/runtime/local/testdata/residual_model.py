# What reference_model.py does not have, narrow enough for the portable kernels: strides, "same" padding, a value that goes
# two ways, averages, a gate, and an optimizer with slots.
import tensorflow as tf
from tensorflow.keras import layers


def custom_model():
    image = tf.keras.Input(shape=(28, 28), name="image")
    x = layers.Reshape((28, 28, 1))(image)
    x = layers.Conv2D(6, 3, strides=2, padding="same", activation="relu")(x)
    left = layers.Conv2D(10, 3, strides=2, padding="same", use_bias=False)(x)
    left = layers.BatchNormalization()(left)
    left = layers.Activation("relu")(left)
    right = layers.Conv2D(10, 1, strides=2)(x)
    x = layers.Activation("tanh")(layers.Add()([left, right]))
    x = layers.Multiply()([x, layers.Activation("sigmoid")(right)])
    whole = layers.GlobalAveragePooling2D()(x)
    x = layers.Flatten()(layers.AveragePooling2D(2)(x))
    x = layers.Dropout(0.1)(layers.Concatenate()([x, whole]))
    return tf.keras.Model(inputs=image, outputs=layers.Dense(10)(x), name="residual")


def loss(labels, predictions):
    return tf.reduce_mean(
        tf.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot(tf.reshape(labels, [-1]), 10), logits=predictions)
    )


def optimizer(lr=0.01):
    return tf.keras.optimizers.Adam(lr)


def feed(dataset, mode, metadata):
    def parse(record):
        r = tf.io.parse_single_example(
            record,
            {"image": tf.io.FixedLenFeature([28, 28], tf.float32), "label": tf.io.FixedLenFeature([1], tf.int64)},
        )
        return {"image": tf.math.divide(r["image"], 255.0)}, tf.cast(r["label"], tf.int32)

    return dataset.map(parse)
