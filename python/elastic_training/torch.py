"""PyTorch for elastic-trainer: an existing model, optimizer and loss, made elastic.

    import elastic_training.torch as elastic

    elastic.run(
        model=Net,                                            # builds an nn.Module
        optimizer=lambda params: torch.optim.SGD(params, lr=0.1),
        loss=torch.nn.functional.cross_entropy,               # loss(outputs, targets), a mean
        decode=decode,                                        # record bytes -> (input, target)
        metrics={"accuracy": elastic.accuracy},
    )

There is no loop, no DataLoader, no DistributedDataParallel and no checkpoint in such a script:
elastic-trainer assigns the minibatches, adds the gradients, keeps and restores the state.

Before a minibatch is read, the generators of torch, numpy and random are seeded for it, so that
augmentation, dropout and the like do not depend on who computes what. Every tensor of the state
is kept in its own element type.

For a script that keeps its loop and exchanges gradients with its own collectives, see
:mod:`elastic_training.collectives`, whose :func:`init` is here, too.

It needs torch 1.10 or later; :func:`init` needs torch 1.13.
"""

import copy
import random
import zlib
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor, nn

try:
    import numpy
except ImportError:  # torch works without
    numpy = None

from . import (
    ELEMENT_BYTES,
    FROZEN,
    PARAMETER,
    REPORT,
    SLOT,
    STATISTIC,
    Computation,
    Description,
    Gradient,
    Job,
    Measured,
    Minibatch,
    NotFinite,
    index,
    mix,
    serve,
)
from . import Tensor as Entry
from .collectives import Ranges, init

__all__ = ["Ranges", "accuracy", "binary_accuracy", "init", "run"]

Metric = Callable[[Any, Any], int]

_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def accuracy(outputs: Tensor, targets: Tensor) -> int:
    """How many records' largest output is their target's class."""
    return int((outputs.argmax(dim=-1) == targets).sum())


def binary_accuracy(outputs: Tensor, targets: Tensor) -> int:
    """How many records' logit is above 0 where the target is 1, and not above where it is 0."""
    return int(((outputs.reshape(-1) > 0) == (targets.reshape(-1) > 0.5)).sum())


def run(
    *,
    model: Callable[[], nn.Module],
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer],
    loss: Callable[[Any, Any], Tensor],
    decode: Optional[Callable[[memoryview], Tuple[Any, Any]]] = None,
    dataset: Union[None, Sequence, Mapping[str, Sequence]] = None,
    validation: Optional[Sequence] = None,
    collate: Optional[Callable[[List[Tuple[Any, Any]]], Tuple[Any, Any]]] = None,
    metrics: Optional[Mapping[str, Metric]] = None,
    schedule: Optional[Callable[[int], float]] = None,
    device: Union[None, str, torch.device] = None,
) -> None:
    """Computes for elastic-trainer until the job is done, or this worker is no longer needed.

    Args:
        model: builds the module. It is called with the generator seeded by the job, so that
            every process has the same weights; hence a function or a class, not a module.
        optimizer: makes the optimizer of the parameters it is given: those of the module that
            require a gradient, in order. What it keeps of each parameter (momentum, moments,
            counts) is part of the state. One whose step() needs a closure cannot be used, nor
            one that keeps numbers in its parameter groups. A parameter that had no part in any
            loss of a step has no gradient, as in a loop of torch: it is not decayed either.
        loss: loss(outputs, targets), the mean over the minibatch.
        decode: makes (input, target) of a record's bytes. The bytes are the job's data: copy
            what you keep. Give it, or dataset.
        dataset: a map-style dataset, whose item i is (input, target). The job's data is then
            indices://NAME?records=N with N = len(dataset).
        validation: likewise, for the job's validation data; needed when the job has any.
        collate: makes (inputs, targets) of a list of (input, target);
            torch.utils.data.default_collate if not given.
        metrics: by name, functions of (outputs, targets) that count the records they hold for.
        schedule: the factor of the learning rate at a step, counted from 0. Schedulers of
            torch.optim.lr_scheduler keep a count of their own, which a preempted worker loses.
        device: where to compute; a CUDA device if there is one, else the CPU.
    """
    if isinstance(model, nn.Module):
        raise TypeError("model is a module; give the function or class that builds it, so that every worker can")
    if (decode is None) == (dataset is None):
        raise TypeError("give either decode, which reads the job's records, or dataset, of which they are indices")
    serve(
        _Torch(
            model=model,
            optimizer=optimizer,
            loss=loss,
            read=_reader("dataset", decode, dataset),
            read_validation=_reader("validation", decode, validation),
            collate=collate or torch.utils.data.default_collate,
            metrics=dict(metrics or {}),
            schedule=schedule,
            device=torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu")),
        )
    )


def _reader(
    name: str, decode: Optional[Callable], dataset: Union[None, Sequence, Mapping[str, Sequence]]
) -> Callable[[memoryview], Tuple[Any, Any]]:
    if decode is not None:
        return decode

    def read(record: memoryview) -> Tuple[Any, Any]:
        i = index(record)
        if dataset is None:
            raise TypeError("the job has validation data, whose records are indices; give run(%s=...)" % name)
        try:
            return dataset[i]
        except IndexError as error:
            if hasattr(dataset, "__len__") and i >= len(dataset):
                raise IndexError(
                    "record %d of a %s of %d items; records=N of the job's indices://NAME?records=N is len(%s)"
                    % (i, name, len(dataset), name)
                ) from error
            raise

    return read


def _seed(seed: int) -> None:
    """Seeds every generator that a dataset, a module or an optimizer may draw from."""
    random.seed(seed)
    torch.manual_seed(seed)  # CUDA's too
    if numpy is not None:
        numpy.random.seed(seed % (1 << 32))


class _Slot(NamedTuple):
    """One thing that the optimizer keeps of a parameter."""

    parameter: int
    key: str
    shape: Tuple[int, ...]
    number: Optional[type]  # int or float; None for a tensor
    dtype: torch.dtype  # of the tensor, or of one that holds the number
    device: Optional[torch.device]


class _Torch(Computation):
    """The state is the module's parameters, buffers and frozen parameters, then the optimizer's slots."""

    def __init__(
        self,
        model: Callable[[], nn.Module],
        optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer],
        loss: Callable[[Any, Any], Tensor],
        read: Callable[[memoryview], Tuple[Any, Any]],
        read_validation: Callable[[memoryview], Tuple[Any, Any]],
        collate: Callable,
        metrics: Dict[str, Metric],
        schedule: Optional[Callable[[int], float]],
        device: torch.device,
    ) -> None:
        self._make_model, self._make_optimizer, self._loss = model, optimizer, loss
        self._read, self._read_validation, self._collate = read, read_validation, collate
        self._metrics, self._schedule, self._device = metrics, schedule, device

    # What it is.

    def describe(self, job: Job) -> Description:
        if job.threads:
            torch.set_num_threads(job.threads)
        self._job_seed = job.seed
        _seed(job.seed)
        self._model = self._make_model().to(self._device)
        named = list(self._model.named_parameters())
        trained = [(n, p) for n, p in named if p.requires_grad]
        frozen = [(n, p) for n, p in named if not p.requires_grad]
        names = self._names()
        buffers = [(n, b) for n, b in self._model.named_buffers() if id(b) in names]
        self._parameters, self._buffers, self._frozen = ([t for _, t in ts] for ts in (trained, buffers, frozen))
        if not self._parameters:
            raise ValueError("the model has no parameter that requires a gradient")
        for name, p in trained:
            if p.dtype == torch.float64:
                raise TypeError("%s is torch.float64, and gradients are added as float32; use model.float()" % name)

        self._optimizer = self._make_optimizer(self._parameters)
        if job.learning_rate is not None:
            for group in self._optimizer.param_groups:
                group["lr"] = job.learning_rate
        self._rates = [group["lr"] for group in self._optimizer.param_groups]
        self._fresh = copy.deepcopy(self._optimizer.state_dict())
        self._slots = self._find_slots()
        self._begun = [False] * len(self._parameters)

        def entries(tensors: List[Tuple[str, Tensor]], role: str) -> List[Entry]:
            return [
                Entry(n, tuple(t.shape), role, _dtype(n, t.dtype), tuple(other for other in names.get(id(t), ()) if other != n))
                for n, t in tensors
            ]

        tensors = entries(trained, PARAMETER) + entries(buffers, STATISTIC) + entries(frozen, FROZEN)
        for s in self._slots:
            name = "optimizer/%s/%s" % (s.key, trained[s.parameter][0])
            tensors.append(Entry(name, s.shape, SLOT, _dtype(name, s.dtype)))
        if self._slots:
            tensors.append(Entry("optimizer/begun", (len(trained),), SLOT, "BOOL"))
        tensors.append(Entry("has_gradient", (len(trained),), REPORT, "BOOL"))

        def size(*roles: str) -> int:
            return sum(t.bytes for t in tensors if t.role in roles)

        self._state = bytearray(size(PARAMETER, STATISTIC, FROZEN, SLOT))
        self._values = bytearray(4 * sum(p.numel() for p in self._parameters))
        self._statistics = bytearray(size(STATISTIC, REPORT))
        return Description(
            tensors=tensors,
            model=type(self._model).__name__,
            optimizer=type(self._optimizer).__name__,
            framework="torch " + torch.__version__,
            metrics=list(self._metrics),
        )

    def _names(self) -> Dict[int, List[str]]:
        """By a tensor's id, its names in the module's state_dict: several for tied weights, none for what is not saved."""
        names: Dict[int, List[str]] = {}
        for name, value in self._model.state_dict(keep_vars=True).items():
            names.setdefault(id(value), []).append(name)
        return names

    def _find_slots(self) -> List[_Slot]:
        """What the optimizer keeps, found by a step with gradients of 0 that is undone afterwards."""
        before = [p.detach().clone() for p in self._parameters]
        for p in self._parameters:
            p.grad = torch.zeros_like(p)
        self._optimizer.step()
        slots = []
        for i, p in enumerate(self._parameters):
            for key, value in sorted(self._optimizer.state[p].items()):
                where = "what the optimizer keeps of a parameter as %r" % key
                if value is None:
                    continue
                if isinstance(value, bool) or not isinstance(value, (int, float, Tensor)):
                    raise TypeError("%s is a %s, neither number nor tensor" % (where, type(value).__name__))
                if isinstance(value, Tensor):
                    slots.append(_Slot(i, key, tuple(value.shape), None, value.dtype, value.device))
                else:
                    dtype = torch.int64 if isinstance(value, int) else torch.float64
                    slots.append(_Slot(i, key, (), type(value), dtype, None))
        for group, fresh in zip(self._optimizer.state_dict()["param_groups"], self._fresh["param_groups"]):
            changed = [key for key, value in group.items() if not _equal(value, fresh.get(key))]
            if changed:
                raise TypeError(
                    "%s changes %r of its parameter groups at every step; only what an optimizer keeps of each"
                    " parameter outlives a worker" % (type(self._optimizer).__name__, changed[0])
                )
        self._optimizer.load_state_dict(copy.deepcopy(self._fresh))
        with torch.no_grad():
            for p, value in zip(self._parameters, before):
                p.copy_(value)
                p.grad = None
        return slots

    # Its state.

    def initial(self, seed: int) -> bytearray:
        self._begun = [False] * len(self._parameters)  # describe() has left the rest as the seed makes it
        return self._flat()

    def load(self, state: memoryview) -> None:
        state, at = state.cast("B"), 0
        with torch.no_grad():
            for t in self._parameters + self._buffers + self._frozen:
                value, at = _read(state, at, t.dtype, tuple(t.shape))
                t.copy_(value)
        if not self._slots:
            return
        kept = []
        for s in self._slots:
            value, at = _read(state, at, s.dtype, s.shape)
            kept.append(s.number(value.item()) if s.number else value.to(device=s.device, copy=True))
        begun, _ = _read(state, at, torch.bool, (len(self._parameters),))
        self._begun = begun.tolist()
        self._optimizer.load_state_dict(copy.deepcopy(self._fresh))
        for s, value in zip(self._slots, kept):
            if self._begun[s.parameter]:
                self._optimizer.state[self._parameters[s.parameter]][s.key] = value

    def _flat(self) -> bytearray:
        at = 0
        for t in self._parameters + self._buffers + self._frozen:
            at = _write(self._state, at, t)
        if not self._slots:
            return self._state
        for s in self._slots:
            value = None
            if self._begun[s.parameter]:
                value = self._optimizer.state[self._parameters[s.parameter]].get(s.key)
            if value is None:
                value = torch.zeros(s.shape, dtype=s.dtype)
            elif not isinstance(value, Tensor):
                value = torch.tensor(value, dtype=s.dtype)
            at = _write(self._state, at, value)
        _write(self._state, at, torch.tensor(self._begun))
        return self._state

    # What it computes.

    def gradient(self, minibatch: Minibatch) -> Gradient:
        before = [b.clone() for b in self._buffers]
        _seed(minibatch.seed)
        inputs, targets = self._batch(minibatch.records, self._read)
        self._model.train()
        for p in self._parameters:
            p.grad = None
        outputs = self._model(inputs)
        mean = self._loss(outputs, targets)
        if mean.dim() != 0:
            raise ValueError("the loss has the shape %s; it should be one number, the mean" % (tuple(mean.shape),))
        n = len(minibatch.records)
        (mean * (n / minibatch.step_records)).backward()
        values, at = _floats(self._values), 0
        for p in self._parameters:
            values[at : at + p.numel()] = 0 if p.grad is None else p.grad.reshape(-1)
            at += p.numel()
        if not bool(torch.isfinite(values).all()):
            raise NotFinite("a gradient is not finite: training diverged; a lower learning rate may help")
        at = 0
        for b in self._buffers:
            at = _write(self._statistics, at, b)
        _write(self._statistics, at, torch.tensor([p.grad is not None for p in self._parameters]))
        with torch.no_grad():
            for b, value in zip(self._buffers, before):
                b.copy_(value)
        return Gradient(self._values, self._measure(mean, outputs, targets, n), self._statistics)

    def apply(self, gradient: memoryview, statistics: Sequence[memoryview], step: int) -> bytearray:
        measured = [self._read_statistics(s.cast("B")) for s in statistics]
        has_gradient = torch.stack([has for _, has in measured]).any(0).tolist()
        flat, at = _floats(gradient), 0
        for p, has in zip(self._parameters, has_gradient):
            part = flat[at : at + p.numel()].reshape(p.shape)
            p.grad = part.to(device=p.device, dtype=p.dtype, copy=True) if has else None
            at += p.numel()
        if self._schedule is not None:
            factor = self._schedule(step)
            for group, rate in zip(self._optimizer.param_groups, self._rates):
                group["lr"] = rate * factor
        _seed(mix(self._job_seed, step))
        self._optimizer.step()
        self._begun = [begun or has for begun, has in zip(self._begun, has_gradient)]
        with torch.no_grad():
            for b, values in zip(self._buffers, zip(*(buffers for buffers, _ in measured))):
                b.copy_(_combined(values))
        return self._flat()

    def _read_statistics(self, statistics: memoryview) -> Tuple[List[Tensor], Tensor]:
        """The buffers after one minibatch, and which parameters it had a gradient for."""
        buffers, at = [], 0
        for b in self._buffers:
            value, at = _read(statistics, at, b.dtype, tuple(b.shape))
            buffers.append(value)
        has_gradient, _ = _read(statistics, at, torch.bool, (len(self._parameters),))
        return buffers, has_gradient

    def evaluate(self, records: List[memoryview]) -> Measured:
        seed = 0
        for r in records:
            seed = zlib.crc32(r, seed)
        _seed(mix(self._job_seed, seed))
        inputs, targets = self._batch(records, self._read_validation)
        self._model.eval()
        with torch.no_grad():
            outputs = self._model(inputs)
            return self._measure(self._loss(outputs, targets), outputs, targets, len(records))

    def _batch(self, records: List[memoryview], read: Callable[[memoryview], Tuple[Any, Any]]) -> Tuple[Any, Any]:
        inputs, targets = self._collate([read(r) for r in records])
        return _to(inputs, self._device), _to(targets, self._device)

    def _measure(self, mean: Tensor, outputs: Any, targets: Any, n: int) -> Measured:
        with torch.no_grad():
            return Measured(float(mean) * n, [int(m(outputs, targets)) for m in self._metrics.values()])


def _dtype(name: str, dtype: torch.dtype) -> str:
    if dtype not in _DTYPES:
        raise TypeError("%s is %s; the state can hold %s" % (name, dtype, ", ".join(str(d) for d in _DTYPES)))
    return _DTYPES[dtype]


def _combined(values: Sequence[Tensor]) -> Tensor:
    """What a buffer becomes of what each minibatch of a step made of it.

    Floating-point numbers become their mean, taken in float64, and stay as they are where all are equal (infinite ones,
    too). Integers and booleans have no mean: the first minibatch's count, as DistributedDataParallel takes those of rank 0.
    """
    first = values[0]
    if not first.is_floating_point() or all(torch.equal(first, v) for v in values[1:]):
        return first
    same = torch.stack([v == first for v in values]).all(0)
    mean = sum(v.double() for v in values) / len(values)
    return torch.where(same, first, mean.to(first.dtype))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return isinstance(one, Tensor) and isinstance(other, Tensor) and torch.equal(one, other)
    return one == other


def _floats(buffer: Union[bytearray, memoryview]) -> Tensor:
    """The memory of a buffer of float32."""
    return torch.frombuffer(buffer, dtype=torch.float32)


def _read(buffer: memoryview, at: int, dtype: torch.dtype, shape: Tuple[int, ...]) -> Tuple[Tensor, int]:
    """A tensor whose bytes begin at an offset, as a view of them where it can be, and the offset of the next one."""
    entry = Entry("", shape, dtype=_DTYPES[dtype])
    if entry.elements == 0:
        return torch.empty(shape, dtype=dtype), at
    part = buffer[at : at + entry.elements * ELEMENT_BYTES[entry.dtype]]
    if ELEMENT_BYTES[entry.dtype] > 4:
        part = bytearray(part)  # whose address suits its elements
    return torch.frombuffer(part, dtype=dtype).reshape(shape), at + entry.bytes


def _write(buffer: bytearray, at: int, value: Tensor) -> int:
    """Writes a tensor's bytes at an offset, and returns the next one's."""
    entry = Entry("", tuple(value.shape), dtype=_DTYPES[value.dtype])
    if entry.elements == 0:
        return at
    size = entry.elements * ELEMENT_BYTES[entry.dtype]
    if ELEMENT_BYTES[entry.dtype] > 4:
        aligned = bytearray(size)
        torch.frombuffer(aligned, dtype=value.dtype)[:] = value.detach().reshape(-1)
        buffer[at : at + size] = aligned
    else:
        part = memoryview(buffer)[at : at + size]
        torch.frombuffer(part, dtype=value.dtype)[:] = value.detach().reshape(-1)
    return at + entry.bytes


def _to(value: Any, device: torch.device) -> Any:
    """Moves tensors, and those in lists, tuples and dictionaries."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {k: _to(v, device) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_to(v, device) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_to(v, device) for v in value)
    return value
