"""A factorization machine of embeddings with a mask, as DeepFM's files have it; a name that functions declare global."""
import tensorflow as tf
import tensorflow.keras.backend as K
from tensorflow.keras.layers import Dense, Flatten, Layer, Multiply, Subtract

from elasticdl.python.data.reader.recordio_reader import RecordIODataReader
from elasticdl.python.elasticdl.layers.embedding import Embedding

AUC_metric = None


class ApplyMask(Layer):
    def __init__(self, **kwargs):
        self.supports_masking = True
        super(ApplyMask, self).__init__(**kwargs)

    def compute_mask(self, input, input_mask=None):
        return None

    def call(self, x, mask=None):
        return Multiply()([x, tf.cast(K.expand_dims(mask, -1), tf.float32)])


def custom_model(length=6):
    inputs = tf.keras.Input(shape=(length,))
    embeddings = ApplyMask()(Embedding(output_dim=4, mask_zero=True, input_length=length)(inputs))
    total = K.sum(embeddings, axis=1)
    second_order = K.sum(0.5 * Subtract()([K.square(total), K.sum(K.square(embeddings), axis=1)]), axis=1)
    bias = ApplyMask()(tf.keras.layers.Embedding(input_dim=50, output_dim=1, mask_zero=True)(inputs))
    first_order = K.sum(bias, axis=(1, 2))
    deep = tf.reshape(Dense(1)(Dense(8)(Flatten()(embeddings))), shape=(-1,))
    outputs = tf.keras.layers.Add()([tf.keras.layers.Add()([first_order, second_order]), deep])
    global AUC_metric
    AUC_metric = tf.keras.metrics.AUC()
    return tf.keras.Model(inputs=inputs, outputs=outputs)


def loss(output, labels):
    labels = tf.cast(tf.reshape(labels, [-1]), tf.dtypes.float32)
    return tf.reduce_mean(input_tensor=tf.nn.sigmoid_cross_entropy_with_logits(logits=tf.reshape(output, [-1]), labels=labels))


def optimizer(lr=0.1):
    return tf.optimizers.SGD(lr)


def dataset_fn(dataset, mode):
    def parse(record):
        r = tf.io.parse_single_example(
            record, {"feature": tf.io.FixedLenFeature([6], tf.int64), "label": tf.io.FixedLenFeature([1], tf.int64)}
        )
        return {"feature": tf.cast(r["feature"], tf.float32)}, tf.cast(r["label"], tf.int32)

    return dataset.map(parse)


def eval_metrics_fn(predictions, labels):
    labels = tf.reshape(labels, [-1])
    predictions = tf.reshape(predictions, [-1])
    global AUC_metric
    return {
        "accuracy": tf.reduce_mean(tf.cast(tf.equal(tf.cast(predictions > 0.0, tf.dtypes.int32), labels), tf.float32)),
        "auc": AUC_metric(labels, tf.sigmoid(predictions)),
    }


def custom_data_reader(data_origin, records_per_task=None, **kwargs):
    return RecordIODataReader(data_dir=data_origin)
