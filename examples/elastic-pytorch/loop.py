"""A PyTorch loop with collectives of its own that also counts, in its state, how often each record was used.

At the end rank 0 writes the counts and the weights to the file RESULT.
"""

import json
import os
import time

import torch
from torch import nn

import elastic_training.torch as elastic

RECORDS, STEP = 320, 32  # of an epoch, of a step
PACE = float(os.environ.get("PACE", "0"))  # seconds that a minibatch lasts longer, to watch it

generator = torch.Generator().manual_seed(1)
inputs = torch.randn(RECORDS, 8, generator=generator)
targets = inputs @ torch.arange(8.0).unsqueeze(1)
dataset = [(inputs[i], targets[i], i) for i in range(RECORDS)]

job = elastic.init(records=RECORDS, minibatch_size=8, grads_to_wait=4)
model = job.prepare(nn.Linear(8, 1).to(job.device))
# Each use of a record takes 1 divided by the records of a step off its number, which no rounding changes.
uses = job.prepare(nn.ParameterList([nn.Parameter(torch.zeros(RECORDS, device=job.device))]))
optimizer = job.prepare(torch.optim.SGD([{"params": model.parameters(), "lr": 0.05}, {"params": uses.parameters(), "lr": 1.0}], lr=1.0))

for step in job.steps():
    with step:
        for x, y, indices in step.batches(dataset):
            used = uses[0][indices].mean()
            step.backward(nn.functional.mse_loss(model(x), y) + used - used.detach())
            time.sleep(PACE)
        loss = step.reduce()
        optimizer.step()
        if job.is_main and step.number % 20 == 0:
            print("step %d of %d, loss %.3f, %d ranks" % (step.number, job.total_steps, loss, job.world_size))

if job.is_main:
    result = {"uses": (uses[0] * -STEP).tolist(), "weights": model.weight.reshape(-1).tolist()}
    with open(os.environ["RESULT"], "w") as f:
        json.dump(result, f)
