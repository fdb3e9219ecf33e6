"""The model and the records of collective.py and plain.py: every kind of state that training has."""

import torch
from torch import nn

RECORDS = 96


class Records(torch.utils.data.Dataset):
    """Numbers with augmentation; the last of each record is its index."""

    def __len__(self):
        return RECORDS

    def __getitem__(self, i):
        x = torch.randn(8, generator=torch.Generator().manual_seed(i))
        return x + 0.01 * torch.randn(8), torch.tensor(i % 3), torch.tensor(i)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        # No bias, which the normalization takes away: its gradient would be rounding errors, which AdamW makes steps of.
        self.first = nn.Linear(8, 16, bias=False)
        self.norm = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(0.2)
        self.tied = nn.Linear(16, 16, bias=False)
        self.again = nn.Linear(16, 16, bias=False)
        self.again.weight = self.tied.weight
        self.frozen = nn.Linear(16, 16)
        for p in self.frozen.parameters():
            p.requires_grad_(False)
        self.head = nn.Linear(16, 3)
        self.unused = nn.Parameter(torch.ones(3))
        self.register_buffer("number", torch.tensor(123456789012345))
        self.register_buffer("mask", torch.tensor([True, False]))

    def forward(self, x):
        x = self.drop(torch.relu(self.norm(self.first(x))))
        return self.head(self.again(self.frozen(self.tied(x))))


class Tally(nn.Module):
    """Counts records in the state: with SGD at a rate of 1, each use takes 1 divided by the step's records off a number."""

    def __init__(self):
        super().__init__()
        self.counts = nn.Parameter(torch.zeros(RECORDS))

    def forward(self, indices):
        mean = self.counts[indices].mean()
        return mean - mean.detach()  # 0, with a gradient


def make(job_steps):
    """The modules, their optimizers and the scheduler."""
    net, tally = Net(), Tally()
    optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=3e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=job_steps)
    return net, tally, optimizer, torch.optim.SGD(tally.parameters(), lr=1.0), scheduler


def loss_of(net, tally, x, y, indices):
    with torch.autocast("cpu", torch.bfloat16):
        loss = nn.functional.cross_entropy(net(x), y)
    return loss + tally(indices)
