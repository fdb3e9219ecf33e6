# The network of the hash tests: every layer of the tutorial's, narrower, so that the portable kernels too can train it
# many times in `make test`.
import tensorflow as tf


def custom_model():
    image = tf.keras.Input(shape=(28, 28), name="image")
    x = tf.keras.layers.Reshape((28, 28, 1))(image)
    x = tf.keras.layers.Conv2D(8, kernel_size=(3, 3), activation="relu")(x)
    x = tf.keras.layers.Conv2D(16, kernel_size=(3, 3), activation="relu")(x)
    x = tf.keras.layers.BatchNormalization()(x)
    x = tf.keras.layers.MaxPooling2D(pool_size=(2, 2))(x)
    x = tf.keras.layers.Dropout(0.25)(x)
    x = tf.keras.layers.Flatten()(x)
    return tf.keras.Model(inputs=image, outputs=tf.keras.layers.Dense(10)(x), name="reference")


def loss(labels, predictions):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(labels, [-1]), logits=predictions)
    )


def optimizer(lr=0.1):
    return tf.optimizers.SGD(lr)


def feed(dataset, mode, metadata):
    def parse(record):
        r = tf.io.parse_single_example(
            record,
            {"image": tf.io.FixedLenFeature([28, 28], tf.float32), "label": tf.io.FixedLenFeature([1], tf.int64)},
        )
        return {"image": tf.math.divide(r["image"], 255.0)}, tf.cast(r["label"], tf.int32)

    return dataset.map(parse)
