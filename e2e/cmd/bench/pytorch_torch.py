# Trains with two ranks, with the script's own collectives in a job, or with DistributedDataParallel as under torchrun.
# Each rank appends its steps to BENCH_LOG: number, rank, process, time at which the step was done, time in the commit.
# DistributedDataParallel writes a checkpoint every 50 steps to BENCH_CHECKPOINT, and continues from it.
# BENCH_NETWORK is small, 20M or 100M.
import os
import sys
import time

import torch
from torch import distributed, nn

torch.set_num_threads(1)
MINIBATCH, RANKS = 64, 2
WIDTHS = {"small": [784, 512, 512, 10], "20M": [2000] * 6 + [10], "100M": [5000] * 5 + [10]}[os.environ["BENCH_NETWORK"]]


def network():
    torch.manual_seed(0)
    layers = [layer for n, m in zip(WIDTHS, WIDTHS[1:]) for layer in (nn.Linear(n, m), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


class Records(torch.utils.data.Dataset):
    x = torch.rand(64, WIDTHS[0])

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
