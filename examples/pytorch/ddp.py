"""DistributedDataParallel as torchrun starts it: a script that knows nothing of elastic-trainer.

It continues from the newest checkpoint of a directory, writes one every few steps, and one more when it is asked to stop
(SIGTERM), after a step that all ranks have agreed on. On one machine:

    torchrun --nproc_per_node=2 ddp.py --directory /tmp/ddp
"""

import argparse
import json
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--directory", required=True)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--every", type=int, default=20, help="steps between two checkpoints")
parser.add_argument("--pace", type=float, default=0, help="seconds that a step lasts longer, to watch it")
parser.add_argument("--backend", default="nccl" if torch.cuda.is_available() else "gloo", help="gloo lets ranks share a GPU")
args = parser.parse_args()

stopping = False


def stop(*_):
    global stopping
    stopping = True


signal.signal(signal.SIGTERM, stop)
dist.init_process_group(args.backend)
rank, world = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")

torch.manual_seed(1)
x = torch.randn(960, 8)
y = x @ torch.arange(8.0).unsqueeze(1)
model = DistributedDataParallel(nn.Linear(8, 1).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
newest = os.path.join(args.directory, "checkpoint.pt")
epoch, position = 0, 0  # epochs, and records of this one, that all ranks have seen
if os.path.exists(newest):
    state = torch.load(newest, map_location=device)
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    epoch, position = state["epoch"], state["position"]
if rank == 0:
    os.makedirs(args.directory, exist_ok=True)
    start = {"ranks": world, "epoch": epoch, "position": position, "restarts": int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))}
    with open(os.path.join(args.directory, "starts.jsonl"), "a") as f:
        f.write(json.dumps(start) + "\n")


def save():
    if rank == 0:
        state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "position": position}
        torch.save(state, newest + ".new")
        os.replace(newest + ".new", newest)


def all_agree_to_stop():
    asked = torch.tensor([float(stopping)], device=device)
    dist.all_reduce(asked)
    return asked.item() > 0


for epoch in range(epoch, args.epochs):
    # What is left of the epoch, in an order that depends on the epoch alone, divided among the ranks that there are now.
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))[position:]
    left = TensorDataset(x[order], y[order])
    sampler = DistributedSampler(left, world, rank, shuffle=False)
    for step, (inputs, targets) in enumerate(DataLoader(left, batch_size=48 // world, sampler=sampler)):
        loss = nn.functional.mse_loss(model(inputs.to(device)), targets.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        position = min(position + 48 // world * world, len(x))
        time.sleep(args.pace)
        if all_agree_to_stop() and position < len(x):
            save()
            sys.exit(143)
        if step % args.every == args.every - 1:
            save()
    position = 0

epoch += 1
save()
if rank == 0:
    print("loss %.3g after %d epochs" % (loss.item(), epoch))
dist.destroy_process_group()
