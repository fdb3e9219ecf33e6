"""A loop with collectives of its own on the device of LOOP_DEVICE, by the backend of LOOP_BACKEND, for tests.

It computes in float64, in which a GPU and a CPU round alike. It logs as collective.py does.
"""

import json
import os
import time

import torch
from torch import nn

import elastic_training.torch as elastic

RECORDS = 96

torch.set_num_threads(1)
job = elastic.init(records=RECORDS, device=torch.device(os.environ["LOOP_DEVICE"]), backend=os.environ["LOOP_BACKEND"])
net = nn.Sequential(nn.Linear(8, 64, bias=False), nn.BatchNorm1d(64), nn.Tanh(), nn.Linear(64, 3))
net = job.prepare(net.double().to(job.device))
tally = job.prepare(nn.Embedding(RECORDS, 1).double().to(job.device))  # counts how often each record was used
nn.init.zeros_(tally.weight)
optimizer = job.prepare(torch.optim.AdamW(net.parameters(), lr=3e-3))
sgd = job.prepare(torch.optim.SGD(tally.parameters(), lr=1.0))
inputs = torch.randn(RECORDS, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
dataset = [(x, torch.tensor(i % 3), torch.tensor(i)) for i, x in enumerate(inputs)]

for step in job.steps():
    with step:
        for x, y, indices in step.batches(dataset):
            used = tally(indices).mean()
            step.backward(nn.functional.cross_entropy(net(x), y) + used - used.detach())
            time.sleep(float(os.environ["LOOP_PACE"]))
        loss = step.reduce()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        sgd.step()
        with open(os.environ["COLLECTIVE_LOG"], "a") as log:
            log.write(json.dumps({"step": step.number, "loss": loss, "rank": job.rank, "ranks": job.world_size}) + "\n")

if job.is_main:
    state = {**net.state_dict(), "tally": tally.weight.detach()}
    with open(os.environ["COLLECTIVE_RESULT"], "w") as result:
        json.dump({name: t.double().reshape(-1).tolist() for name, t in state.items()}, result)
