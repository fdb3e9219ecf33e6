"""Compute for elastic-trainer in Python, with whatever framework.

elastic-trainer decides which records make which minibatch, who computes it, who joins and who
has gone; a script that uses this package computes. It is started by elastic-trainer, once for
each worker and once for the master, and answers over a Unix socket:

* which tensors make its state, and their values at step 0;
* the gradient of one minibatch at that state;
* the state after the step's summed gradient has been applied;
* the loss and the metrics of validation records.

Every answer must be a function of its question alone (the state, the records, the step and the
seed). Then a worker may be killed at any time: another one computes the same gradient again,
and no record is lost or counted twice.

For PyTorch use :mod:`elastic_training.torch`. For anything else implement :class:`Computation`
and call :func:`serve`. This module needs Python 3.8 and its standard library only.

The protocol, version 2: every message is a frame of 16 bytes, ``"EL"``, the version, the kind,
the length of a JSON header (uint32) and the length of the body (uint64), all little-endian;
then header and body. Gradients in a body are little-endian float32; tensors are the bytes of
their elements, filled up to a multiple of 4. elastic-trainer asks, this side answers each
question with a frame of the same kind, or with an error. The end of the connection is the end of
the work.
"""

import abc
import json
import math
import os
import socket
import struct
import sys
import traceback
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

__all__ = [
    "Computation",
    "Description",
    "Gradient",
    "Job",
    "Measured",
    "Minibatch",
    "NotFinite",
    "PROTOCOL_VERSION",
    "Tensor",
    "index",
    "mix",
    "serve",
]

PROTOCOL_VERSION = 2

# Kinds of frames.
_DESCRIBE, _INITIAL, _LOAD, _GRADIENT, _APPLY, _EVALUATE = range(1, 7)
_ERROR = 255

_FRAME = struct.Struct("<2sBBIQ")
_MAX_HEADER = 16 << 20

Buffer = Union[bytes, bytearray, memoryview]

PARAMETER = "parameter"
"""The role of a tensor that gradients are for."""
STATISTIC = "statistic"
"""The role of a tensor that training measures, as batch normalization's moving averages."""
FROZEN = "frozen"
"""The role of a tensor that belongs to the model and never changes."""
SLOT = "slot"
"""The role of a tensor that the optimizer keeps; the saved model leaves it out."""
REPORT = "report"
"""The role of a tensor that comes with every gradient, behind the statistics, and is not part of the state."""

ELEMENT_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1,
}  # fmt: skip
"""The element types of tensors, as safetensors names them, and the bytes of an element."""


class NotFinite(ArithmeticError):
    """The loss or a gradient is infinite or not a number: training diverged, here as on any worker."""


class Job(NamedTuple):
    """What a script may need to know of its job before it describes itself."""

    seed: int
    minibatch_size: int
    threads: int  # how many this process computes with; results depend on it
    learning_rate: Optional[float]  # that the job asks for, in place of the script's own


class Tensor(NamedTuple):
    """A tensor of the state. A shape of () is one number."""

    name: str
    shape: Tuple[int, ...]
    role: str = PARAMETER
    dtype: str = "F32"  #: a key of ELEMENT_BYTES; elastic-trainer stores the elements and never computes with them
    aliases: Tuple[str, ...] = ()  #: further names in the saved model, as tied weights have

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """What the tensor takes in a state: the bytes of its elements, filled up to a multiple of 4."""
        return -(-self.elements * ELEMENT_BYTES[self.dtype] // 4) * 4


class Description(NamedTuple):
    """What a computation is."""

    #: Parameters first, then statistics, frozen tensors, slots and reports: the order in the state.
    tensors: Sequence[Tensor]
    model: str = "model"
    optimizer: str = "optimizer"
    framework: str = "python"
    #: Metrics that are shares of records, in the order of Measured.counts: ("accuracy",).
    metrics: Sequence[str] = ()


class Minibatch(NamedTuple):
    """What a gradient is asked of."""

    records: List[memoryview]  #: as they are stored; see index() for data sets of numbers
    step: int
    virtual_worker: int
    step_records: int  #: records of all minibatches of this step
    seed: int  #: for dropout and the like: of (job, step, virtual worker)


class Measured(NamedTuple):
    """How well records were answered."""

    loss_sum: float  #: the sum of the records' losses, not their mean
    counts: Sequence[int] = ()  #: for each metric, of how many records it holds


class Gradient(NamedTuple):
    """The answer to a minibatch.

    values holds, for every parameter, the gradient of the sum of the minibatch's losses divided
    by Minibatch.step_records: its part of the mean over the step. The parts are added and never
    divided. values are float32, whatever the parameters are. statistics holds the values that
    the statistics took on this minibatch, and behind them the reports; apply() gets those of all
    minibatches of a step.
    """

    values: Buffer
    measured: Measured
    statistics: Buffer = b""


class Computation(abc.ABC):
    """A model with its optimizer.

    Buffers hold tensors in the order of Description.tensors, each taking Tensor.bytes. Buffers
    that elastic-trainer hands over are memoryviews of float32, which is what a state of F32
    tensors is; cast them to "B" for the bytes of others.
    """

    @abc.abstractmethod
    def describe(self, job: Job) -> Description:
        """Builds the computation and says what its state consists of. Called once, first."""

    @abc.abstractmethod
    def initial(self, seed: int) -> Buffer:
        """Returns the state of step 0, which becomes the current one. Equal seeds give equal states."""

    @abc.abstractmethod
    def load(self, state: memoryview) -> None:
        """Makes a state the current one."""

    @abc.abstractmethod
    def gradient(self, minibatch: Minibatch) -> Gradient:
        """Computes a minibatch at the current state, which stays as it is."""

    @abc.abstractmethod
    def apply(self, gradient: memoryview, statistics: Sequence[memoryview], step: int) -> Buffer:
        """Applies a step's summed gradient and returns the next state, which becomes the current one.

        statistics are those of the step's minibatches, in order.
        """

    def evaluate(self, records: List[memoryview]) -> Measured:
        """Measures records at the current state, in inference mode."""
        raise NotImplementedError("this script does not evaluate validation data")


def index(record: Buffer) -> int:
    """The number that a record of an ``indices://NAME?records=N`` data set is."""
    if len(record) != 8:
        raise ValueError(
            "a record of %d bytes is no number: the job's data set holds records, not indices;"
            " decode them, or name the data indices://NAME?records=N" % len(record)
        )
    return int.from_bytes(record, "little")


def serve(computation: Computation) -> None:
    """Answers elastic-trainer until it has no more questions. Returns when it is done."""
    path = os.environ.get("ELASTIC_SOCKET")
    if not path:
        raise RuntimeError(
            "this script computes for elastic-trainer, which starts it:\n"
            "  elastic-trainer train --worker-command python3 --model-file %s"
            " --train-data-dir DIR --output DIR" % (sys.argv[0] or "FILE")
        )
    if sys.byteorder != "little":
        raise RuntimeError("elastic_training works on little-endian processors only")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        _Server(connection, computation).run()


class _Server:
    """One connection's questions and answers."""

    def __init__(self, connection: socket.socket, computation: Computation) -> None:
        self._connection = connection
        self._computation = computation
        self._job_seed = 0
        self._parameters = 0  # lengths in bytes
        self._statistics = 0
        self._state = 0
        self._metrics = 0

    def run(self) -> None:
        answers = {
            _DESCRIBE: self._describe,
            _INITIAL: self._initial,
            _LOAD: self._load,
            _GRADIENT: self._gradient,
            _APPLY: self._apply,
            _EVALUATE: self._evaluate,
        }
        while True:
            frame = self._receive()
            if frame is None:
                return
            kind, header, body = frame
            try:
                if kind not in answers:
                    raise ValueError("a question of the unknown kind %d" % kind)
                reply, answer = answers[kind](header, body)
            except Exception as error:  # pylint: disable=broad-except
                # The worker ends with this error; the traceback is in its log as well.
                traceback.print_exc()
                reply = {
                    "message": "%s: %s" % (type(error).__name__, error),
                    "not_finite": isinstance(error, NotFinite),
                }
                kind, answer = _ERROR, []
            try:
                self._send(kind, reply, answer)
            except (BrokenPipeError, ConnectionResetError):
                return  # elastic-trainer was killed, and asks nothing more

    def _describe(self, header: Dict[str, Any], _: memoryview) -> Tuple[Dict[str, Any], List[Buffer]]:
        self._job_seed = header["seed"]
        d = self._computation.describe(
            Job(header["seed"], header["minibatch_size"], header["threads"], header.get("learning_rate"))
        )
        sizes = {role: 0 for role in (PARAMETER, STATISTIC, FROZEN, SLOT, REPORT)}
        for t in d.tensors:
            if t.dtype not in ELEMENT_BYTES:
                raise ValueError("tensor %r has the element type %r; there are %s" % (t.name, t.dtype, ", ".join(ELEMENT_BYTES)))
            sizes[t.role] += t.bytes
        self._parameters = 4 * sum(t.elements for t in d.tensors if t.role == PARAMETER)
        self._statistics = sizes[STATISTIC] + sizes[REPORT]
        self._state, self._metrics = sum(sizes.values()) - sizes[REPORT], len(d.metrics)
        reply = {
            "model": d.model,
            "optimizer": d.optimizer,
            "framework": d.framework,
            "metrics": list(d.metrics),
            "tensors": [
                {"name": t.name, "shape": list(t.shape), "role": t.role, "dtype": t.dtype, "aliases": list(t.aliases)}
                for t in d.tensors
            ],
        }
        return reply, []

    def _initial(self, _: Dict[str, Any], __: memoryview) -> Tuple[Dict[str, Any], List[Buffer]]:
        state = self._computation.initial(self._job_seed)
        return {}, [_bytes("the initial state", state, self._state)]

    def _load(self, _: Dict[str, Any], body: memoryview) -> Tuple[Dict[str, Any], List[Buffer]]:
        self._computation.load(_floats("a state", body, self._state))
        return {}, []

    def _gradient(self, header: Dict[str, Any], body: memoryview) -> Tuple[Dict[str, Any], List[Buffer]]:
        step, virtual_worker = header["step"], header["virtual_worker"]
        g = self._computation.gradient(
            Minibatch(
                records=_split(body, header["sizes"]),
                step=step,
                virtual_worker=virtual_worker,
                step_records=header["step_records"],
                seed=mix(self._job_seed, step, virtual_worker),
            )
        )
        answer = [
            _bytes("a gradient", g.values, self._parameters),
            _bytes("a gradient's statistics", g.statistics, self._statistics),
        ]
        return self._measured(g.measured), answer

    def _apply(self, header: Dict[str, Any], body: memoryview) -> Tuple[Dict[str, Any], List[Buffer]]:
        n = header["virtual_workers"]
        body = _floats("an update", body, self._parameters + n * self._statistics)
        gradient, behind = body[: self._parameters // 4], body[self._parameters // 4 :]
        size = self._statistics // 4
        statistics = [behind[i * size : (i + 1) * size] for i in range(n)]
        state = self._computation.apply(gradient, statistics, header["step"])
        return {}, [_bytes("the next state", state, self._state)]

    def _evaluate(self, header: Dict[str, Any], body: memoryview) -> Tuple[Dict[str, Any], List[Buffer]]:
        return self._measured(self._computation.evaluate(_split(body, header["sizes"]))), []

    def _measured(self, m: Measured) -> Dict[str, Any]:
        if not math.isfinite(m.loss_sum):
            raise NotFinite("the loss is %r: training diverged; a lower learning rate may help" % m.loss_sum)
        if len(m.counts) != self._metrics:
            raise ValueError("%d counts for %d metrics" % (len(m.counts), self._metrics))
        return {"loss_sum": float(m.loss_sum), "counts": [int(c) for c in m.counts]}

    def _receive(self) -> Optional[Tuple[int, Dict[str, Any], memoryview]]:
        """The next question, or None at the connection's end."""
        frame = self._read(_FRAME.size)
        if frame is None:
            return None
        magic, version, kind, header_length, body_length = _FRAME.unpack(frame)
        if magic != b"EL" or version != PROTOCOL_VERSION:
            raise RuntimeError(
                "elastic-trainer speaks version %d of the protocol and this package %d;"
                " use the one that `elastic-trainer python-module` writes" % (version, PROTOCOL_VERSION)
            )
        if header_length > _MAX_HEADER:
            raise RuntimeError("a header of %d bytes" % header_length)
        header = self._read(header_length)
        body = self._read(body_length)
        if header is None or body is None:
            return None
        return kind, json.loads(bytes(header)), memoryview(body)

    def _read(self, n: int) -> Optional[bytearray]:
        data = bytearray(n)
        view, got = memoryview(data), 0
        while got < n:
            try:
                read = self._connection.recv_into(view[got:])
            except ConnectionResetError:
                read = 0
            if read == 0:
                return None
            got += read
        return data

    def _send(self, kind: int, header: Dict[str, Any], body: Sequence[Buffer]) -> None:
        text = json.dumps(header, allow_nan=False).encode()
        length = sum(len(b) for b in body)
        self._connection.sendall(_FRAME.pack(b"EL", PROTOCOL_VERSION, kind, len(text), length) + text)
        for b in body:
            self._connection.sendall(b)


def mix(*parts: int) -> int:
    """A seed below 2**63 for each sequence of numbers: splitmix64's finalizer over them."""
    mask, z = (1 << 64) - 1, 0
    for part in parts:
        z = (z + part + 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
    return z >> 1


def _bytes(what: str, buffer: Buffer, want: int) -> memoryview:
    view = memoryview(buffer).cast("B")
    if len(view) != want:
        raise ValueError("%s of %d bytes; the description makes it %d" % (what, len(view), want))
    return view


def _floats(what: str, body: memoryview, want: int) -> memoryview:
    if len(body) != want:
        raise ValueError("%s of %d bytes; the description makes it %d" % (what, len(body), want))
    return body.cast("f")


def _split(body: memoryview, sizes: Sequence[int]) -> List[memoryview]:
    records, at = [], 0
    for size in sizes:
        records.append(body[at : at + size])
        at += size
    if at != len(body):
        raise ValueError("records of %d bytes in a body of %d" % (at, len(body)))
    return records
