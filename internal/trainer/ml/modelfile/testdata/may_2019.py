import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor
import numpy as np

# The first style: the model is a variable of the module, and training=True is forced.
image = tf.keras.Input(shape=(8, 8, 1), name='img')
h = tf.keras.layers.Conv2D(4, kernel_size=(3, 3), activation='relu')(image)
h = tf.keras.layers.BatchNormalization()(h, training=True)
h = tf.keras.layers.MaxPooling2D(pool_size=(2, 2))(h)
h = tf.keras.layers.Dropout(0.5)(h, training=True)
h = tf.keras.layers.Flatten()(h)
scores = tf.keras.layers.Dense(3)(h)

model = tf.keras.Model(inputs=image, outputs=scores, name='small')

def feature_columns():
    return [tf.feature_column.numeric_column(key="image",
        dtype=tf.dtypes.float32, shape=[1, 8, 8])]

def label_columns():
    return [tf.feature_column.numeric_column(key="label",
        dtype=tf.dtypes.int64, shape=[1])]

def loss(output, labels):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            logits=output, labels=labels))

def optimizer(lr=0.1):
    return tf.train.GradientDescentOptimizer(lr)

def input_fn(records):
    images = []
    labels = []
    for record in records:
        value = (lambda v: v.numpy() if isinstance(v, EagerTensor) else v)
        pixels = np.frombuffer(value(record['image']), dtype="uint8")
        pixels = np.resize(pixels, new_shape=(8, 8))
        pixels = pixels.astype(np.float32)
        pixels /= 255
        images.append(pixels)
        labels.append(value(record['label']).astype(np.int32))

    n = len(images)
    batch = np.concatenate(images, axis=0)
    batch = np.reshape(batch, (n, 8, 8))
    return ({'image': batch}, np.array(labels))
