# Trains with two ranks, with the script's own collectives in a job, or with DistributedDataParallel as under torchrun.
# Each rank appends its steps to BENCH_LOG: number, rank, process, time at which the step was done, time in the commit.
# DistributedDataParallel writes a checkpoint every 50 steps to BENCH_CHECKPOINT, and continues from it.
# BENCH_NETWORK is small (the tutorial's network) or large (100 M parameters).
import os
import sys
import time

import torch
from torch import distributed, nn

torch.set_num_threads(1)
name = os.environ["BENCH_NETWORK"]
LARGE = "large"
MINIBATCH, RANKS = 64, 2


def network():
    torch.manual_seed(0)
    if name == LARGE:
        return nn.Sequential(*[nn.Linear(5000, 5000, bias=False) for _ in range(4)], nn.Linear(5000, 10))
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.BatchNorm2d(64), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(9216, 10),
    )  # fmt: skip


class Records(torch.utils.data.Dataset):
    x = torch.rand((64, 5000) if name == LARGE else (64, 1, 28, 28))

    def __len__(self):
        return int(os.environ["BENCH_RECORDS"])

    def __getitem__(self, i):
        return self.x[i % 64], i % 10


def note(step, rank, commit=0.0):
    with open(os.environ["BENCH_LOG"], "a") as log:
        log.write("%d %d %d %.6f %.6f\n" % (step, rank, os.getpid(), time.time(), commit))


def collectives():
    import elastic_training.torch as elastic

    job = elastic.init(records=len(Records()))
    model = job.prepare(network())
    optimizer = job.prepare(torch.optim.SGD(model.parameters(), lr=0.01))
    loss, records, spent = nn.CrossEntropyLoss(), Records(), [0.0]
    commit = job._side.commit

    def timed(*args):
        begin = time.time()
        commit(*args)
        spent[0] = time.time() - begin

    job._side.commit = timed
    for step in job.steps():
        with step:
            for x, y in step.batches(records):
                step.backward(loss(model(x), y))
            step.reduce()
            optimizer.step()
            note(step.number, job.rank, spent[0])


def ddp():
    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    model = nn.parallel.DistributedDataParallel(network())
    optimizer, loss, records = torch.optim.SGD(model.parameters(), lr=0.01), nn.CrossEntropyLoss(), Records()
    path, begin = os.environ["BENCH_CHECKPOINT"], 0
    if os.path.exists(path):
        state = torch.load(path)
        model.module.load_state_dict(state["model"])
        begin = state["step"]
    for step in range(begin, len(records) // (MINIBATCH * RANKS)):
        mine = torch.arange(step * MINIBATCH * RANKS, (step + 1) * MINIBATCH * RANKS).chunk(world)[rank].tolist()
        x, y = torch.utils.data.default_collate([records[i] for i in mine])
        optimizer.zero_grad(set_to_none=True)
        loss(model(x), y).backward()
        optimizer.step()
        note(step, rank)
        if (step + 1) % 50 == 0 and rank == 0:
            torch.save({"model": model.module.state_dict(), "step": step + 1}, path + ".tmp")
            os.replace(path + ".tmp", path)


if "ELASTIC_SOCKET" in os.environ:
    collectives()
else:
    ddp()
sys.exit(0)
