"""Feature columns of text and numbers, in a tf.keras.Sequential that ends in a probability."""
import tensorflow as tf
from tensorflow import feature_column as fc
from tensorflow.python.keras.metrics import accuracy

from elasticdl.python.elasticdl.feature_column import feature_column
from elasticdl_preprocessing.feature_column import feature_column as edl_fc

WORDS = ["red", "green", "blue"]


def columns():
    size = fc.numeric_column("size")
    colour = fc.categorical_column_with_vocabulary_list("colour", WORDS)
    town = fc.categorical_column_with_hash_bucket("town", hash_bucket_size=20)
    rank = fc.categorical_column_with_identity("rank", num_buckets=5, default_value=0)
    buckets = fc.bucketized_column(size, boundaries=[10, 20.5, 30])
    together = edl_fc.concatenated_categorical_column([colour, buckets, town])
    return [
        size,
        buckets,
        fc.indicator_column(colour),
        feature_column.embedding_column(town, dimension=4),
        fc.embedding_column(rank, dimension=3, combiner="sum"),
        fc.embedding_column(together, dimension=2),
    ]


def custom_model():
    return tf.keras.Sequential(
        [
            tf.keras.layers.DenseFeatures(feature_columns=columns()),
            tf.keras.layers.Dense(8, activation="relu"),
            tf.keras.layers.Dense(1, activation="sigmoid"),
        ]
    )


def loss(labels, predictions):
    labels = tf.expand_dims(labels, axis=1)
    return tf.keras.losses.binary_crossentropy(labels, predictions)


def optimizer():
    return tf.keras.optimizers.Adam()


def feed(dataset, mode, _):
    def parse(record):
        features = tf.io.parse_single_example(
            record,
            {
                "size": tf.io.FixedLenFeature([], tf.int64),
                "colour": tf.io.FixedLenFeature([], tf.string),
                "town": tf.io.FixedLenFeature([], tf.string),
                "rank": tf.io.FixedLenFeature([], tf.int64),
                "label": tf.io.FixedLenFeature([], tf.int64),
            },
        )
        label = features.pop("label")
        return features, label

    return dataset.map(parse)


def eval_metrics_fn():
    return {
        "accuracy": lambda labels, predictions: accuracy(
            tf.cast(tf.squeeze(tf.round(predictions)), tf.int32), tf.cast(labels, tf.int32)
        ),
        "auc": tf.keras.metrics.AUC(),
    }
