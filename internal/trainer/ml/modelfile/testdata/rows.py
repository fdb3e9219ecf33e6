# Several inputs, among them row numbers: the features of a record in a dict without its label, as ElasticDL's census models
# return them, and a factorization machine's pairs in every notation that is implemented.
import tensorflow as tf
import tensorflow.keras.backend as K
from tensorflow.keras.layers import Add, Concatenate, Dense, Embedding, Flatten, Reshape, Subtract

CATEGORIES = {"work": 9, "education": 16}
LABEL = "label"


def custom_model():
    inputs = {"age": tf.keras.Input(shape=(1,), name="age")}
    rows = []
    for name in CATEGORIES:
        inputs[name] = tf.keras.layers.Input(shape=(1,), name=name, dtype="int64")
        rows.append(Embedding(CATEGORIES[name], 4)(inputs[name]))
    inputs["history"] = tf.keras.Input((3,))  # Embedding makes it one of row numbers
    rows.append(Embedding(input_dim=100, output_dim=4, input_length=3, mask_zero=False)(inputs["history"]))
    bias = Embedding(100, 1, embeddings_initializer="uniform", name="bias")(inputs["history"])
    first_order = Reshape((1,))(K.sum(bias, axis=(1, 2), keepdims=True))

    work, education, history = rows
    total = K.sum(history, axis=1)
    squares = tf.reduce_sum(tf.square(history), 1)
    second_order = 0.5 * tf.reduce_sum(Subtract()([K.square(total), squares]), axis=-1, keepdims=True)

    hidden = Concatenate()([Flatten()(work), Flatten()(education), total - squares, total * squares, inputs["age"]])
    deep = Dense(1)(Dense(8, activation="relu")(hidden))
    return tf.keras.Model(inputs=inputs, outputs=Add()([first_order, second_order, deep]), name="rows")


def loss(labels, predictions):
    return tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(
            labels=tf.cast(tf.reshape(labels, [-1]), tf.float32), logits=tf.reshape(predictions, [-1])
        )
    )


def optimizer(lr=0.01):
    return tf.keras.optimizers.Adam(lr)


def feed(dataset, mode, metadata):
    description = {name: tf.io.FixedLenFeature([], tf.int64) for name in CATEGORIES}
    description["age"] = tf.io.FixedLenFeature([], tf.float32)
    description["history"] = tf.io.FixedLenFeature([3], tf.int64)
    description[LABEL] = tf.io.FixedLenFeature([1], tf.int64)

    def parse(record):
        values = tf.io.parse_single_example(record, description)
        label = values.pop(LABEL)
        values["age"] = (values["age"] - 38.0) / 14.0
        values["history"] = tf.cast(values["history"], tf.float32)
        return values, label

    return dataset.map(parse)
