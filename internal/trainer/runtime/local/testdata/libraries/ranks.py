"""What the libraries have in common: the process group, as torchrun's environment describes it, and each rank's records."""

import os
import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def join():
    """Returns rank and world size."""
    for name in ("MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        os.environ[name]
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def parallel(model):
    return DistributedDataParallel(model)


def divided(loader_or_dataset, batch_size, rank, world, epoch=0, skip=0):
    """This rank's batches of an epoch, without the first ones."""
    sampler = DistributedSampler(loader_or_dataset, world, rank, shuffle=True)
    sampler.set_epoch(epoch)
    for i, batch in enumerate(DataLoader(loader_or_dataset, batch_size=batch_size, sampler=sampler)):
        if i >= skip:
            yield batch


def save(value, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.save(value, path + ".part")
    os.replace(path + ".part", path)


def random_state():
    return {"torch": torch.get_rng_state(), "python": random.getstate()}
