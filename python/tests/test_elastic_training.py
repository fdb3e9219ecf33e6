"""The module's side of the protocol, over a real socket."""

import array
import contextlib
import io
import json
import os
import socket
import struct
import tempfile
import threading
import unittest

import elastic_training as elastic

FRAME = struct.Struct("<2sBBIQ")
DESCRIBE, INITIAL, LOAD, GRADIENT, APPLY, EVALUATE, ERROR = 1, 2, 3, 4, 5, 6, 255


class Line(elastic.Computation):
    """y = w, fitted to records of one byte; minibatches and updates are remembered."""

    def __init__(self):
        self.minibatches, self.updates = [], []

    def describe(self, job):
        self.job = job
        return elastic.Description(
            tensors=[elastic.Tensor("w", ()), elastic.Tensor("seen", (1,), elastic.STATISTIC)],
            metrics=("small",),
        )

    def initial(self, seed):
        self.w = array.array("f", [seed, 0])
        return self.w

    def load(self, state):
        self.w = array.array("f", state)

    def gradient(self, minibatch):
        self.minibatches.append(minibatch)
        values = [r[0] for r in minibatch.records]
        gradient = sum(self.w[0] - v for v in values) / minibatch.step_records
        return elastic.Gradient(array.array("f", [gradient]), self.evaluate(minibatch.records), array.array("f", [len(values)]))

    def apply(self, gradient, statistics, step):
        self.updates.append((list(gradient), [list(s) for s in statistics], step))
        self.w[0] -= gradient[0]
        self.w[1] += sum(s[0] for s in statistics)
        return self.w

    def evaluate(self, records):
        values = [r[0] for r in records]
        if 255 in values:
            return elastic.Measured(float("inf"), [0])
        return elastic.Measured(sum((self.w[0] - v) ** 2 / 2 for v in values), [sum(v < 10 for v in values)])


class Protocol(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, "socket")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.listen(1)
        self.line = Line()
        os.environ["ELASTIC_SOCKET"] = path
        self.addCleanup(os.environ.pop, "ELASTIC_SOCKET")
        self.thread = threading.Thread(target=elastic.serve, args=(self.line,), daemon=True)
        self.thread.start()
        self.connection, _ = listener.accept()
        self.addCleanup(self.connection.close)

    def ask(self, kind, header, body=b""):
        text = json.dumps(header).encode()
        self.connection.sendall(FRAME.pack(b"EL", 2, kind, len(text), len(body)) + text + body)
        magic, version, answered, header_length, body_length = FRAME.unpack(self.read(FRAME.size))
        self.assertEqual((magic, version), (b"EL", 2))
        return answered, json.loads(self.read(header_length)), self.read(body_length)

    def read(self, n):
        data = b""
        while len(data) < n:
            part = self.connection.recv(n - len(data))
            self.assertTrue(part, "the connection ended")
            data += part
        return data

    def describe(self):
        return self.ask(DESCRIBE, {"seed": 7, "minibatch_size": 3, "threads": 1, "learning_rate": 0.5})

    def test_a_job_is_described_begun_and_computed(self):
        kind, description, _ = self.describe()
        self.assertEqual(kind, DESCRIBE)
        self.assertEqual(
            description["tensors"][1],
            {"name": "seen", "shape": [1], "role": "statistic", "dtype": "F32", "aliases": []},
        )
        self.assertEqual(self.line.job, elastic.Job(7, 3, 1, 0.5))
        _, _, state = self.ask(INITIAL, {})
        self.assertEqual(struct.unpack("<2f", state), (7, 0))
        kind, header, body = self.ask(
            GRADIENT, {"step": 4, "virtual_worker": 1, "step_records": 2, "sizes": [1, 2]}, b"\x05\x09\x00"
        )
        self.assertEqual((kind, header), (GRADIENT, {"loss_sum": 4.0, "counts": [2]}))
        self.assertEqual(struct.unpack("<2f", body), (0, 2))
        _, _, state = self.ask(APPLY, {"step": 4, "virtual_workers": 2}, struct.pack("<3f", 1, 2, 3))
        self.assertEqual(struct.unpack("<2f", state), (6, 5))
        self.assertEqual(self.line.updates, [([1], [[2], [3]], 4)])
        self.ask(LOAD, {}, struct.pack("<2f", 1, 0))
        _, header, _ = self.ask(EVALUATE, {"sizes": [1]}, b"\x03")
        self.assertEqual(header, {"loss_sum": 2.0, "counts": [1]})
        self.connection.close()
        self.thread.join(10)
        self.assertFalse(self.thread.is_alive(), "the end of the connection is the end of the work")

    def test_seeds_differ_by_step_and_virtual_worker_and_nothing_else(self):
        self.describe()
        self.ask(INITIAL, {})
        for step, worker in ((0, 0), (0, 1), (1, 0), (0, 0)):
            self.ask(GRADIENT, {"step": step, "virtual_worker": worker, "step_records": 1, "sizes": [1]}, b"\x01")
        seeds = [m.seed for m in self.line.minibatches]
        self.assertEqual(len(set(seeds)), 3)
        self.assertEqual(seeds[0], seeds[3])
        self.assertTrue(all(0 <= s < 1 << 63 for s in seeds))

    def test_an_error_is_told_and_the_next_question_answered(self):
        self.describe()
        self.ask(INITIAL, {})
        with contextlib.redirect_stderr(io.StringIO()) as log:
            kind, header, _ = self.ask(GRADIENT, {"step": 0, "virtual_worker": 0, "step_records": 1, "sizes": [2]}, b"\x01")
            self.assertEqual(kind, ERROR)
            self.assertIn("records of 2 bytes in a body of 1", header["message"])
            self.assertFalse(header["not_finite"])
            kind, header, _ = self.ask(EVALUATE, {"sizes": [1]}, b"\xff")
            self.assertEqual((kind, header["not_finite"]), (ERROR, True))
            kind, header, _ = self.ask(APPLY, {"step": 0, "virtual_workers": 1}, b"\x00" * 4)
            self.assertIn("an update of 4 bytes; the description makes it 8", header["message"])
            kind, header, _ = self.ask(99, {})
            self.assertIn("unknown kind 99", header["message"])
        self.assertIn("Traceback", log.getvalue())
        kind, _, _ = self.ask(EVALUATE, {"sizes": [1]}, b"\x01")
        self.assertEqual(kind, EVALUATE)


class Alone(unittest.TestCase):
    def test_a_script_that_is_run_by_hand_says_how_it_is_run(self):
        with self.assertRaisesRegex(RuntimeError, "--worker-command python3"):
            elastic.serve(Line())

    def test_a_record_that_is_no_number_is_refused(self):
        self.assertEqual(elastic.index((513).to_bytes(8, "little")), 513)
        with self.assertRaisesRegex(ValueError, "indices://"):
            elastic.index(b"1234")


if __name__ == "__main__":
    unittest.main()
