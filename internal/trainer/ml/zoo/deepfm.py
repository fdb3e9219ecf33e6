"""DeepFM for records of ten categories, like ElasticDL's for the Frappe data set.

A factorization machine (a weight of each category, and of each pair the product of their
rows) beside a dense network over the same rows: two embedding tables of 5,383 rows.
Records hold `feature`, ten int64 from 0 to 5382, and `label`, 0 or 1. AdaGrad touches only
the rows that a step looked up.
"""

import tensorflow as tf
import tensorflow.keras.backend as K

from elasticdl.python.common.constants import Mode


def custom_model(input_dim=5383, embedding_dim=16, input_length=10, fc_unit=64):
    feature = tf.keras.Input(shape=(input_length,), name="feature", dtype="int64")
    rows = tf.keras.layers.Embedding(input_dim, embedding_dim, input_length=input_length)(feature)

    square_of_sum = K.square(K.sum(rows, axis=1))
    sum_of_squares = K.sum(K.square(rows), axis=1)
    pairs = 0.5 * tf.keras.layers.Subtract()([square_of_sum, sum_of_squares])
    second_order = K.sum(pairs, axis=1, keepdims=True)

    weights = tf.keras.layers.Embedding(input_dim, 1, input_length=input_length)(feature)
    first_order = K.sum(tf.keras.layers.Flatten()(weights), axis=1, keepdims=True)

    x = tf.keras.layers.Flatten()(rows)
    x = tf.keras.layers.Dense(fc_unit, activation="relu")(x)
    deep = tf.keras.layers.Dense(1)(x)

    logits = tf.keras.layers.Add()([first_order, second_order, deep])
    return tf.keras.Model(inputs=feature, outputs=logits, name="deepfm")


def loss(labels, predictions):
    return tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(
            labels=tf.cast(tf.reshape(labels, [-1]), tf.float32), logits=tf.reshape(predictions, [-1])
        )
    )


def optimizer(lr=0.1):
    return tf.keras.optimizers.Adagrad(lr)


def feed(dataset, mode, metadata):
    description = {"feature": tf.io.FixedLenFeature([10], tf.int64)}
    if mode != Mode.PREDICTION:
        description["label"] = tf.io.FixedLenFeature([1], tf.int64)

    def parse(record):
        values = tf.io.parse_single_example(record, description)
        features = {"feature": values["feature"]}
        if mode == Mode.PREDICTION:
            return features
        return features, tf.cast(values["label"], tf.int32)

    return dataset.map(parse)


def eval_metrics_fn():
    return {"accuracy": tf.keras.metrics.BinaryAccuracy(threshold=0.0), "auc": tf.keras.metrics.AUC(from_logits=True)}
