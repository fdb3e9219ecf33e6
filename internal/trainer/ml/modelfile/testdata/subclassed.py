"""A model as a class of tf.keras.Model, with a layer of the file's own and a block that is used twice."""
import tensorflow as tf

from elasticdl.python.common.constants import Mode


class Block(tf.keras.layers.Layer):
    """A convolution with what goes with it."""

    WINDOW = (3, 3)

    def __init__(self, filters, kernel_size=WINDOW, **kwargs):
        super(Block, self).__init__(**kwargs)
        self.conv = tf.keras.layers.Conv2D(filters, kernel_size, padding="same")
        self.norm = tf.keras.layers.BatchNormalization()

    def call(self, inputs, training=None):
        x = self.norm(self.conv(inputs), training=training)
        return tf.nn.relu(x)


class Wider(Block):
    def __init__(self, filters):
        super().__init__(filters * 2, name="wider")

    def call(self, inputs):
        x = super().call(inputs, training=True if False else None)
        return x


class CustomModel(tf.keras.Model):
    def __init__(self, classes=10):
        super(CustomModel, self).__init__(name="subclassed")
        self._reshape = tf.keras.layers.Reshape((28, 28, 1))
        self._blocks = [Block(4), Wider(4)]
        self._pool = tf.keras.layers.MaxPooling2D((4, 4))
        self._dropout = tf.keras.layers.Dropout(0.25)
        self._flatten = tf.keras.layers.Flatten()
        self._dense = tf.keras.layers.Dense(classes)

    def call(self, inputs, training=False):
        x = self._reshape(inputs["image"])
        for block in self._blocks:
            x = block(x)
        x = self._pool(x)
        if training:
            x = self._dropout(x, training=training)
        return self._dense(self._flatten(x))


def loss(labels, predictions):
    labels = tf.reshape(labels, [-1])
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=predictions, labels=labels))


def optimizer(lr=0.05):
    return tf.optimizers.SGD(lr)


def feed(dataset, mode, _):
    def parse(record):
        description = {"image": tf.io.FixedLenFeature([28, 28], tf.float32)}
        if mode != Mode.PREDICTION:
            description["label"] = tf.io.FixedLenFeature([1], tf.int64)
        r = tf.io.parse_single_example(record, description)
        features = {"image": tf.math.divide(tf.cast(r["image"], tf.float32), 255.0)}
        if mode == Mode.PREDICTION:
            return features
        return features, tf.cast(r["label"], tf.int32)

    return dataset.map(parse)


def eval_metrics_fn():
    return {
        "accuracy": lambda labels, predictions: tf.equal(
            tf.argmax(predictions, 1, output_type=tf.int32), tf.cast(tf.reshape(labels, [-1]), tf.int32)
        )
    }


if __name__ == "__main__":
    model = CustomModel()
    output = model(None)
    print(output)
