"""How scripts with collectives of their own read records; see :mod:`elastic_training.collectives`.

A step's records are numbers. :class:`Ranges` finds them in a data set that can only be iterated over, and
:class:`Reader` reads them ahead in other processes.
"""

import collections
import contextlib
import ctypes
import itertools
import os
import random
import signal
import sys
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data._utils import worker as torch_worker

__all__ = ["Ranges"]

Sockets = Dict[int, str]  # by file descriptor: "socket:[INODE]"


class Ranges:
    """A data set that can only be iterated over, as one whose records have numbers.

    It is read in ranges of ``size`` consecutive records, the newest two of which stay in memory. If
    the data set has ``skip(n)``, which returns one without the first n records (as those of Hugging
    Face do), a range is read from where it begins. Otherwise the records before it are read and
    dropped. Each iteration has to give the same ``records`` records in the same order: do not shuffle
    or divide the data set. Random numbers that it draws are those of its range, in every epoch.
    """

    _KEEP = 2

    def __init__(self, dataset: Iterable[Any], records: int, size: int) -> None:
        if min(records, size) < 1:
            raise ValueError("records and size are at least 1")
        self._dataset, self._records, self._size = dataset, records, size
        self._ranges: "collections.OrderedDict[int, List[Any]]" = collections.OrderedDict()
        self._iterator: Optional[Iterator[Any]] = None
        self._at = 0  # what the iterator gives next

    def __len__(self) -> int:
        return self._records

    def __getitem__(self, record: int) -> Any:
        if not 0 <= record < self._records:
            raise IndexError("record %d of a data set of %d" % (record, self._records))
        first = record - record % self._size
        if first not in self._ranges:
            while len(self._ranges) >= self._KEEP:
                self._ranges.popitem(last=False)
            self._ranges[first] = self._read(first)
        self._ranges.move_to_end(first)
        return self._ranges[first][record - first]

    def _read(self, first: int) -> List[Any]:
        count = min(self._size, self._records - first)
        with _generators_seeded(first), _not_in_a_reader():
            iterator, self._iterator = self._from(first), None  # not used again if it fails
            items = list(itertools.islice(iterator, count))
        if len(items) < count:
            raise IndexError("the data set has ended after %d records, of %d" % (first + len(items), self._records))
        self._iterator, self._at = iterator, first + count
        return items

    def _from(self, first: int) -> Iterator[Any]:
        """The records from a number on."""
        iterator, drop = self._iterator, first - self._at
        if iterator is None or drop != 0 and (drop < 0 or hasattr(self._dataset, "skip")):
            if first > 0 and hasattr(self._dataset, "skip"):
                return iter(self._dataset.skip(first))
            iterator, drop = iter(self._dataset), first
        next(itertools.islice(iterator, drop, drop), None)
        return iterator


def iterable_only(dataset: Any) -> bool:
    """Whether a data set has no records by number."""
    return isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__")


@contextlib.contextmanager
def _generators_seeded(seed: int) -> Iterator[None]:
    """Seeds the generators of torch (on the CPU), random and numpy, and leaves them as they were."""
    before = Generators()
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)
    try:
        yield
    finally:
        before.restore()


@contextlib.contextmanager
def _not_in_a_reader() -> Iterator[None]:
    """Keeps a data set from dividing its records by ``get_worker_info()``: here it gives all of them."""
    before, torch_worker._worker_info = torch_worker._worker_info, None
    try:
        yield
    finally:
        torch_worker._worker_info = before


def _only_cpu() -> bool:
    """Whether no accelerator is in use."""
    mps, xpu = getattr(torch.backends, "mps", None), getattr(torch, "xpu", None)
    return not (torch.cuda.is_initialized() or mps is not None and mps.is_available() or xpu is not None and xpu.is_available())


def seed_all(seed: int) -> None:
    """Seeds the global generators of torch, random and, where it is in use, numpy."""
    if _only_cpu():
        # manual_seed would note for CUDA, should it be used later, where it was called from: that takes almost a millisecond.
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)


class Generators:
    """The states of the global generators of torch, random and, where they are in use, CUDA and numpy."""

    def __init__(self) -> None:
        self._numpy = sys.modules.get("numpy")
        self._torch, self._random = torch.get_rng_state(), random.getstate()
        self._of_numpy = self._numpy.random.get_state() if self._numpy is not None else None
        self._cuda = torch.cuda.get_rng_state() if torch.cuda.is_initialized() else None

    def restore(self) -> None:
        torch.set_rng_state(self._torch)
        random.setstate(self._random)
        if self._numpy is not None:
            self._numpy.random.set_state(self._of_numpy)
        if self._cuda is not None:
            torch.cuda.set_rng_state(self._cuda)


def to_device(value: Any, device: torch.device) -> Any:
    """Moves tensors, and those in lists, tuples and dictionaries."""
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=True)
    if isinstance(value, dict):
        return {k: to_device(v, device) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_device(v, device) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(to_device(v, device) for v in value)
    return value


#: Of each minibatch the records, of which the first has the minibatch's seed.
Plan = List[List[Tuple[Optional[int], int]]]


def plan_of(seeds: Iterable[int], minibatches: Iterable[List[int]]) -> Plan:
    """What processes have to read: the seed of a minibatch with its first record, and the other records."""
    return [list(zip([seed] + [None] * (len(records) - 1), records)) for seed, records in zip(seeds, minibatches)]


class Seeded:
    """A data set whose generators are seeded before the first record of a minibatch is read."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __getitem__(self, at: Tuple[Optional[int], int]) -> Any:
        seed, record = at
        if seed is not None:
            seed_all(seed)
        return self._dataset[record]

    def __len__(self) -> int:
        return len(self._dataset)


def loader(
    dataset: Seeded, plan: Plan, collate: Callable[[List[Any]], Any], num_workers: int, device: torch.device, **more: Any
) -> DataLoader:
    """Processes that read a plan's minibatches.

    They are forks of this process, as in Python before 3.14 by default: another start would import the script once more, and
    its parent would not be this process, with which they are to end.
    """
    return DataLoader(
        dataset, batch_sampler=plan, collate_fn=collate, num_workers=num_workers, pin_memory=device.type == "cuda",
        worker_init_fn=in_reader, multiprocessing_context="fork", **more,
    )  # fmt: skip


class Reader:
    """Processes that read minibatches: those of a step, and then the next one's while this one is reduced and applied."""

    def __init__(self, dataset: Any, collate: Callable[[List[Any]], Any], num_workers: int, device: torch.device) -> None:
        self._sampler: Plan = []  # the same list all the time: DataLoader keeps it
        self._loader = loader(Seeded(dataset), self._sampler, collate, num_workers, device, persistent_workers=True)
        self._ahead: Optional[Iterator[Any]] = None
        self._plan: Plan = []  # of what is read ahead

    def read(self, plan: Plan, following: Plan) -> Iterator[Any]:
        """The minibatches of a plan. After the last it begins to read those of the following one."""
        batches, self._ahead = self._ahead, None
        if batches is None or self._plan != plan:
            batches = self._start(plan)
        for _ in plan:
            yield next(batches)
        self._ahead = self._start(following)

    def _start(self, plan: Plan) -> Iterator[Any]:
        self._plan = plan
        self._sampler[:] = plan
        return iter(self._loader) if plan else iter(())  # what was read ahead for another plan is dropped


class Minibatch(NamedTuple):
    """A minibatch of a step, and how it is read."""

    dataset: Any
    collate: Callable[[List[Any]], Any]
    seed: int  # of the generators, before it is read; no other minibatch has it
    records: List[int]

    def read(self) -> Any:
        seed_all(self.seed)
        return self.collate([self.dataset[i] for i in self.records])


class Ahead:
    """Reads one minibatch before its step, in this process while it has to wait for others.

    The script cannot tell: when it takes the minibatch, the generators are as reading it has left them, and an error of the
    data set is raised then.
    """

    def __init__(self) -> None:
        self._off = False
        self._drop()

    def read(self, minibatch: Minibatch) -> None:
        if self._off:
            return
        self._minibatch = minibatch
        try:
            self._value = minibatch.read()
        except Exception as error:
            self._error = error
        self._generators = Generators()

    def take(self, minibatch: Minibatch) -> Any:
        """Reads a minibatch, unless it was read ahead."""
        ahead, value, error, generators = self._minibatch, self._value, self._error, self._generators
        self._drop()
        if ahead is None or ahead.seed != minibatch.seed:
            return minibatch.read()
        if ahead.dataset is not minibatch.dataset or ahead.collate is not minibatch.collate or ahead.records != minibatch.records:
            self._off = True  # the script makes them anew in each step: each minibatch would be read twice
            return minibatch.read()
        generators.restore()
        if error is not None:
            raise error
        return value

    def _drop(self) -> None:
        self._minibatch: Optional[Minibatch] = None
        self._value: Any = None
        self._error: Optional[Exception] = None
        self._generators: Any = None


def in_reader(_: int) -> None:
    """Keeps a process that reads from outliving this one, or from keeping its connections open.

    The descriptors stay taken, because objects of this process still hold their numbers.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in sockets():
        os.dup2(nothing, fd)


def sockets() -> Sockets:
    """This process's sockets. A descriptor's number is used again when it is closed, an identity is not."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        identity = socket_of(int(name))
        if identity is not None:
            found[int(name)] = identity
    return found


def socket_of(fd: int) -> Optional[str]:
    """The identity of a descriptor's socket, or None if it is of something else, or closed."""
    with contextlib.suppress(OSError):
        identity = os.readlink("/proc/self/fd/%d" % fd)
        if identity.startswith("socket:"):
            return identity
    return None
