"""Preprocessing layers, ElasticDL's and the file's own; two outputs; a schedule of the learning rate; no feed."""
import itertools
from collections import namedtuple
from enum import Enum

import tensorflow as tf
from tensorflow.python.ops import lookup_ops, math_ops

from elasticdl.python.common.log_utils import default_logger as logger
from elasticdl.python.elasticdl.callbacks import LearningRateScheduler
from elasticdl_preprocessing.layers import ConcatenateWithOffset, Discretization, Hashing, LogRound, Normalizer, RoundIdentity, ToNumber
from elasticdl_preprocessing.layers.index_lookup import IndexLookup
from elasticdl_preprocessing.layers.sparse_embedding import SparseEmbedding
from elasticdl_preprocessing.layers.to_sparse import ToSparse

Info = namedtuple("Info", ["name", "kind", "dtype", "param"])


class Kind(Enum):
    HASH = (1,)
    BUCKETS = (2,)


class Hashed(tf.keras.layers.Layer):
    def __init__(self, buckets):
        super(Hashed, self).__init__()
        self.buckets = buckets

    def call(self, inputs):
        if inputs.dtype is not tf.string:
            inputs = tf.strings.as_string(inputs)
        return tf.cast(tf.strings.to_hash_bucket_fast(inputs, self.buckets), tf.int64)


class Bucketed(tf.keras.layers.Layer):
    def __init__(self, boundaries):
        super(Bucketed, self).__init__()
        self.boundaries = boundaries

    def call(self, inputs):
        return tf.cast(math_ops._bucketize(tf.cast(inputs, tf.float32), boundaries=self.boundaries), tf.int64)


class Known(tf.keras.layers.Layer):
    def call(self, inputs):
        table = lookup_ops.index_table_from_tensor(vocabulary_list=["a", "b"], num_oov_buckets=1, default_value=-1)
        return tf.cast(table.lookup(inputs), tf.int64)


INFOS = [Info("place", Kind.HASH, tf.string, 30), Info("code", Kind.HASH, tf.int64, 10), Info("age", Kind.BUCKETS, tf.float32, [20, 40, 60])]


def custom_model():
    inputs = {i.name: tf.keras.layers.Input(name=i.name, shape=(1,), dtype=i.dtype) for i in INFOS}
    inputs["word"] = tf.keras.layers.Input(name="word", shape=(1,), dtype=tf.string)
    inputs["amount"] = tf.keras.layers.Input(name="amount", shape=(1,), dtype=tf.string)
    made = inputs.copy()
    sizes = []
    for i in INFOS:
        if i.kind == Kind.HASH:
            made[i.name] = Hashed(i.param)(inputs[i.name])
            sizes.append(i.param)
        else:
            made[i.name] = Bucketed(i.param)(inputs[i.name])
            sizes.append(len(i.param) + 1)
    offsets = list(itertools.accumulate([0] + sizes[:-1]))
    logger.info("offsets: {}".format(offsets))
    rows = ConcatenateWithOffset(offsets)([made[i.name] for i in INFOS])
    wide = tf.keras.backend.sum(tf.keras.layers.Embedding(sum(sizes), 1)(rows), axis=1)
    deep = tf.keras.backend.sum(tf.keras.layers.Embedding(sum(sizes), 4)(rows), axis=1)

    sparse = ConcatenateWithOffset([0, 4])([IndexLookup(["x", "y", "z"])(ToSparse()(inputs["word"])), Hashing(6)(ToSparse()(inputs["place"]))])
    looked = SparseEmbedding(input_dim=10, output_dim=4)(sparse)
    summed = SparseEmbedding(10, 4, combiner="sqrtn")(sparse)

    amount = ToNumber(tf.float32, default_value=0)(inputs["amount"])
    numbers = tf.concat([Normalizer(5.0, 2.0)(amount), Normalizer(40, 10)(inputs["age"])], -1)
    ids = tf.keras.layers.concatenate([Known()(inputs["word"]), RoundIdentity(9)(inputs["age"]), LogRound(16, base=2)(inputs["age"]), Discretization([0.5])(amount)])
    more = tf.keras.layers.Flatten()(tf.keras.layers.Embedding(16, 2)(ids))

    x = tf.reshape([deep, looked, summed], shape=(-1, 12))
    x = tf.keras.layers.Dense(4)(tf.concat([x, numbers, more], 1))
    logits = tf.reduce_sum(tf.concat([wide, x], 1), 1, keepdims=True)
    probs = tf.reshape(tf.sigmoid(logits), shape=(-1,))
    return tf.keras.Model(inputs=inputs, outputs={"logits": logits, "probs": probs}, name="preprocessing")


def loss(labels, predictions):
    return tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(tf.reshape(labels, (-1, 1)), tf.float32), logits=predictions["logits"])
    )


def optimizer(lr=0.001):
    return tf.keras.optimizers.Adam(learning_rate=lr)


def callbacks():
    def _schedule(version):
        if version < 10:
            return 0.01
        return 0.001

    return [LearningRateScheduler(_schedule)]


def eval_metrics_fn():
    return {
        "logits": {
            "accuracy": lambda labels, predictions: tf.equal(
                tf.cast(tf.reshape(predictions, [-1]) > 0.5, tf.int32), tf.cast(tf.reshape(labels, [-1]), tf.int32)
            )
        },
        "probs": {"auc": tf.keras.metrics.AUC()},
    }
