import numpy as np
import PIL.Image
import tensorflow as tf


def custom_model():
    pixels = tf.keras.Input(shape=(8, 8), name="image")
    x = tf.keras.layers.Reshape((8, 8, 1))(pixels)
    for filters in [4, 8]:
        x = tf.keras.layers.Conv2D(filters, 3, activation="relu")(x)
    x = tf.keras.layers.Flatten()(x)
    return tf.keras.Model(inputs=pixels, outputs=tf.keras.layers.Dense(3)(x), name="august")


# Nothing in training comes here, so it does not matter that there is no PIL.
def prepare_data_for_a_single_file(file_object, filename):
    image = PIL.Image.open(file_object)
    feature = tf.train.Feature(float_list=tf.train.FloatList(value=np.array(image).flatten()))
    return tf.train.Example(features=tf.train.Features(feature={"image": feature})).SerializeToString()


def loss(output, labels):
    return tf.reduce_mean(
        input_tensor=tf.nn.sparse_softmax_cross_entropy_with_logits(
            logits=output, labels=labels.flatten()
        )
    )


def optimizer(lr=0.1):
    return tf.optimizers.SGD(lr)


def input_fn(records):
    description = {
        "image": tf.io.FixedLenFeature([8, 8], tf.float32),
        "label": tf.io.FixedLenFeature([1], tf.int64),
    }
    image_list = []
    label_list = []
    for r in records:
        r = tf.io.parse_single_example(r, description)
        image = r["image"].numpy().astype(np.float32)
        image /= 255
        image_list.append(image)
        label_list.append(r["label"].numpy().astype(np.int32))
    images = np.reshape(np.concatenate(image_list, axis=0), (len(image_list), 8, 8))
    return ({"image": tf.convert_to_tensor(value=images)}, np.array(label_list))


def eval_metrics_fn(predictions, labels):
    return {
        "accuracy": tf.reduce_mean(
            input_tensor=tf.cast(
                tf.equal(tf.argmax(input=predictions, axis=1), labels.flatten()),
                tf.float32,
            )
        )
    }
