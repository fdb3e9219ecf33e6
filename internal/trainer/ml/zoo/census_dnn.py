"""A dense network over the categories and numbers of the 1994 census data set.

Every category has a row of eight in a table of its own, beside the four numbers. Records
hold ElasticDL's names: eight int64 (`workclass` … `native-country`, by number), four
float32 (`age`, `capital-gain`, `capital-loss`, `hours-per-week`), and `label`, 1 for those
who earn more than 50,000.
"""

import tensorflow as tf

from elasticdl.python.common.constants import Mode

CATEGORIES = {
    "workclass": 9,
    "education": 16,
    "marital-status": 7,
    "occupation": 15,
    "relationship": 6,
    "race": 5,
    "sex": 2,
    "native-country": 42,
}

# What is subtracted from a number, and by what it is divided then.
NUMBERS = {
    "age": (38.0, 14.0),
    "capital-gain": (1000.0, 7000.0),
    "capital-loss": (90.0, 400.0),
    "hours-per-week": (40.0, 12.0),
}


def custom_model():
    inputs, parts = {}, []
    for name, categories in CATEGORIES.items():
        inputs[name] = tf.keras.Input(shape=(1,), name=name, dtype="int64")
        row = tf.keras.layers.Embedding(categories, 8, name=name + "_embedding")(inputs[name])
        parts.append(tf.keras.layers.Flatten()(row))
    for name in NUMBERS:
        inputs[name] = tf.keras.Input(shape=(1,), name=name)
        parts.append(inputs[name])
    x = tf.keras.layers.Concatenate()(parts)
    x = tf.keras.layers.Dense(16, activation="relu")(x)
    x = tf.keras.layers.Dense(16, activation="relu")(x)
    logits = tf.keras.layers.Dense(1)(x)
    return tf.keras.Model(inputs=inputs, outputs=logits, name="census_dnn")


def loss(labels, predictions):
    return tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(
            labels=tf.cast(tf.reshape(labels, [-1]), tf.float32), logits=tf.reshape(predictions, [-1])
        )
    )


def optimizer(lr=0.01):
    return tf.keras.optimizers.Adam(lr)


def feed(dataset, mode, metadata):
    description = {}
    for name in CATEGORIES:
        description[name] = tf.io.FixedLenFeature([1], tf.int64)
    for name in NUMBERS:
        description[name] = tf.io.FixedLenFeature([1], tf.float32)
    if mode != Mode.PREDICTION:
        description["label"] = tf.io.FixedLenFeature([1], tf.int64)

    def parse(record):
        values = tf.io.parse_single_example(record, description)
        features = {name: values[name] for name in CATEGORIES}
        for name, (middle, spread) in NUMBERS.items():
            features[name] = (values[name] - middle) / spread
        if mode == Mode.PREDICTION:
            return features
        return features, tf.cast(values["label"], tf.int32)

    return dataset.map(parse)


def eval_metrics_fn():
    return {"accuracy": tf.keras.metrics.BinaryAccuracy(threshold=0.0), "auc": tf.keras.metrics.AUC(from_logits=True)}
