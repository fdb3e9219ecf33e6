"""Lightning, stopped and started again: workers.elastic = "restart".

On one machine: torchrun --nproc_per_node=2 lightning_loop.py --directory /tmp/lightning
"""

import argparse
import os

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--directory", required=True)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--every", type=int, default=20, help="steps between two checkpoints")
args = parser.parse_args()

workers, processes = int(os.environ.get("GROUP_WORLD_SIZE", 1)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))


class Line(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(8, 1)

    def on_train_start(self):
        if self.global_rank == 0:
            print("continues at step %d on %d ranks" % (self.global_step, self.trainer.world_size), flush=True)

    def training_step(self, batch, _):
        inputs, targets = batch
        return nn.functional.mse_loss(self.line(inputs), targets)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


torch.manual_seed(1)
x = torch.randn(960, 8)
y = x @ torch.arange(8.0).unsqueeze(1)
loader = DataLoader(TensorDataset(x, y), batch_size=48 // (workers * processes), shuffle=True)  # 48 records in a step
trainer = lightning.Trainer(
    num_nodes=workers,
    devices=processes,
    accelerator="auto",
    strategy="ddp",
    max_epochs=args.epochs,
    callbacks=[ModelCheckpoint(dirpath=args.directory, every_n_train_steps=args.every, save_last=True)],
    logger=False,
)
trainer.fit(Line(), loader, ckpt_path="last")  # from the beginning if there is none
if trainer.is_global_zero:
    print("done after step %d" % trainer.global_step, flush=True)
