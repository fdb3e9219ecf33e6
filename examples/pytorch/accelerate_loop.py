"""A loop with Hugging Face Accelerate that is stopped and started again: workers.elastic = "restart".

On one machine: accelerate launch --num-processes 2 accelerate_loop.py --directory /tmp/accelerate
"""

import argparse
import glob
import os
import time

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--directory", required=True)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--every", type=int, default=20, help="steps between two checkpoints")
parser.add_argument("--pace", type=float, default=0, help="seconds that a step lasts longer, to watch it")
args = parser.parse_args()

gpu = torch.cuda.is_available()
# Without cpu=True, each process of a machine without GPUs would train alone.
accelerator = Accelerator(cpu=not gpu, kwargs_handlers=[InitProcessGroupKwargs(backend="nccl" if gpu else "gloo")])
torch.manual_seed(1)
x = torch.randn(960, 8)
y = x @ torch.arange(8.0).unsqueeze(1)
batch = 48 // accelerator.num_processes  # of each rank, so that a step has 48 records with any number of ranks
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(TensorDataset(x, y), batch_size=batch, shuffle=True))

step, steps_per_epoch = 0, 960 // 48
complete = sorted(glob.glob(os.path.join(args.directory, "step-??????")))
if complete:
    accelerator.load_state(complete[-1])
    step = int(complete[-1][-6:])
if accelerator.is_main_process:  # accelerator.print would print on each worker
    print("continues at step %d on %d ranks" % (step, accelerator.num_processes), flush=True)


def save():
    path = os.path.join(args.directory, "step-%06d" % step)
    accelerator.save_state(path + ".new")  # each rank writes its part
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        os.replace(path + ".new", path)  # the directory has this name when it is complete


while step < args.epochs * steps_per_epoch:
    # Another order in each epoch, and what is left of the epoch that was interrupted.
    torch.manual_seed(step // steps_per_epoch)
    batches = accelerator.skip_first_batches(loader, step % steps_per_epoch)
    for inputs, targets in batches:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        step += 1
        time.sleep(args.pace)
        if step % args.every == 0:
            save()
if accelerator.is_main_process:
    print("done after step %d, loss %.3g" % (step, loss.item()), flush=True)
accelerator.end_training()
