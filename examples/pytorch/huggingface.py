"""The Trainer of Hugging Face transformers, stopped and started again: workers.elastic = "restart".

On one machine: torchrun --nproc_per_node=2 huggingface.py --directory /tmp/huggingface
"""

import argparse
import glob
import os

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--directory", required=True)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--every", type=int, default=20, help="steps between two checkpoints")
args = parser.parse_args()


class Records(torch.utils.data.Dataset):
    def __init__(self):
        self.x = torch.randn(960, 8, generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"inputs": self.x[i], "labels": self.x[i] @ torch.arange(8.0)}


class Line(nn.Module):
    """In place of AutoModel.from_pretrained(...)."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(8, 1)

    def forward(self, inputs, labels):
        outputs = self.line(inputs).squeeze(1)
        return {"loss": nn.functional.mse_loss(outputs, labels), "logits": outputs}


def newest():
    """The newest checkpoint that is complete: its trainer_state.json is written last. None without one."""
    complete = [os.path.dirname(f) for f in glob.glob(os.path.join(args.directory, "checkpoint-*", "trainer_state.json"))]
    return max(complete, key=lambda path: int(path.rsplit("-", 1)[1]), default=None)


torch.manual_seed(1)
gpu = torch.cuda.is_available()
if not gpu:  # transformers 5 calls the CPU cpu:0 when it reads a checkpoint on several workers, a name that torch does not know
    torch.serialization.register_package(5, lambda storage: None, lambda storage, location: storage if location == "cpu:0" else None)
ranks = int(os.environ.get("WORLD_SIZE", 1))
trainer = Trainer(
    model=Line(),
    args=TrainingArguments(
        output_dir=args.directory,
        num_train_epochs=args.epochs,
        per_device_train_batch_size=48 // ranks,  # a step has 48 records with any number of ranks
        learning_rate=0.05,
        save_steps=args.every,
        save_total_limit=2,
        report_to=[],
        use_cpu=not gpu,  # without it, each process of a machine without GPUs would train alone
        ddp_backend="nccl" if gpu else "gloo",
    ),
    train_dataset=Records(),
)
checkpoint = newest()
if trainer.is_world_process_zero():
    print("continues from %s on %d ranks" % (checkpoint, ranks), flush=True)
result = trainer.train(resume_from_checkpoint=checkpoint)
if trainer.is_world_process_zero():
    print("done after step %d" % result.global_step, flush=True)
