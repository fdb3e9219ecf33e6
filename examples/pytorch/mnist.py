"""The tutorial's network in PyTorch, computed by elastic workers.

    elastic-trainer train --worker-command python3 --model-file examples/pytorch/mnist.py \\
        --train-data-dir 'synthetic://digits?records=10000&seed=1' --output out --num-worker 2

It reads synthetic digits and MNIST's IDX files, whose records are 28 x 28 pixels and a label.
"""

import torch
from torch import nn

import elastic_training.torch as elastic


class Net(nn.Module):
    """Two convolutions (28 -> 26 -> 24), batch normalization, pooling (12), dropout, ten logits."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, kernel_size=3)
        self.conv2 = nn.Conv2d(32, 64, kernel_size=3)
        self.norm = nn.BatchNorm2d(64)
        self.dropout = nn.Dropout(0.25)
        self.dense = nn.Linear(64 * 12 * 12, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.conv1(images))
        x = self.norm(torch.relu(self.conv2(x)))
        x = self.dropout(nn.functional.max_pool2d(x, 2))
        return self.dense(x.flatten(1))


def decode(record: memoryview):
    """A record's image, with one channel and pixels from 0 to 1, and its class."""
    pixels = torch.frombuffer(bytearray(record[:-1]), dtype=torch.uint8)
    return pixels.reshape(1, 28, 28).float() / 255, record[-1]


if __name__ == "__main__":
    elastic.run(
        model=Net,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        loss=nn.functional.cross_entropy,
        decode=decode,
        metrics={"accuracy": elastic.accuracy},
    )
