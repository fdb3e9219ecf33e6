"""How ranks add their gradients while the backward pass of a step's last minibatch still runs.

Gradients are added in buckets, as in ``DistributedDataParallel``: as soon as all gradients of a bucket are complete, its
all-reduce begins. All ranks send the same buckets in the same order. At first it is the reverse of the order in which the
parameters were registered; after a step, the one in which their gradients were complete on rank 0, which tells the others.

What is sent is a copy. So whatever changes a gradient afterwards (another backward pass, a script that scales it) is noticed
when the step is reduced, and the bucket is sent again: the result is the sum of the gradients as they are then, always.
"""

import contextlib
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

#: Whether a parameter can say that its gradient is complete (torch 2.1 and newer). Otherwise all are sent after the pass.
HOOKS = hasattr(Tensor, "register_post_accumulate_grad_hook")

_FIRST_BUCKET_BYTES = 1 << 20  # small, so that the exchange begins early
_BUCKET_BYTES = 25 << 20


class Collectives(NamedTuple):
    """The process group."""

    begin: Callable[[Tensor], None]  # begins to add a tensor over the ranks, in its place
    wait: Callable[[], None]  # until all that were begun are complete
    device: torch.device  # where the tensors are
    rank: int


class _Bucket:
    """Parameters whose gradients are added by one all-reduce."""

    def __init__(self, parameters: List[nn.Parameter], device: torch.device) -> None:
        self.parameters = parameters
        dtype = parameters[0].dtype
        if dtype in (torch.bfloat16, torch.float16) and device.type != "cuda":
            dtype = torch.float32  # gloo adds no others
        self.flat = torch.empty(sum(p.numel() for p in parameters), dtype=dtype, device=device)
        self._parts = [part.view(p.shape) for p, part in zip(parameters, self.flat.split([p.numel() for p in parameters]))]
        self._copied: List[Tuple[Optional[Tensor], int]] = []  # gradients and their versions
        self.incomplete = {id(p) for p in parameters}

    @torch.no_grad()
    def copy_gradients(self) -> None:
        self._copied = [(p.grad, 0 if p.grad is None else p.grad._version) for p in self.parameters]
        for part, (gradient, _) in zip(self._parts, self._copied):
            if gradient is None:
                part.zero_()
            else:
                part.copy_(gradient)

    def is_outdated(self) -> bool:
        """Whether a gradient has changed since it was copied."""
        return any(p.grad is not g or g is not None and g._version != v for p, (g, v) in zip(self.parameters, self._copied))

    @torch.no_grad()
    def store(self, has_gradient: Dict[int, float]) -> None:
        """Makes the sums the parameters' gradients. One that has none on any rank keeps none."""
        for p, part in zip(self.parameters, self._parts):
            if has_gradient[id(p)] > 0:
                if p.grad is None:
                    p.grad = torch.empty_like(p)
                p.grad.copy_(part)
        self._copied = []
        self.incomplete = {id(p) for p in self.parameters}


class Exchange:
    """Adds the gradients of the ranks of one process group, step by step."""

    def __init__(self, collectives: Collectives) -> None:
        self._collectives = collectives
        self._parameters: List[nn.Parameter] = []
        self._buckets: List[_Bucket] = []
        self._bucket_of: Dict[int, _Bucket] = {}
        self._hooks: List[torch.utils.hooks.RemovableHandle] = []
        self._sent = 0  # buckets, in this step
        self._has_gradient: Dict[int, float] = {}  # on how many ranks, in this step
        self._listening = False  # the last backward pass of the step runs
        self._order: Dict[int, None] = {}  # parameters as their gradients were complete, until that is agreed on
        self._places: List[float] = []  # of the parameters in the order on which the ranks have agreed, from 1; 0 is none
        self._divided_anew = False  # in that order

    @contextlib.contextmanager
    def last_backward(self, parameters: List[nn.Parameter]) -> Iterator[None]:
        """Sends gradients while the last backward pass of this rank's share runs, and at its end what is left."""
        self._lay_out(parameters)
        self._listening = bool(self._hooks)
        try:
            yield
        finally:
            self._listening = False
        if self._hooks:
            self.send(parameters)

    def send(self, parameters: List[nn.Parameter]) -> None:
        """Sends the gradients that were not sent yet, as they are."""
        self._lay_out(parameters)
        while self._sent < len(self._buckets):
            self._send_next()

    def finish(
        self, parameters: List[nn.Parameter], numbers: List[Tensor], integers: Optional[Tensor], meanwhile: Callable[[], None]
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Waits for the sums of the gradients, which ``store`` uses, and returns those of more numbers, of float64 and of int64.

        It calls ``meanwhile`` when all is sent, before it waits for the other ranks.
        """
        self.send(parameters)
        c, buckets = self._collectives, self._buckets
        flags = [float(p.grad is not None) for p in self._parameters] + [float(b.is_outdated()) for b in buckets]
        if not self._places:
            places = {p: float(i + 1) for i, p in enumerate(self._order)} if c.rank == 0 else {}
            flags += [places.get(id(p), 0.0) for p in self._parameters]
        sums = torch.cat([torch.tensor(flags, dtype=torch.float64, device=c.device)] + [t.to(c.device) for t in numbers])
        c.begin(sums)
        if integers is not None:
            integers = integers.to(c.device)
            c.begin(integers)
        meanwhile()
        c.wait()
        values = sums[: len(flags)].tolist()
        n = len(self._parameters)
        outdated = [b for b, changed in zip(buckets, values[n:]) if changed > 0]
        for b in outdated:
            b.copy_gradients()
            c.begin(b.flat)
        if outdated:
            c.wait()
        self._has_gradient = {id(p): value for p, value in zip(self._parameters, values)}
        if any(values[n + len(buckets) :]):  # not if rank 0 had no minibatch
            self._places = values[n + len(buckets) :]
        return sums[len(flags) :], integers

    def store(self) -> None:
        """Makes every gradient the sum of the ranks'."""
        for b in self._buckets:
            b.store(self._has_gradient)
        self._sent = 0

    def close(self) -> None:
        """The process group has ended."""
        for hook in self._hooks:
            hook.remove()
        self._parameters, self._buckets, self._bucket_of, self._hooks = [], [], {}, []

    def _lay_out(self, parameters: List[nn.Parameter]) -> None:
        """Divides parameters into buckets, unless they are the same as before."""
        if len(parameters) == len(self._parameters) and all(p is q for p, q in zip(parameters, self._parameters)):
            if self._places and not self._divided_anew:
                self._divide_anew()
            return
        if self._sent > 0:
            raise RuntimeError("which parameters require a gradient was changed between step.backward() and step.reduce()")
        self.close()
        self._parameters, self._order, self._places, self._divided_anew = list(parameters), {}, [], False
        distinct = {id(p): p for p in reversed(parameters)}  # prepared models may share some
        self._divide(list(distinct.values()))
        # Hooks of parameters on several devices would run in several threads.
        if HOOKS and len({p.device for p in parameters}) == 1 and parameters[0].device.type == self._collectives.device.type:
            self._hooks = [p.register_post_accumulate_grad_hook(self._complete) for p in distinct.values()]

    def _divide(self, parameters: List[nn.Parameter]) -> None:
        groups: List[List[nn.Parameter]] = []
        size = 0
        for p in parameters:
            limit = _FIRST_BUCKET_BYTES if len(groups) == 1 else _BUCKET_BYTES
            if not groups or p.dtype != groups[-1][0].dtype or p.device != groups[-1][0].device or size >= limit:
                groups.append([])
                size = 0
            groups[-1].append(p)
            size += p.numel() * p.element_size()
        self._buckets = []  # before the new ones are made: they may be large
        self._bucket_of = {}
        self._buckets = [_Bucket(group, self._collectives.device) for group in groups]
        self._bucket_of = {id(p): b for b in self._buckets for p in b.parameters}

    def _divide_anew(self) -> None:
        """Divides the parameters in the order on which the ranks have agreed; those without a place there are the last."""
        self._divided_anew = True
        place = {id(p): at for p, at in zip(self._parameters, self._places)}
        before = [p for b in self._buckets for p in b.parameters]
        after = sorted(before, key=lambda p: place[id(p)] or float("inf"))
        if any(p is not q for p, q in zip(before, after)):
            self._divide(after)

    def _complete(self, parameter: Tensor) -> None:
        """The gradient of a parameter is complete, unless another pass adds to it."""
        if not self._listening:
            return
        self._order.setdefault(id(parameter))
        self._bucket_of[id(parameter)].incomplete.discard(id(parameter))
        while self._sent < len(self._buckets) and not self._buckets[self._sent].incomplete:
            self._send_next()

    def _send_next(self) -> None:
        bucket = self._buckets[self._sent]
        self._sent += 1
        bucket.copy_gradients()
        self._collectives.begin(bucket.flat)
