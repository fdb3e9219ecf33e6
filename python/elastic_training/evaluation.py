"""How scripts with collectives of their own evaluate; see :meth:`elastic_training.collectives.Step.evaluate`."""

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Union

import torch
from torch import Tensor, nn

from . import mix
from .data import Plan, Seeded, loader, plan_of, to_device


class Parts(NamedTuple):
    """A data set in minibatches."""

    dataset: Any
    size: int
    collate: Callable[[List[Any]], Any]
    num_workers: int
    device: torch.device
    seed: int

    def plan(self) -> Plan:
        records = range(len(self.dataset))
        minibatches = [list(records[at : at + self.size]) for at in range(0, len(records), self.size)]
        return plan_of((mix(self.seed, i) for i in range(len(minibatches))), minibatches)

    def read(self, plan: Plan) -> Iterator[Any]:
        dataset = Seeded(self.dataset)
        if self.num_workers == 0:
            return (self.collate([dataset[at] for at in minibatch]) for minibatch in plan)
        return iter(loader(dataset, plan, self.collate, min(self.num_workers, len(plan)), self.device))


def evaluate(
    models: Sequence[nn.Module],
    parts: Parts,
    measure: Callable[[Any], Mapping[str, Union[float, Tensor]]],
    rank: int = 0,
    world: int = 1,
    add: Callable[[Tensor], Tensor] = lambda sums: sums,
    check: Callable[[], None] = lambda: None,
) -> Dict[str, float]:
    """The means of what is measured. Each rank measures a part of the minibatches; ``add`` adds a tensor over the ranks."""
    plan = parts.plan()
    if not plan:
        raise ValueError("the data set for the evaluation is empty")
    share = plan[rank * len(plan) // world : (rank + 1) * len(plan) // world]
    measured: List[Mapping[str, Union[float, Tensor]]] = []
    with _evaluating(models), torch.no_grad():
        for batch in parts.read(share or plan[:1]):  # a rank without a share needs the names
            check()
            measured.append(measure(to_device(batch, parts.device)))
    names = sorted(measured[0])
    if any(sorted(m) != names for m in measured):
        raise ValueError("measure returned other names for another minibatch")
    sums = [sum(float(m[name]) for m in measured) if share else 0.0 for name in names]
    records = float(sum(len(minibatch) for minibatch in share))
    totals = add(torch.tensor([records] + sums, dtype=torch.float64)).tolist()
    if int(totals[0]) != len(parts.dataset):
        raise RuntimeError("the ranks measured %d records of %d" % (int(totals[0]), len(parts.dataset)))
    return dict(zip(names, (total / totals[0] for total in totals[1:])))


@contextlib.contextmanager
def _evaluating(models: Sequence[nn.Module]) -> Iterator[None]:
    """Sets evaluation mode, and afterwards each module's own mode again."""
    modes = [(module, module.training) for model in models for module in model.modules()]
    for model in models:
        model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
