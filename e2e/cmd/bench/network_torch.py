# One training step of a network in PyTorch on one thread; prints records per CPU-second (of the fastest tenth of the
# steps).
# Arguments: the network (mnist or cifar10), records of a minibatch, seconds.
import statistics
import sys
import time

import torch
from torch import nn

name, records, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
torch.set_num_threads(1)
torch.set_num_interop_threads(1)
torch.manual_seed(0)


def mnist():
    return (1, 28, 28), [
        nn.Conv2d(1, 32, 3), nn.ReLU(),
        nn.Conv2d(32, 64, 3), nn.ReLU(),
        nn.BatchNorm2d(64, eps=1e-3, momentum=0.01),
        nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 10),
    ]


def cifar10():
    layers, channels = [], 3
    for filters, rate in [(32, 0.2), (64, 0.3), (128, 0.4)]:
        for _ in range(2):
            layers += [nn.Conv2d(channels, filters, 3, padding=1), nn.BatchNorm2d(filters, eps=1e-6, momentum=0.1), nn.ReLU()]
            channels = filters
        layers += [nn.MaxPool2d(2), nn.Dropout(rate)]
    return (3, 32, 32), layers + [nn.Flatten(), nn.Linear(2048, 10)]


shape, layers = {"mnist": mnist, "cifar10": cifar10}[name]()
network = nn.Sequential(*layers)
network.train()
images, labels = torch.rand(records, *shape), torch.randint(0, 10, (records,))
optimizer, loss = torch.optim.SGD(network.parameters(), lr=0.01), nn.CrossEntropyLoss()


def step():
    optimizer.zero_grad()
    loss(network(images), labels).backward()
    optimizer.step()


for _ in range(4):
    step()
times = []
end = time.time() + seconds
while time.time() < end or len(times) < 10:
    before = time.process_time()
    step()
    times.append(time.process_time() - before)
print(records / statistics.quantiles(times, n=10)[0])
