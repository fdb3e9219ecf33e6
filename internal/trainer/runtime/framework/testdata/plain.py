"""The loop of collective.py without elastic-trainer's side of it: one process, one minibatch after the other.

It reads the records of each virtual worker of each step from PLAIN_SCHEDULE, and writes what collective.py writes.
"""

import json
import os
import random

import torch
from collective_model import Records, loss_of, make
from torch.utils.data.dataloader import default_collate

from elastic_training import mix

SEED = 7


def seed(value):
    torch.manual_seed(value)
    random.seed(value)


torch.set_num_threads(1)
with open(os.environ["PLAIN_SCHEDULE"]) as f:
    schedule = json.load(f)
seed(SEED)
net, tally, optimizer, sgd, scheduler = make(len(schedule))
dataset, log = Records(), []

for number, minibatches in enumerate(schedule):
    optimizer.zero_grad(set_to_none=True)
    sgd.zero_grad(set_to_none=True)
    records = sum(len(minibatch) for minibatch in minibatches)
    before = {name: b.clone() for name, b in net.named_buffers()}
    after = []
    total = 0.0
    for virtual_worker, minibatch in enumerate(minibatches):
        for name, b in net.named_buffers():
            b.copy_(before[name])
        seed(mix(SEED, number, virtual_worker))
        x, y, indices = default_collate([dataset[i] for i in minibatch])
        loss = loss_of(net, tally, x, y, indices)
        (loss * len(minibatch) / records).backward()
        total += loss.item() * len(minibatch) / records
        after.append({name: b.clone() for name, b in net.named_buffers()})
    for name, b in net.named_buffers():
        b.copy_(torch.stack([a[name] for a in after]).mean(0) if b.is_floating_point() else after[0][name])
    seed(mix(SEED, number))
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    sgd.step()
    scheduler.step()
    log.append({"step": number, "loss": total, "rank": 0, "ranks": 1})

with open(os.environ["COLLECTIVE_LOG"], "w") as f:
    f.writelines(json.dumps(line) + "\n" for line in log)
state = {**net.state_dict(), "tally": tally.counts.detach()}
with open(os.environ["COLLECTIVE_RESULT"], "w") as result:
    json.dump({name: t.double().reshape(-1).tolist() for name, t in state.items()}, result)
