"""Stands in for Hugging Face transformers where it is not installed: the calls of examples/pytorch/huggingface.py."""

import glob
import json
import os
import shutil
from collections import namedtuple

import ranks
import torch

TrainOutput = namedtuple("TrainOutput", ["global_step", "training_loss", "metrics"])


class TrainingArguments:
    def __init__(
        self, output_dir, num_train_epochs, per_device_train_batch_size, learning_rate, save_steps, save_total_limit, report_to,
        use_cpu, ddp_backend,
    ):  # fmt: skip
        self.__dict__.update(locals())
        self.rank, self.world = ranks.join()


class Trainer:
    def __init__(self, model, args, train_dataset):
        self.args, self.train_dataset, self.model = args, train_dataset, ranks.parallel(model)

    def is_world_process_zero(self):
        return self.args.rank == 0

    def train(self, resume_from_checkpoint=None):
        a, step = self.args, 0
        optimizer = torch.optim.SGD(self.model.parameters(), lr=a.learning_rate)
        per_epoch = len(self.train_dataset) // (a.per_device_train_batch_size * a.world)
        if resume_from_checkpoint:
            self.model.module.load_state_dict(torch.load(os.path.join(resume_from_checkpoint, "pytorch_model.bin")))
            with open(os.path.join(resume_from_checkpoint, "trainer_state.json")) as f:
                step = json.load(f)["global_step"]
        loss = torch.zeros(())
        while step < a.num_train_epochs * per_epoch:
            for batch in ranks.divided(
                self.train_dataset, a.per_device_train_batch_size, a.rank, a.world, step // per_epoch, step % per_epoch
            ):
                loss = self.model(**batch)["loss"]
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                step += 1
                if step % a.save_steps == 0 and a.rank == 0:
                    self._save(step)
        return TrainOutput(step, loss.item(), {})

    def _save(self, step):
        path = os.path.join(self.args.output_dir, "checkpoint-%d" % step)
        ranks.save(self.model.module.state_dict(), os.path.join(path, "pytorch_model.bin"))
        with open(os.path.join(path, "trainer_state.json"), "w") as f:
            json.dump({"global_step": step}, f)
        old = sorted(glob.glob(os.path.join(self.args.output_dir, "checkpoint-*")), key=lambda p: int(p.rsplit("-", 1)[1]))
        for path in old[: -self.args.save_total_limit]:
            shutil.rmtree(path)
