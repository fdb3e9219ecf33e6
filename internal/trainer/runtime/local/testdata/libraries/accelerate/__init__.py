"""Stands in for Hugging Face Accelerate where it is not installed: the calls of examples/pytorch/accelerate_loop.py."""

import os

import ranks
import torch
import torch.distributed as dist


class InitProcessGroupKwargs:
    def __init__(self, backend):
        self.backend = backend


class Accelerator:
    def __init__(self, cpu, kwargs_handlers):
        self.process_index, self.num_processes = ranks.join()
        self.is_main_process = self.process_index == 0
        self._models, self._optimizers = [], []

    def prepare(self, model, optimizer, loader):
        self._models.append(ranks.parallel(model))
        self._optimizers.append(optimizer)
        return self._models[-1], optimizer, loader

    def backward(self, loss):
        loss.backward()

    def skip_first_batches(self, loader, n):
        return ranks.divided(loader.dataset, loader.batch_size, self.process_index, self.num_processes, torch.initial_seed(), n)

    def wait_for_everyone(self):
        dist.barrier()

    def save_state(self, path):
        if self.is_main_process:
            ranks.save([m.module.state_dict() for m in self._models], os.path.join(path, "model.bin"))
            ranks.save([o.state_dict() for o in self._optimizers], os.path.join(path, "optimizer.bin"))
        ranks.save(ranks.random_state(), os.path.join(path, "random_states_%d.pkl" % self.process_index))

    def load_state(self, path):
        for m, s in zip(self._models, torch.load(os.path.join(path, "model.bin"))):
            m.module.load_state_dict(s)
        for o, s in zip(self._optimizers, torch.load(os.path.join(path, "optimizer.bin"))):
            o.load_state_dict(s)

    def end_training(self):
        dist.destroy_process_group()
