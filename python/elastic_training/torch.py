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
elastic-trainer deals the minibatches, adds the gradients, keeps and restores the state.

It needs torch 1.10 or later.
"""

import copy
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor, nn

from . import (
    FROZEN,
    PARAMETER,
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
    serve,
)
from . import Tensor as Entry

__all__ = ["accuracy", "binary_accuracy", "run"]

Metric = Callable[[Any, Any], int]


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
            counts) is part of the state. One whose step() needs a closure cannot be used.
        loss: loss(outputs, targets), the mean over the minibatch.
        decode: makes (input, target) of a record's bytes. The bytes are the job's data: copy
            what you keep. Give it, or dataset.
        dataset: a map-style dataset, whose item i is (input, target). The job's data is then
            indices://NAME?records=N with N = len(dataset).
        validation: likewise, for the job's validation data.
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
            read=_reader(decode, dataset),
            read_validation=_reader(decode, validation if validation is not None else dataset),
            collate=collate or torch.utils.data.default_collate,
            metrics=dict(metrics or {}),
            schedule=schedule,
            device=torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu")),
        )
    )


def _reader(decode: Optional[Callable], dataset: Optional[Sequence]) -> Callable[[memoryview], Tuple[Any, Any]]:
    if decode is not None:
        return decode
    assert dataset is not None
    return lambda record: dataset[index(record)]


class _Slot(NamedTuple):
    """One thing that the optimizer keeps of a parameter."""

    parameter: int
    key: str
    shape: Tuple[int, ...]
    number: Optional[type]  # int or float; None for a tensor
    dtype: Optional[torch.dtype]
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
        torch.manual_seed(job.seed)
        self._model = self._make_model().to(self._device)
        named = [(n, p) for n, p in self._model.named_parameters()]
        self._parameters = [p for _, p in named if p.requires_grad]
        frozen = [(n, p) for n, p in named if not p.requires_grad]
        kept = set(self._model.state_dict().keys())
        buffers = [(n, b) for n, b in self._model.named_buffers() if n in kept]
        self._buffers, self._frozen = [b for _, b in buffers], [p for _, p in frozen]
        if not self._parameters:
            raise ValueError("the model has no parameter that requires a gradient")
        for name, t in named + buffers:
            if t.dtype in (torch.float64, torch.complex64, torch.complex128):
                raise TypeError("%s is %s; the state is float32, use model.float()" % (name, t.dtype))

        self._optimizer = self._make_optimizer(self._parameters)
        if job.learning_rate is not None:
            for group in self._optimizer.param_groups:
                group["lr"] = job.learning_rate
        self._rates = [group["lr"] for group in self._optimizer.param_groups]
        self._fresh = copy.deepcopy(self._optimizer.state_dict())
        self._slots = self._find_slots()

        names = {id(p): n for n, p in named}
        tensors = [Entry(n, tuple(p.shape), PARAMETER) for n, p in named if p.requires_grad]
        tensors += [Entry(n, tuple(b.shape), STATISTIC) for n, b in buffers]
        tensors += [Entry(n, tuple(p.shape), FROZEN) for n, p in frozen]
        tensors += [
            Entry("optimizer/%s/%s" % (s.key, names[id(self._parameters[s.parameter])]), s.shape, SLOT)
            for s in self._slots
        ]
        if self._slots:
            tensors.append(Entry("optimizer/begun", (), SLOT))
        self._parameter_floats = sum(p.numel() for p in self._parameters)
        self._statistic_floats = sum(b.numel() for b in self._buffers)
        size = sum(_elements(t.shape) for t in tensors)
        self._state = bytearray(4 * size)
        self._values = bytearray(4 * self._parameter_floats)
        self._statistics = bytearray(4 * self._statistic_floats)
        self._begun = False
        return Description(
            tensors=tensors,
            model=type(self._model).__name__,
            optimizer=type(self._optimizer).__name__,
            framework="torch " + torch.__version__,
            metrics=list(self._metrics),
        )

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
                    if value.dtype == torch.float64 or value.is_complex():
                        raise TypeError("%s is %s; the state is float32" % (where, value.dtype))
                    slots.append(_Slot(i, key, tuple(value.shape), None, value.dtype, value.device))
                else:
                    slots.append(_Slot(i, key, (), type(value), None, None))
        self._optimizer.load_state_dict(copy.deepcopy(self._fresh))
        with torch.no_grad():
            for p, value in zip(self._parameters, before):
                p.copy_(value)
        return slots

    # Its state.

    def initial(self, seed: int) -> bytearray:
        self._begun = False  # describe() has left it as the seed makes it
        return self._flat()

    def load(self, state: memoryview) -> None:
        flat, at = _tensor(state), 0
        with torch.no_grad():
            for t in self._parameters + self._buffers + self._frozen:
                t.copy_(flat[at : at + t.numel()].reshape(t.shape))
                at += t.numel()
        if not self._slots:
            return
        self._begun = bool(flat[-1])
        if not self._begun:
            self._optimizer.load_state_dict(copy.deepcopy(self._fresh))
            return
        for s in self._slots:
            n = _elements(s.shape)
            value = flat[at : at + n].reshape(s.shape)
            at += n
            kept = s.number(value.item()) if s.number else value.to(device=s.device, dtype=s.dtype, copy=True)
            self._optimizer.state[self._parameters[s.parameter]][s.key] = kept

    def _flat(self) -> bytearray:
        flat = _tensor(self._state)
        at = _copy(flat, 0, self._parameters + self._buffers + self._frozen)
        if not self._slots:
            return self._state
        for s in self._slots:
            n = _elements(s.shape)
            value = self._optimizer.state[self._parameters[s.parameter]].get(s.key) if self._begun else None
            if value is None:
                flat[at : at + n] = 0
            else:
                flat[at : at + n] = value.detach().reshape(-1) if isinstance(value, Tensor) else value
            at += n
        flat[at] = float(self._begun)
        return self._state

    # What it computes.

    def gradient(self, minibatch: Minibatch) -> Gradient:
        inputs, targets = self._batch(minibatch.records, self._read)
        before = [b.clone() for b in self._buffers]
        torch.manual_seed(minibatch.seed)
        self._model.train()
        for p in self._parameters:
            p.grad = None
        outputs = self._model(inputs)
        mean = self._loss(outputs, targets)
        if mean.dim() != 0:
            raise ValueError("the loss has the shape %s; it should be one number, the mean" % (tuple(mean.shape),))
        n = len(minibatch.records)
        (mean * (n / minibatch.step_records)).backward()
        values = _tensor(self._values)
        at = 0
        for p in self._parameters:
            if p.grad is None:  # it had no part in the loss
                values[at : at + p.numel()] = 0
            else:
                values[at : at + p.numel()] = p.grad.reshape(-1)
            at += p.numel()
        if not bool(torch.isfinite(values).all()):
            raise NotFinite("a gradient is not finite: training diverged; a lower learning rate may help")
        _copy(_tensor(self._statistics), 0, self._buffers)
        with torch.no_grad():
            for b, value in zip(self._buffers, before):
                b.copy_(value)
        return Gradient(self._values, self._measure(mean, outputs, targets, n), self._statistics)

    def apply(self, gradient: memoryview, statistics: Sequence[memoryview], step: int) -> bytearray:
        flat, at = _tensor(gradient), 0
        for p in self._parameters:
            p.grad = flat[at : at + p.numel()].reshape(p.shape).to(device=p.device, dtype=p.dtype, copy=True)
            at += p.numel()
        if self._schedule is not None:
            factor = self._schedule(step)
            for group, rate in zip(self._optimizer.param_groups, self._rates):
                group["lr"] = rate * factor
        self._optimizer.step()
        self._begun = True
        if self._buffers:
            # The mean of what each minibatch measured; in float64, so that the mean of equals is their value.
            mean = sum(_tensor(s).double() for s in statistics) / len(statistics)
            at = 0
            with torch.no_grad():
                for b in self._buffers:
                    b.copy_(mean[at : at + b.numel()].reshape(b.shape))
                    at += b.numel()
        return self._flat()

    def evaluate(self, records: List[memoryview]) -> Measured:
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


def _elements(shape: Tuple[int, ...]) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


def _tensor(buffer: Union[bytearray, memoryview]) -> Tensor:
    """The memory of a buffer of float32."""
    if len(memoryview(buffer).cast("B")) == 0:
        return torch.empty(0)
    return torch.frombuffer(buffer, dtype=torch.float32)


def _copy(flat: Tensor, at: int, tensors: Iterable[Tensor]) -> int:
    for t in tensors:
        flat[at : at + t.numel()] = t.detach().reshape(-1)
        at += t.numel()
    return at


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
