"""Stands in for Lightning where it is not installed: the calls of examples/pytorch/lightning_loop.py."""

import os

import ranks
import torch


class LightningModule(torch.nn.Module):
    trainer = None

    @property
    def global_rank(self):
        return self.trainer.global_rank

    @property
    def global_step(self):
        return self.trainer.global_step

    def forward(self, batch, i):
        return self.training_step(batch, i)

    def on_train_start(self):
        pass


class Trainer:
    def __init__(self, num_nodes, devices, accelerator, strategy, max_epochs, callbacks, logger):
        assert strategy == "ddp" and accelerator == "auto" and logger is False
        self.max_epochs, (self.checkpoint,), self.global_step = max_epochs, callbacks, 0
        self.global_rank, self.world_size = ranks.join()
        if num_nodes * devices != self.world_size or devices != int(os.environ["LOCAL_WORLD_SIZE"]):
            raise RuntimeError("%d nodes of %d devices, and WORLD_SIZE is %d" % (num_nodes, devices, self.world_size))
        self.is_global_zero = self.global_rank == 0

    def fit(self, model, loader, ckpt_path):
        assert ckpt_path == "last"
        model.trainer, optimizer = self, model.configure_optimizers()
        last = os.path.join(self.checkpoint.dirpath, "last.ckpt")
        if os.path.exists(last):
            state = torch.load(last)
            model.load_state_dict(state["state_dict"])
            optimizer.load_state_dict(state["optimizer"])
            self.global_step = state["global_step"]
        wrapped = ranks.parallel(model)
        model.on_train_start()
        per_epoch = len(loader.dataset) // (loader.batch_size * self.world_size)
        while self.global_step < self.max_epochs * per_epoch:
            epoch, done = divmod(self.global_step, per_epoch)
            for i, batch in enumerate(
                ranks.divided(loader.dataset, loader.batch_size, self.global_rank, self.world_size, epoch, done)
            ):
                optimizer.zero_grad()
                wrapped(batch, i).backward()
                optimizer.step()
                self.global_step += 1
                if self.global_step % self.checkpoint.every_n_train_steps == 0 and self.is_global_zero:
                    state = {"state_dict": model.state_dict(), "optimizer": optimizer.state_dict(), "global_step": self.global_step}
                    ranks.save(state, last)
