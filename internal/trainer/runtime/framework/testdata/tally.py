"""A loop with collectives of its own, in one file, that counts how often each record was used, in its state.

With SGD at a rate of 1 each use of a record takes 1 divided by the step's records off a number. At the end rank 0 writes
the counts to TALLY_RESULT.
"""

import json
import os
import time

import torch

import elastic_training.torch as elastic

RECORDS = 320


class Tally(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.counts = torch.nn.Parameter(torch.zeros(RECORDS))

    def forward(self, indices):
        return self.counts[indices].mean()


torch.set_num_threads(1)
records = range(RECORDS)
job = elastic.init(records=RECORDS)
tally = job.prepare(Tally())
optimizer = job.prepare(torch.optim.SGD(tally.parameters(), lr=1.0))

for step in job.steps():
    with step:
        for indices in step.batches(records, num_workers=int(os.environ.get("TALLY_READERS", "0"))):
            step.backward(tally(indices))
            time.sleep(float(os.environ["TALLY_PACE"]))
        step.reduce()
        optimizer.step()

if job.rank == 0:
    with open(os.environ["TALLY_RESULT"], "w") as result:
        json.dump(tally.counts.tolist(), result)
