import numpy as np
import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor

inputs = tf.keras.Input(shape=(8, 8, 1), name="img")
x = tf.keras.layers.Flatten()(inputs)
model = tf.keras.Model(inputs, tf.keras.layers.Dense(3)(x))


def feature_columns():
    return [
        tf.feature_column.numeric_column(
            key="image", dtype=tf.dtypes.float32, shape=[1, 8, 8]
        )
    ]


def label_columns():
    return [
        tf.feature_column.numeric_column(
            key="label", dtype=tf.dtypes.int64, shape=[1]
        )
    ]


def loss(output, labels):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            logits=output, labels=labels.flatten()
        )
    )


def optimizer(lr=0.1):
    return tf.keras.optimizers.SGD(learning_rate=lr)


SCALE = np.array([255], dtype="float32")


def numpy_value(data):
    if isinstance(data, EagerTensor):
        return data.numpy()
    return data


def input_fn(records):
    image_list = []
    label_list = []
    for r in records:
        image = numpy_value(r["image"]).astype(np.float32)
        image /= SCALE
        image_list.append(image)
        label_list += [numpy_value(r["label"]).astype(np.int32)]
    images = np.reshape(np.concatenate(image_list, axis=0), (len(records), 8, 8))
    return {"image": images}, np.array(label_list)


def eval_metrics_fn(predictions, labels):
    return {
        "accuracy": tf.reduce_mean(
            tf.cast(
                tf.equal(tf.argmax(input=predictions, axis=1), labels.flatten()),
                tf.float32,
            )
        )
    }
