"""A small network with all that a state must carry, on a dataset that is augmented at random.

Its weights are tied, a mask of its attention is infinite, a counter needs more bits than float32
has, one parameter has no gradient, and each generator that Python programs draw from changes
every item. The saved model is the same whoever computed it.
"""

import random

import numpy
import torch
from torch import nn

import elastic_training.torch as elastic

RECORDS = 120


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embedding.weight
        self.unused = nn.Parameter(torch.ones(3))
        self.dropout = nn.Dropout(0.1)
        self.register_buffer("mask", torch.full((4, 4), float("-inf")).triu(1))
        self.register_buffer("count", torch.tensor(123456789))

    def forward(self, tokens):
        x = self.norm(self.embedding(tokens))
        x = torch.softmax(x @ x.transpose(1, 2) + self.mask, dim=-1) @ x
        return self.head(self.dropout(x)).transpose(1, 2)


class Shifted:
    """Sequences that count upwards, each shifted, begun and stretched at random."""

    def __len__(self):
        return RECORDS

    def __getitem__(self, i):
        if i >= RECORDS:
            raise IndexError(i)
        begin = i + random.randrange(3) + int(numpy.random.randint(3))
        pace = 1 + int(torch.randint(2, ()))
        tokens = (begin + pace * torch.arange(5)) % 11
        return tokens[:-1], tokens[1:]


if __name__ == "__main__":
    elastic.run(
        model=Net,
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1),
        loss=nn.functional.cross_entropy,
        dataset=Shifted(),
        validation=Shifted(),
    )
