# One training step of the tutorial's network in PyTorch on one thread; prints records per CPU-second (of the
# fastest tenth of the steps).
# Arguments: records of a minibatch, seconds.
import statistics
import sys
import time

import torch
from torch import nn

records, seconds = int(sys.argv[1]), float(sys.argv[2])
torch.set_num_threads(1)
torch.set_num_interop_threads(1)
torch.manual_seed(0)
network = nn.Sequential(
    nn.Conv2d(1, 32, 3), nn.ReLU(),
    nn.Conv2d(32, 64, 3), nn.ReLU(),
    nn.BatchNorm2d(64, eps=1e-3, momentum=0.01),
    nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 10),
)
network.train()
images, labels = torch.rand(records, 1, 28, 28), torch.randint(0, 10, (records,))
optimizer, loss = torch.optim.SGD(network.parameters(), lr=0.01), nn.CrossEntropyLoss()


def step():
    optimizer.zero_grad()
    loss(network(images), labels).backward()
    optimizer.step()


for _ in range(4):
    step()
times = []
end = time.time() + seconds
while time.time() < end:
    before = time.process_time()
    step()
    times.append(time.process_time() - before)
print(records / statistics.quantiles(times, n=10)[0])
