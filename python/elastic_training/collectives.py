"""Elastic training of a PyTorch loop with its own collectives.

Use it as :mod:`elastic_training.torch`, which exports :func:`init`::

    import elastic_training.torch as elastic

    job = elastic.init(records=len(dataset))
    model = job.prepare(Net().to(job.device))
    optimizer = job.prepare(torch.optim.AdamW(model.parameters(), lr=3e-4))

    for step in job.steps():
        with step:  # repeated if a worker is lost during the step
            for x, y in step.batches(dataset):
                step.backward(criterion(model(x), y))
            step.reduce()  # adds the gradients of all ranks, and waits until the step counts
            optimizer.step()

In a job whose ``workers.elastic`` is ``collectives`` the ranks form a process group (NCCL on GPUs,
gloo otherwise). When a worker joins, leaves or is lost, the others form a new group in the same
processes. A step counts only when every rank holds its summed gradient, so the states of the ranks
never differ by a step, and every record counts exactly once per epoch. Outside a job the same
script runs as one plain process.

This side of the protocol: the worker starts the script and says lines of JSON on a Unix socket,
``ELASTIC_SOCKET``; internal/trainer/runtime/worker/member.go is the other side. A thread of this
module receives them, so that it can end a collective that hangs, whatever the script computes.
"""

import contextlib
import fcntl
import gc
import json
import os
import queue
import random
import re
import socket
import struct
import sys
import threading
import time
import traceback
from datetime import timedelta
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type, TypeVar, Union

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data.dataloader import default_collate

from . import evaluation, mix
from .data import Ahead, Minibatch, Plan, Ranges, Reader, Sockets, iterable_only, plan_of, seed_all, socket_of, sockets, to_device
from .exchange import Collectives, Exchange

__all__ = ["Job", "Ranges", "Step", "init"]

T = TypeVar("T")

_NO_STATE = -1
_COLLECTIVE_TIMEOUT = timedelta(minutes=30)  # of one that no rank's loss has ended
_CONNECT_TIMEOUT = timedelta(seconds=60)  # of the store of another rank
_INTERRUPT_INTERVAL = 0.1  # seconds
_INTERRUPT_TIMEOUT = 20.0  # seconds
_CHECKPOINT = re.compile(r"^step-(\d{12})\.pt$")


class _Aborted(BaseException):  # no `except Exception` of a script should catch it
    """The step does not count: the generation has ended."""


class _Generation(NamedTuple):
    """A process group, as the master has formed it."""

    number: int
    rank: int
    world: int
    step: int


class _Share(NamedTuple):
    """What this rank computes in a step."""

    step: int
    epoch: int
    minibatches: Sequence[Tuple[int, List[int]]]  # virtual worker, records
    virtual_workers: int  # of the whole step
    records: int  # of the whole step
    # What this rank computes in the step after, if no worker comes or goes: read ahead.
    following: Sequence[Tuple[int, List[int]]] = ()


def init(
    *,
    records: Optional[int] = None,
    minibatch_size: int = 32,
    grads_to_wait: int = 1,
    epochs: int = 1,
    seed: int = 1,
    records_per_task: Optional[int] = None,
    device: Optional[torch.device] = None,
    backend: Optional[str] = None,
) -> "Job":
    """Begins a job. Call it once, before the model is built: it seeds the random generators.

    In a job of elastic-trainer its own numbers apply, and the arguments are defaults for a plain
    run of the same script. ``records`` is the length of the data set; in a job it is compared with
    that of the job. ``records_per_task`` is how many consecutive records are shuffled together, and
    read together where a data set can only be iterated over; by default all. ``device`` is where
    gradients are: by default the CPU, or a GPU: the current one, and of several processes of a
    worker each one of its own, which becomes the current one. ``backend`` is that of the process
    group: by default "nccl" for a GPU, and "gloo" otherwise. With "gloo" several ranks can share a GPU,
    which NCCL refuses; tensors then go through the CPU.
    """
    path = os.environ.get("ELASTIC_SOCKET")
    if device is None:
        device = _device(torch.cuda.device_count() if torch.cuda.is_available() else 0)
        if device.type == "cuda":
            torch.cuda.set_device(device)
    side: _Side
    if path:
        side = _Worker(path, device, backend or ("nccl" if device.type == "cuda" else "gloo"))
        if records is not None and records != side.numbers["records"]:
            raise ValueError(
                "the data set has %d records, and the job's indices://NAME?records=%d"
                % (records, side.numbers["records"])
            )
    else:
        if records is None:
            raise ValueError("outside a job of elastic-trainer, init needs records=len(dataset)")
        side = _Alone(records, minibatch_size, grads_to_wait, epochs, seed, records_per_task or records)
    job = Job(side, device)
    torch.manual_seed(job.seed)  # also of accelerators that will be in use
    seed_all(job.seed)
    return job


def _local() -> Tuple[int, int]:
    """This process's number among those of its worker, and how many these are."""
    return int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def _device(gpus: int) -> torch.device:
    """The device of this process, of a machine with so many GPUs."""
    rank, processes = _local() if "ELASTIC_SOCKET" in os.environ else (0, 1)
    if gpus == 0:
        return torch.device("cpu")
    if processes == 1:
        return torch.device("cuda", torch.cuda.current_device())
    if gpus < processes:
        raise RuntimeError(
            "each worker runs %d processes, and this one has %d GPUs: set workers.processes, or pass init a device"
            % (processes, gpus)
        )
    return torch.device("cuda", rank)


class Job:
    """A training job, as this process takes part in it. Made by :func:`init`."""

    def __init__(self, side: "_Side", device: torch.device) -> None:
        self._side = side
        self.device = device
        numbers = side.numbers
        self.seed: int = numbers["seed"]
        self.total_steps: int = numbers["steps"]
        self.steps_per_epoch: int = numbers["steps_per_epoch"]
        self.minibatch_size: int = numbers["minibatch_size"]
        #: The learning rate that the job asks for in place of the script's own, or None.
        self.learning_rate: Optional[float] = numbers.get("learning_rate")
        self._models: List[nn.Module] = []
        self._others: List[Any] = []
        self._holding = 0  # steps in the state
        self._readers: Dict[Tuple[int, int], Reader] = {}  # by data set and number of processes
        self._ahead = Ahead()
        self._ranges: Dict[int, Tuple[Any, Ranges]] = {}  # by the id of a data set, which therefore is kept

    @property
    def rank(self) -> int:
        """This process's number among those of the current process group; rank 0 writes checkpoints."""
        return self._side.rank

    @property
    def world_size(self) -> int:
        """The number of processes in the current process group. It changes while the job runs."""
        return self._side.world

    @property
    def local_rank(self) -> int:
        """This process's number among those of its worker. It does not change."""
        return self._side.local_rank

    @property
    def is_main(self) -> bool:
        """Whether this process has rank 0: the one that should print and write files."""
        return self.rank == 0

    def save(self, value: Any, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes a value as ``torch.save`` does, if this process has rank 0.

        The file appears under its name when it is complete. Nobody waits for rank 0. Call it after
        ``step.reduce()``, or after the loop.
        """
        if self.is_main:
            _write_file(value, os.fspath(path))

    def evaluate(
        self,
        dataset: Any,
        measure: Callable[[Any], Mapping[str, Union[float, Tensor]]],
        *,
        records: Optional[int] = None,
        minibatch_size: Optional[int] = None,
        collate_fn: Optional[Callable[[List[Any]], Any]] = None,
        num_workers: int = 0,
    ) -> Dict[str, float]:
        """As :meth:`Step.evaluate`, but computed by this process alone: for after the loop."""
        parts = self._evaluation(dataset, records, minibatch_size, collate_fn, num_workers)
        return evaluation.evaluate(self._models, parts, measure)

    def _evaluation(
        self, dataset: Any, records: Optional[int], minibatch_size: Optional[int], collate_fn: Optional[Callable[[List[Any]], Any]],
        num_workers: int,
    ) -> evaluation.Parts:  # fmt: skip
        size = minibatch_size or self.minibatch_size
        if iterable_only(dataset):
            if records is None:
                raise ValueError("this data set can only be iterated over: evaluate needs its number of records")
            dataset = Ranges(dataset, records, size)
        return evaluation.Parts(dataset, size, collate_fn or default_collate, num_workers, self.device, self.seed)

    def _by_number(self, dataset: Any) -> Any:
        """The data set, or its ranges if its records have no numbers."""
        if not iterable_only(dataset):
            return dataset
        if id(dataset) not in self._ranges:
            n = self._side.numbers
            self._ranges[id(dataset)] = (dataset, Ranges(dataset, n["records"], n["records_per_task"]))
        return self._ranges[id(dataset)][1]

    def prepare(self, thing: T) -> T:
        """Makes a model, optimizer, scheduler or scaler a part of the state, and returns it.

        The state is what a checkpoint has and a joining worker receives. A model's part is its
        parameters and buffers; of anything else what ``state_dict()`` returns. Gradients of all
        prepared models' parameters are added by :meth:`Step.reduce`.
        """
        if self._side.started:
            raise RuntimeError("prepare everything before the first step")
        if isinstance(thing, nn.parallel.DistributedDataParallel):
            raise TypeError("prepare the model itself: step.reduce() adds the gradients in place of DistributedDataParallel")
        if isinstance(thing, nn.Module):
            self._models.append(thing)
        elif hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict"):
            self._others.append(thing)
        else:
            raise TypeError("%s has no state_dict; prepare takes models, optimizers, schedulers and scalers" % type(thing).__name__)
        return thing

    def steps(self) -> Iterator["Step"]:
        """The steps that this process takes part in. One that a lost worker has interrupted comes again."""
        if not self._models:
            raise RuntimeError("prepare the model before the first step")
        self._side.start(self)
        while True:
            share = self._side.next()
            if share is None:
                return
            step = Step(self, share)
            yield step
            if not step.entered:
                raise RuntimeError("enter each step: `with step:`")

    # The state.

    def _parameters(self) -> List[nn.Parameter]:
        return [p for m in self._models for p in m.parameters() if p.requires_grad]

    def _buffers(self) -> List[Tensor]:
        return [b for m in self._models for b in m.buffers()]

    def _tensors(self) -> Dict[str, Tensor]:
        """The models' parameters and buffers by name; tied ones once."""
        out = {}
        for i, m in enumerate(self._models):
            for name, t in list(m.named_parameters()) + list(m.named_buffers()):
                out["%d/%s" % (i, name)] = t
        return out

    def _state(self) -> Dict[str, Any]:
        return {
            "step": self._holding,
            "tensors": {name: t.detach() for name, t in self._tensors().items()},
            "others": [o.state_dict() for o in self._others],
        }

    def _load(self, state: Dict[str, Any]) -> None:
        tensors = self._tensors()
        if set(tensors) != set(state["tensors"]) or len(state["others"]) != len(self._others):
            raise ValueError("the state is of another model: its tensors or its prepared objects differ")
        with torch.no_grad():
            for name, t in tensors.items():
                if t.shape != state["tensors"][name].shape:
                    raise ValueError("the state is of another model: %s has another shape" % name)
                t.copy_(state["tensors"][name])
        for o, s in zip(self._others, state["others"]):
            o.load_state_dict(s)
        self._holding = state["step"]


class Step:
    """One step, as this rank computes it. Use it as a context: ``with step:``.

    If a rank is lost before the step counts, the block ends early and the step comes again: what must happen once for
    each step, such as logging, belongs into the block, after ``reduce``.
    """

    def __init__(self, job: Job, share: _Share) -> None:
        self._job = job
        self._share = share
        self.entered = False
        self._begun = False  # its minibatches are being computed
        self._reduced = False
        self._save = False
        self._current: Optional[int] = None  # records of the minibatch that is being computed
        self._is_last = False  # that minibatch, of this rank's
        self._read_ahead: Optional[Minibatch] = None  # what to read while this step is reduced
        self._loss_sum = torch.zeros((), dtype=torch.float64)
        self._seen = 0
        buffers = job._buffers()
        self._before = [b.detach().clone() for b in buffers]
        self._means = [
            torch.zeros_like(b, dtype=torch.float64) if b.is_floating_point() else torch.zeros_like(b) for b in buffers
        ]

    @property
    def number(self) -> int:
        """The step's number, from 0."""
        return self._share.step

    @property
    def epoch(self) -> int:
        """The step's epoch, from 0."""
        return self._share.epoch

    @property
    def records(self) -> List[List[int]]:
        """The indices of this rank's minibatches, for scripts that read them by themselves."""
        return [list(records) for _, records in self._share.minibatches]

    def __enter__(self) -> "Step":
        self.entered = True
        for p in self._job._parameters():
            p.grad = None
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], where: Optional[TracebackType]
    ) -> bool:
        if isinstance(error, _Aborted):
            self._restore()
            for p in self._job._parameters():
                p.grad = None
            self._job._side.unwound()
            return True  # the step comes again
        if error is None:
            if not self._reduced:
                raise RuntimeError("a step ends with step.reduce(), and then optimizer.step()")
            self._job._holding = self._share.step + 1
            self._job._side.applied(self._job._holding, self._save)
        return False

    def batches(
        self, dataset: Any, collate_fn: Optional[Callable[[List[Any]], Any]] = None, num_workers: int = 0, read_ahead: bool = True
    ) -> Iterator[Any]:
        """This rank's minibatches of a data set, on the job's device.

        A rank may have several, or none. Before each is read, the generators of torch, numpy and
        random are seeded by job, step and minibatch: augmentation and dropout are the same on any
        rank. Each minibatch begins with the buffers (batch normalization's averages) as the step
        found them.

        While gradients are exchanged, this process reads the first minibatch of the next step, unless
        that begins an epoch. Pass ``read_ahead=False`` if the script changes the data set from step
        to step.

        With ``num_workers`` so many processes read ahead, also while a step is reduced and applied,
        as those of a DataLoader do. They are seeded in the same way; since this process does not
        read then, its generators are in another state than with 0.

        A data set that can only be iterated over is read as :class:`Ranges`, of the job's
        ``records_per_task`` records; each process that reads keeps ranges of its own.
        """
        self._begun = True
        job, share = self._job, self._share
        dataset, collate = job._by_number(dataset), collate_fn or default_collate
        read: Iterator[Any] = (job._ahead.take(self._minibatch(dataset, collate, share.step, *m)) for m in share.minibatches)
        if num_workers > 0:
            key = (id(dataset), num_workers)
            if key not in job._readers:
                job._readers[key] = Reader(dataset, collate, num_workers, job.device)
            read = job._readers[key].read(self._plan(share.step, share.minibatches), self._plan(share.step + 1, share.following))
        elif read_ahead and share.following and (share.step + 1) % job.steps_per_epoch > 0:
            self._read_ahead = self._minibatch(dataset, collate, share.step + 1, *share.following[0])
        for i, (virtual_worker, records) in enumerate(share.minibatches):
            self._begin(virtual_worker, len(records))
            self._is_last = i + 1 == len(share.minibatches)
            yield to_device(next(read), job.device)
            self._end(virtual_worker)
        for _ in read:  # begins to read ahead
            raise RuntimeError("more minibatches were read than the step has")

    def _minibatch(self, dataset: Any, collate: Callable[[List[Any]], Any], step: int, virtual_worker: int, records: List[int]) -> Minibatch:
        return Minibatch(dataset, collate, mix(self._job.seed, step, virtual_worker), records)

    def _plan(self, step: int, minibatches: Sequence[Tuple[int, List[int]]]) -> Plan:
        return plan_of((mix(self._job.seed, step, v) for v, _ in minibatches), (records for _, records in minibatches))

    def evaluate(
        self,
        dataset: Any,
        measure: Callable[[Any], Mapping[str, Union[float, Tensor]]],
        *,
        records: Optional[int] = None,
        minibatch_size: Optional[int] = None,
        collate_fn: Optional[Callable[[List[Any]], Any]] = None,
        num_workers: int = 0,
    ) -> Dict[str, float]:
        """Measures the state with which the step begins, on all ranks. Returns the means over the data set's records.

        Call it on every rank, at the beginning of the block: if a rank is lost meanwhile, the block
        ends, and comes again with the evaluation. ``measure`` gets a minibatch on the job's device
        and returns sums over its records by name, such as the number of correct answers. Each rank
        measures a part of the minibatches, in evaluation mode and without gradients. ``records`` is
        the length of a data set that can only be iterated over.
        """
        if self._begun or self._reduced:
            raise RuntimeError("call step.evaluate(...) before step.batches(...), so that it can be repeated with the step")
        job = self._job
        parts = job._evaluation(dataset, records, minibatch_size, collate_fn, num_workers)
        return evaluation.evaluate(job._models, parts, measure, job.rank, job.world_size, job._side.reduce, job._side.check)

    def checkpoint(self) -> None:
        """Has rank 0 write a checkpoint of the state after this step, besides the job's own. Call it on every rank."""
        self._save = True

    def backward(self, loss: Tensor, scaler: Any = None) -> None:
        """Adds the gradients of the mean loss of the current minibatch, weighted by its records.

        So their sum over the step is the gradient of the step's mean. ``scaler`` is a GradScaler. In that of this rank's
        last minibatch, gradients are sent to the other ranks as soon as they are complete.
        """
        if self._current is None:
            raise RuntimeError("call step.backward(loss) once for each minibatch of step.batches()")
        if loss.dim() != 0:
            raise ValueError("the loss has the shape %s; it should be one number, the minibatch's mean" % (tuple(loss.shape),))
        self._loss_sum = self._loss_sum + loss.detach().double().cpu() * self._current
        self._seen += self._current
        weighted = loss * (self._current / self._share.records)
        exchange = self._job._side.exchange if self._is_last else None
        with exchange.last_backward(self._job._parameters()) if exchange is not None else contextlib.nullcontext():
            (scaler.scale(weighted) if scaler is not None else weighted).backward()

    @property
    def committed(self) -> bool:
        """Whether the step counts: every rank has the sum of its gradients."""
        return self._reduced

    def reduce(self) -> float:
        """Adds the gradients of all ranks and waits until the step counts. Returns its mean loss.

        After it every rank has the same gradients, and calls ``optimizer.step()``. If a rank is lost
        before the step counts, this ends the ``with`` block, and the step comes again.
        """
        if self._reduced:
            raise RuntimeError("call step.reduce() once in each step")
        job = self._job
        expected = sum(len(records) for _, records in self._share.minibatches)
        if self._seen != expected:
            raise RuntimeError("%d of this rank's %d records went through step.backward()" % (self._seen, expected))
        totals = self._add(torch.cat([self._loss_sum.reshape(1), torch.tensor([float(self._seen)], dtype=torch.float64)]))
        if not bool(torch.isfinite(totals[0])):
            job._side.diverged("the loss of step %d is %r: training diverged; a lower learning rate may help" % (self.number, float(totals[0])))
        if int(totals[1]) != self._share.records:
            raise RuntimeError("the ranks computed %d records of %d" % (int(totals[1]), self._share.records))
        job._side.reduced(self._share.step, float(self._loss_sum), self._seen)
        if job._side.exchange is not None:
            job._side.exchange.store()
        job._side.commit()
        self._reduced = True
        self._store_buffers()
        seed_all(mix(job.seed, self._share.step))
        return float(totals[0]) / self._share.records

    def _begin(self, virtual_worker: int, records: int) -> None:
        self._job._side.check()
        self._restore()
        self._current = records
        seed_all(mix(self._job.seed, self._share.step, virtual_worker))

    def _end(self, virtual_worker: int) -> None:
        self._current = None
        with torch.no_grad():
            for mean, b in zip(self._means, self._job._buffers()):
                if mean.dtype == torch.float64:
                    mean += b.double() / self._share.virtual_workers
                elif virtual_worker == 0:
                    mean.copy_(b)

    def _restore(self) -> None:
        with torch.no_grad():
            for b, before in zip(self._job._buffers(), self._before):
                b.copy_(before)

    def _add(self, numbers: Tensor) -> Tensor:
        """Adds the gradients and the buffers' means over the ranks, and some numbers, whose sums are returned."""
        job, exchange = self._job, self._job._side.exchange

        def meanwhile() -> None:
            if self._read_ahead is not None:
                job._ahead.read(self._read_ahead)

        if exchange is None:
            meanwhile()
            job._side.check()
            return numbers
        floats = [m for m in self._means if m.dtype == torch.float64]
        integers = [m for m in self._means if m.dtype != torch.float64]
        all_floats = [numbers] + ([_flatten(floats)] if floats else [])
        all_integers = _flatten(integers).long() if integers else None
        sums, integer_sums = exchange.finish(job._parameters(), all_floats, all_integers, meanwhile)
        _unflatten(floats, sums[numbers.numel() :])
        if integer_sums is not None:
            _unflatten(integers, integer_sums)
        return sums[: numbers.numel()].cpu()

    def _store_buffers(self) -> None:
        """A buffer of numbers with a fraction becomes the mean of what each minibatch made of it; others that of the first."""
        with torch.no_grad():
            for b, mean in zip(self._job._buffers(), self._means):
                b.copy_(mean)


def _flatten(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([t.reshape(-1) for t in tensors])


def _unflatten(tensors: Sequence[Tensor], flat: Tensor) -> None:
    at = 0
    with torch.no_grad():
        for t in tensors:
            t.copy_(flat[at : at + t.numel()].reshape(t.shape))
            at += t.numel()


class _Side:
    """Where shares come from and gradients go: a worker of a job, or nobody."""

    numbers: Dict[str, Any]
    rank = 0
    local_rank = 0
    world = 1
    started = False
    exchange: Optional[Exchange] = None  # of gradients, with other ranks

    def start(self, job: Job) -> None:
        """Everything is prepared."""
        raise NotImplementedError

    def next(self) -> Optional[_Share]:
        """The next share, or None after the last step."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises _Aborted if the step need not be computed any more."""

    def reduce(self, value: Tensor) -> Tensor:
        """The sum of a tensor over the ranks."""
        return value

    def reduced(self, step: int, loss_sum: float, records: int) -> None:
        """This rank holds the sums of the step."""

    def commit(self) -> None:
        """Waits until the step counts: every rank holds the sums."""

    def applied(self, held: int, save: bool) -> None:
        """The state is that after so many steps, and goes into a checkpoint if the script wants it."""

    def unwound(self) -> None:
        """The step was given up."""

    def diverged(self, reason: str) -> None:
        """Ends the job."""
        raise ArithmeticError(reason)


class _Alone(_Side):
    """A plain process outside a job: the same steps, with a shuffle of its own."""

    def __init__(self, records: int, minibatch_size: int, grads_to_wait: int, epochs: int, seed: int, records_per_task: int) -> None:
        if min(records, minibatch_size, grads_to_wait, epochs, records_per_task) < 1:
            raise ValueError("records, minibatch_size, grads_to_wait, epochs and records_per_task are at least 1")
        self._ranges = [range(lo, min(lo + records_per_task, records)) for lo in range(0, records, records_per_task)]
        self._per_epoch = sum(-(-len(r) // minibatch_size) for r in self._ranges)
        steps = -(-self._per_epoch // grads_to_wait)
        self._grads_to_wait = grads_to_wait
        self._step = 0
        self._epoch = -1  # whose minibatches _order has
        self._order: List[List[int]] = []
        self.numbers = {
            "seed": seed, "steps": steps * epochs, "steps_per_epoch": steps, "minibatch_size": minibatch_size, "records": records,
            "records_per_task": records_per_task,
        }  # fmt: skip

    def start(self, job: Job) -> None:
        self.started = True

    def next(self) -> Optional[_Share]:
        n, step = self.numbers, self._step
        if step == n["steps"]:
            return None
        minibatches = self._minibatches_of(step)
        following = self._minibatches_of(step + 1) if step + 1 < n["steps"] else []
        records = sum(len(records) for _, records in minibatches)
        return _Share(step, step // n["steps_per_epoch"], minibatches, len(minibatches), records, following)

    def _minibatches_of(self, step: int) -> List[Tuple[int, List[int]]]:
        n = self.numbers
        epoch, i = divmod(step, n["steps_per_epoch"])
        if self._epoch != epoch:
            self._epoch, self._order = epoch, self._shuffled(epoch)
        minibatches = self._order[i * self._grads_to_wait : (i + 1) * self._grads_to_wait]
        return list(enumerate(minibatches))

    def _shuffled(self, epoch: int) -> List[List[int]]:
        """The minibatches of an epoch: ranges in another order, and in each the records."""
        generator, size = random.Random(mix(self.numbers["seed"], epoch)), self.numbers["minibatch_size"]
        order = []
        for r in generator.sample(self._ranges, len(self._ranges)) if len(self._ranges) > 1 else self._ranges:
            records = list(r)
            generator.shuffle(records)
            order += [records[at : at + size] for at in range(0, len(records), size)]
        return order

    def applied(self, held: int, save: bool) -> None:
        self._step = held


class _Worker(_Side):
    """A worker of a job."""

    def __init__(self, path: str, device: torch.device, backend: str) -> None:
        self._backend = backend
        self._device = device if backend == "nccl" else torch.device("cpu")  # of tensors that ranks exchange
        self.local_rank = _local()[0]
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._connection.connect(path)
        self._sending = threading.Lock()
        self._lines = self._connection.makefile("r", encoding="utf-8")
        self.numbers = json.loads(self._lines.readline())
        self._inbox: "queue.Queue[Optional[Dict[str, Any]]]" = queue.Queue()
        self._generation: Optional[_Generation] = None
        self._aborted = 0  # the newest generation that was aborted
        self._guard = threading.Condition()  # of what follows, notified when a generation is aborted
        self._collective: Optional[int] = None  # the generation of the collective in progress
        self._sockets_before: Sockets = {}  # of this process, when the process group was being formed
        self._sockets: Optional[Sockets] = None  # of the process group; None while it is being formed
        self._writer: Optional[threading.Thread] = None
        self._last: Dict[str, Any] = {}  # the newest commit
        self._of = 0
        self._client: Optional[dist.TCPStore] = None  # of the generation's store, as long as its process group
        self._begun: List[Any] = []  # all-reduces that nobody has waited for yet
        self._failure: Optional[str] = None  # why one could not begin
        threading.Thread(target=self._receive, name="elastic-training", daemon=True).start()
        threading.Thread(target=self._end_collectives, name="elastic-training collectives", daemon=True).start()

    # What the worker says.

    def _receive(self) -> None:
        for line in self._lines:
            message = json.loads(line)
            if message["kind"] == "ping":
                self._tell(kind="alive")
                continue
            if message["kind"] == "abort":
                self._abort(message["generation"])
            self._inbox.put(message)
        self._inbox.put(None)
        self._abort(sys.maxsize)

    def _abort(self, generation: int) -> None:
        with self._guard:
            self._aborted = max(self._aborted, generation)
            self._guard.notify_all()

    def _end_collectives(self) -> None:
        """Ends collectives of aborted generations, for ever: the other ranks may be stopped, and never answer.

        A process group that is being formed opens connections after it was interrupted, so it is interrupted again and
        again. A process that nothing ends would be lost to the job; it exits, and its worker starts another one.
        """
        while True:
            with self._guard:
                self._guard.wait_for(lambda: self._collective is not None and self._collective <= self._aborted)
                number, began = self._collective, time.monotonic()
                if self._backend == "nccl":
                    self._abort_nccl()
            while self._interrupted(number):
                if time.monotonic() - began > _INTERRUPT_TIMEOUT:
                    sys.stderr.write("a collective of the aborted generation %d does not end; the process starts again\n" % number)
                    os._exit(75)
                time.sleep(_INTERRUPT_INTERVAL)

    def _interrupted(self, number: int) -> bool:
        """Interrupts a generation's collective, and reports whether there was one.

        gloo has no call for that. Its operations end with an error when their connections do.
        """
        with self._guard:
            if self._collective != number:
                return False
            of_group = self._sockets
            if of_group is None:
                of_group = _without(sockets(), self._sockets_before)
            self._shut_down(of_group)
            return True

    @staticmethod
    def _shut_down(of_group: Sockets) -> None:
        for fd, identity in of_group.items():
            with contextlib.suppress(OSError):
                copy = os.dup(fd)
                try:
                    if socket_of(copy) == identity:  # or it was closed, and its number may be another one's by now
                        _shut_down_connection(copy)
                finally:
                    os.close(copy)

    @staticmethod
    def _abort_nccl() -> None:
        """Aborts NCCL's operations where torch can (2.6 and newer). Otherwise this process ends, and joins as a new one."""
        abort = getattr(dist.distributed_c10d, "_abort_process_group", None)
        if abort is None or not dist.is_initialized():
            sys.stderr.write("this version of torch cannot abort a collective; the process starts again\n")
            os._exit(75)
        abort()

    def _tell(self, **report: Any) -> None:
        text = (json.dumps(report) + "\n").encode()
        with self._sending, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._connection.sendall(text)

    def _next_message(self) -> Dict[str, Any]:
        message = self._inbox.get()
        if message is None:
            raise SystemExit(0)  # the worker has ended
        return message

    # Membership.

    def start(self, job: Job) -> None:
        if self.started:
            raise RuntimeError("iterate over job.steps() once")
        self.started = True
        self._job = job
        host = self.numbers["host"]
        self._store = _tcp_store(host, 0, serves=True)
        interface = _interface(host)
        if interface:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
            os.environ.setdefault("NCCL_SOCKET_IFNAME", interface)
        steps = self._checkpoints()
        self._held = _NO_STATE
        self._tell(
            kind="ready", store="%s:%d" % (host if ":" not in host else "[%s]" % host, self._store.port), held=_NO_STATE,
            checkpoint=steps[-1] if steps else _NO_STATE,
        )  # fmt: skip

    def next(self) -> Optional[_Share]:
        while True:
            m = self._next_message()
            kind, g = m["kind"], self._generation
            if kind == "begin":
                self._begin(m)
            elif kind == "save":
                self._save(wait=True)
            elif g is None or m.get("generation") != g.number:
                continue  # of a generation that has ended
            elif kind == "abort":
                self._idle("")
            elif kind == "finish":
                if m.get("saver"):
                    self._save(wait=True)
                if self._writer is not None:
                    self._writer.join()
                return None
            elif kind == "work":
                now, following = ([(b["virtual_worker"], b["records"]) for b in m.get(key, [])] for key in ("minibatches", "following"))
                return _Share(m["step"], m["epoch"], now, m["virtual_workers"], m["step_records"], following)

    def _begin(self, m: Dict[str, Any]) -> None:
        g = self._generation = _Generation(m["generation"], m["rank"], m["world"], m["step"])
        self.rank, self.world = g.rank, g.world
        os.environ.update(RANK=str(g.rank), WORLD_SIZE=str(g.world))  # for libraries that ask who writes logs
        source = m.get("source", 0)
        aborted = None
        try:
            if m.get("load") and g.rank == source:
                self._read(g.step)
            with self._in_collective(forming=True):
                self._meet(g, m["store"])
            if g.world > 1:
                self.exchange = Exchange(Collectives(self._begin_adding, self._wait_for_sums, self._device, g.rank))
            if g.rank == source:
                self._held = g.step
            if m.get("broadcast"):
                with self._in_collective():
                    self._broadcast(source)
        except _Aborted as error:
            aborted = str(error)
        if aborted is not None:
            gc.collect()  # errors of torch 2.6 to 2.11 are in cycles, which keep connections of a group that was not formed
            self._idle(aborted)
            return
        self._held, self._of, self._job._holding = g.step, g.number, g.step

    def _meet(self, g: _Generation, store: str) -> None:
        address, _, number = store.rpartition(":")
        host, port = address.strip("[]"), int(number)
        self._wait_for_store(host, port)
        client = _tcp_store(host, port, serves=False)
        dist.init_process_group(
            self._backend, store=dist.PrefixStore("generation/%d" % g.number, client), rank=g.rank, world_size=g.world,
            timeout=_COLLECTIVE_TIMEOUT,
        )  # fmt: skip
        with self._guard:
            self._sockets = _without(sockets(), self._sockets_before)
        self._client = client

    def _wait_for_store(self, host: str, port: int) -> None:
        """Waits until a store can be reached. torch would go on trying after the generation was aborted."""
        deadline = time.monotonic() + _CONNECT_TIMEOUT.total_seconds()
        while True:
            try:
                socket.create_connection((host, port), timeout=1).close()
                return
            except OSError as error:
                self.check()
                if time.monotonic() > deadline:
                    raise _Aborted("the store of rank 0 at port %d of %s: %s" % (port, host, error)) from error
            time.sleep(_INTERRUPT_INTERVAL)

    def _broadcast(self, source: int) -> None:
        """Receives the state of another rank, or sends it: its structure first, and then each tensor's bytes."""
        job, receives = self._job, self.rank != source
        parts: List[Any] = [None]
        tensors: List[Tensor] = []
        if not receives:
            parts = [_strip(job._state(), tensors)]
        dist.broadcast_object_list(parts, source)
        if receives:
            self._held = _NO_STATE
            _collect(parts[0], tensors)
        for t in tensors:
            bytes_ = t.detach().contiguous().reshape(-1).view(torch.uint8) if t.numel() else None
            if bytes_ is None:
                continue
            moved = bytes_ if not receives else torch.empty_like(bytes_)
            moved = moved.to(self._device)
            dist.broadcast(moved, source)
            if receives:
                with torch.no_grad():
                    t.copy_(moved.to(t.device).view(t.dtype).reshape(t.shape))
        if receives:
            job._load(_fill(parts[0], iter(tensors)))

    @contextlib.contextmanager
    def _in_collective(self, forming: bool = False) -> Iterator[None]:
        """Runs collectives, which an abort interrupts. Their errors end the generation for this rank."""
        g = self._generation
        assert g is not None
        with self._guard:
            if self._aborted >= g.number:
                raise _Aborted("")
            self._collective = g.number
            if forming:
                self._sockets_before, self._sockets = sockets(), None
        failure = None
        try:
            yield
        except RuntimeError as error:  # all of torch.distributed's are
            # Not the error itself: it would keep the process group, whose threads ask closed connections without end.
            failure = str(error).split("\n", 1)[0]
        finally:
            with self._guard:
                self._collective = None
        if failure is not None:
            told = self._aborted >= g.number
            raise _Aborted("" if told else failure)

    def _idle(self, reason: str) -> None:
        """Leaves the generation, which did not end with a commit."""
        g = self._generation
        assert g is not None
        self._leave()
        self._tell(kind="idle", generation=g.number, held=self._held, of=self._of, reason=reason)

    def _leave(self) -> None:
        if self.exchange is not None:
            self.exchange.close()
            self.exchange = None
        self._end_begun()
        self._generation = None
        self._sockets, self._sockets_before = {}, {}
        if dist.is_initialized():
            with contextlib.suppress(RuntimeError):
                dist.destroy_process_group()
        self._client = None

    # A step.

    def check(self) -> None:
        g = self._generation
        if g is None or self._aborted >= g.number:
            raise _Aborted("")

    def reduce(self, value: Tensor) -> Tensor:
        if self.world == 1:
            self.check()
            return value
        sent = value.float() if value.dtype in (torch.bfloat16, torch.float16) and self._device.type != "cuda" else value
        sent = sent.to(self._device)
        with self._in_collective():
            dist.all_reduce(sent)
        return sent.to(device=value.device, dtype=value.dtype)

    def _begin_adding(self, value: Tensor) -> None:
        """Begins to add a tensor over the ranks, in its place. What prevents that is an error of the wait for it."""
        g = self._generation
        if g is None or self._aborted >= g.number or self._failure is not None:
            return
        try:
            self._begun.append(dist.all_reduce(value, async_op=True))
        except RuntimeError as error:
            self._failure = str(error).split("\n", 1)[0]

    def _wait_for_sums(self) -> None:
        with self._in_collective():
            if self._failure is not None:
                raise RuntimeError(self._failure)
            for work in self._begun:
                work.wait()
            if self._device.type == "cuda":
                torch.cuda.current_stream(self._device).synchronize()  # until here only its operations had to wait
        self._begun = []
        self.check()

    def _end_begun(self) -> None:
        """Ends all-reduces that other ranks may never join: the process group cannot be destroyed before."""
        g, begun, self._begun, self._failure = self._generation, self._begun, [], None
        if g is None or all(work.is_completed() for work in begun):
            return
        with self._guard:
            self._aborted = max(self._aborted, g.number)
            self._collective = g.number
            self._guard.notify_all()
        for work in begun:
            with contextlib.suppress(RuntimeError):
                work.wait()
        with self._guard:
            self._collective = None

    def reduced(self, step: int, loss_sum: float, records: int) -> None:
        g = self._generation
        assert g is not None
        self._tell(kind="reduced", generation=g.number, step=step, loss_sum=loss_sum, records=records)

    def commit(self) -> None:
        g = self._generation
        assert g is not None
        while True:
            m = self._next_message()
            if m.get("generation") != g.number:
                continue
            if m["kind"] == "abort":
                raise _Aborted("")
            if m["kind"] == "commit":
                self._last = m
                return

    def applied(self, held: int, save: bool) -> None:
        self._held = held
        m, self._last = self._last, {}
        if m.get("save") or save and self.rank == 0:
            self._save(wait=False)
        if m.get("last"):
            self._leave()

    def unwound(self) -> None:
        error = sys.exc_info()[1]
        self._idle(str(error) if isinstance(error, _Aborted) else "")

    def diverged(self, reason: str) -> None:
        self._tell(kind="diverged", reason=reason)
        raise ArithmeticError(reason)

    # Checkpoints.

    def _checkpoints(self) -> List[int]:
        """The steps of the checkpoints that can be read, in order."""
        try:
            names = os.listdir(self.numbers["checkpoints"])
        except FileNotFoundError:
            return []
        return sorted(int(found.group(1)) for found in map(_CHECKPOINT.match, names) if found)

    def _file(self, step: int) -> str:
        return os.path.join(self.numbers["checkpoints"], "step-%012d.pt" % step)

    def _read(self, step: int) -> None:
        path = self._file(step)
        try:
            state = torch.load(path, map_location="cpu")
        except Exception:  # whatever a damaged file makes of it
            with contextlib.suppress(OSError):
                os.replace(path, path + ".damaged")  # the next start finds the one before it
            raise
        self._job._load(state)

    def _save(self, wait: bool) -> None:
        """Writes a checkpoint of the state, in another thread unless wait is set."""
        if self._writer is not None:
            self._writer.join()
        state = _copy(self._job._state())
        self._writer = threading.Thread(target=self._write, args=(state,), name="elastic-training checkpoint")
        self._writer.start()
        if wait:
            self._writer.join()

    def _write(self, state: Dict[str, Any]) -> None:
        path = self._file(state["step"])
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            _write_file(state, path)
        except OSError:
            traceback.print_exc()  # the job goes on; the next checkpoint may succeed
            return
        self._tell(kind="saved", step=state["step"])
        keep = self.numbers.get("keep", 0)
        for step in self._checkpoints()[:-keep] if keep else []:
            with contextlib.suppress(OSError):
                os.remove(self._file(step))


def _write_file(value: Any, path: str) -> None:
    """Writes a file that is complete or not there."""
    temporary = "%s.%d.tmp" % (path, os.getpid())
    try:
        with open(temporary, "wb") as f:
            torch.save(value, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise


def _tcp_store(host: str, port: int, serves: bool) -> dist.TCPStore:
    """A store whose server is the same in each build of torch: newer versions ask for libuv even where it is not compiled in."""
    arguments = (host, port, None, serves, _CONNECT_TIMEOUT, False)
    try:
        return dist.TCPStore(*arguments, use_libuv=False)
    except TypeError:  # before torch 2.2
        return dist.TCPStore(*arguments)


def _shut_down_connection(fd: int) -> None:
    s = socket.socket(fileno=fd)
    try:
        # gloo would ask one that listens for connections without end, with a whole CPU.
        if not s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            s.shutdown(socket.SHUT_RDWR)
    finally:
        s.detach()


def _without(all_sockets: Sockets, others: Sockets) -> Sockets:
    return {fd: identity for fd, identity in all_sockets.items() if others.get(fd) != identity}


class _Placeholder(NamedTuple):
    """Stands for a tensor in a state's structure."""

    shape: Tuple[int, ...]
    dtype: torch.dtype
    device: str


def _strip(value: Any, tensors: List[Tensor]) -> Any:
    """The structure of a state, whose tensors are appended to a list."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return _Placeholder(tuple(value.shape), value.dtype, value.device.type)
    if isinstance(value, dict):
        return {k: _strip(v, tensors) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_strip(v, tensors) for v in value)
    return value


def _collect(value: Any, tensors: List[Tensor]) -> None:
    """New tensors for the placeholders of a structure, in order."""
    if isinstance(value, _Placeholder):
        tensors.append(torch.empty(value.shape, dtype=value.dtype))
    elif isinstance(value, dict):
        for v in value.values():
            _collect(v, tensors)
    elif isinstance(value, (list, tuple)):
        for v in value:
            _collect(v, tensors)


def _fill(value: Any, tensors: Iterator[Tensor]) -> Any:
    """The state of a structure and its tensors."""
    if isinstance(value, _Placeholder):
        return next(tensors)
    if isinstance(value, dict):
        return {k: _fill(v, tensors) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fill(v, tensors) for v in value)
    return value


def _copy(value: Any) -> Any:
    """A state that shares no tensor with the original, on the CPU."""
    tensors: List[Tensor] = []
    structure = _strip(value, tensors)
    return _fill(structure, iter([t.detach().to("cpu", copy=True) for t in tensors]))


def _interface(host: str) -> Optional[str]:
    """The network interface with an IPv4 address, or None."""
    if host.startswith("127."):
        return "lo"
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                request = struct.pack("256s", name.encode()[:15])
                address = socket.inet_ntoa(fcntl.ioctl(s.fileno(), 0x8915, request)[20:24])  # SIOCGIFADDR
                if address == host:
                    return name
    return None
