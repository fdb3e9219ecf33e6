"""A PyTorch loop with collectives of its own, made elastic: workers.elastic = "collectives".

It runs on one machine as a plain process, too: python3 loop.py.
"""

import torch
from torch import nn

import elastic_training.torch as elastic


class Waves(torch.utils.data.Dataset):
    """Noisy waves of three frequencies, in place of your data set."""

    def __len__(self):
        return 6000

    def __getitem__(self, i):
        noise = torch.randn(64, generator=torch.Generator().manual_seed(i))
        return torch.sin(torch.arange(64.0) * (0.1 + 0.2 * (i % 3))) + 0.3 * noise, i % 3


dataset = Waves()
job = elastic.init(records=len(dataset), minibatch_size=50, grads_to_wait=4, epochs=3)

model = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 3))
model = job.prepare(model.to(job.device))
optimizer = job.prepare(torch.optim.AdamW(model.parameters(), lr=1e-3))
scheduler = job.prepare(torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=job.total_steps))

for step in job.steps():
    with step:  # repeated if a worker is lost during the step
        for inputs, targets in step.batches(dataset):
            step.backward(nn.functional.cross_entropy(model(inputs), targets))
        loss = step.reduce()  # adds the gradients of all ranks, and waits until the step is committed
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if job.rank == 0 and step.number % 20 == 0:
            print("step %d of %d, loss %.3f, %d ranks" % (step.number, job.total_steps, loss, job.world_size))
