"""A loop with collectives of its own, for tests.

Each rank appends a line to COLLECTIVE_LOG for each step that counts. At the end rank 0 writes the state to
COLLECTIVE_RESULT.
"""

import json
import os
import time

import torch
from collective_model import RECORDS, Records, loss_of, make

import elastic_training.torch as elastic

PACE = float(os.environ.get("COLLECTIVE_PACE", "0"))  # seconds for each minibatch

torch.set_num_threads(1)
job = elastic.init(records=RECORDS, minibatch_size=8, grads_to_wait=4, epochs=4, seed=7)
net, tally, optimizer, sgd, scheduler = (job.prepare(part) for part in make(job.total_steps))
dataset = Records()

for step in job.steps():
    with step:
        if step.number % 3 == 0:  # also while workers are lost
            means = step.evaluate(dataset, lambda batch: {"index": batch[2].sum(), "loss": loss_of(net, tally, *batch) * len(batch[0])})
            assert means["index"] == (RECORDS - 1) / 2, means
        for x, y, indices in step.batches(dataset):
            step.backward(loss_of(net, tally, x, y, indices))
            time.sleep(PACE)
        loss = step.reduce()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        sgd.step()
        scheduler.step()
        with open(os.environ["COLLECTIVE_LOG"], "a") as log:
            log.write(json.dumps({"step": step.number, "loss": loss, "rank": job.rank, "ranks": job.world_size}) + "\n")

if job.rank == 0:
    state = {**net.state_dict(), "tally": tally.counts.detach()}
    with open(os.environ["COLLECTIVE_RESULT"], "w") as result:
        json.dump({name: t.double().reshape(-1).tolist() for name, t in state.items()}, result)
