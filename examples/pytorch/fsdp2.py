"""FSDP2 (fully_shard) with distributed checkpoints, stopped and started again: workers.elastic = "restart".

Each rank has a part of the parameters and of the optimizer's state, and writes its part of a checkpoint. Any number of ranks
reads one. It needs PyTorch 2.6 or later. On one machine: torchrun --nproc_per_node=2 fsdp2.py --directory /tmp/fsdp2
"""

import argparse
import glob
import os
import shutil
import signal
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

parser = argparse.ArgumentParser()
parser.add_argument("--directory", required=True)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--every", type=int, default=20, help="steps between two checkpoints")
parser.add_argument("--pace", type=float, default=0, help="seconds that a step lasts longer, to watch it")
args = parser.parse_args()

stopping = False


def stop(*_):
    global stopping
    stopping = True


signal.signal(signal.SIGTERM, stop)
kind = "cuda" if torch.cuda.is_available() else "cpu"
if kind == "cuda":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl" if kind == "cuda" else "gloo")
rank, world = dist.get_rank(), dist.get_world_size()

torch.manual_seed(1)
x = torch.randn(960, 8)
y = x @ torch.arange(8.0).unsqueeze(1)
model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1)).to(kind)
mesh = init_device_mesh(kind, (world,))
for layer in (model[0], model[2], model):
    fully_shard(layer, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

step, steps_per_epoch, batch = 0, len(x) // 48, 48 // world  # a step has 48 records with 1, 2, 3 or 4 ranks
complete = sorted(glob.glob(os.path.join(args.directory, "step-??????")))
if complete:
    weights, moments = get_state_dict(model, optimizer)
    dcp.load({"model": weights, "optimizer": moments}, checkpoint_id=complete[-1])
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    step = int(complete[-1][-6:])
if rank == 0:
    print("continues at step %d on %d ranks" % (step, world), flush=True)


def save():
    path = os.path.join(args.directory, "step-%06d" % step)
    weights, moments = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=path + ".new")  # each rank writes its part
    dist.barrier()
    if rank == 0 and not os.path.exists(path):
        os.replace(path + ".new", path)  # the directory has this name when it is complete
        for older in sorted(glob.glob(os.path.join(args.directory, "step-??????")))[:-2]:
            shutil.rmtree(older)


def all_agree_to_stop():
    asked = torch.tensor([float(stopping)], device=kind)
    dist.all_reduce(asked)
    return asked.item() > 0


while step < args.epochs * steps_per_epoch:
    # Each epoch has an order that depends on the epoch alone, and each step a part of it, which the ranks divide.
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(step // steps_per_epoch))
    mine = order[step % steps_per_epoch * 48 :][rank * batch : (rank + 1) * batch]
    loss = nn.functional.mse_loss(model(x[mine].to(kind)), y[mine].to(kind))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    time.sleep(args.pace)
    stops = all_agree_to_stop()
    if stops or step % args.every == 0:
        save()
    if stops and step < args.epochs * steps_per_epoch:
        sys.exit(143)

save()
if rank == 0:
    print("done after step %d, loss %.3g" % (step, loss.item()), flush=True)
dist.destroy_process_group()
