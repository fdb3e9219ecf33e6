"""Fine-tuning a model of Hugging Face transformers with its Trainer, stopped and started again: workers.elastic = "restart".

The model is a tiny BERT that is made on the spot, in place of AutoModelForSequenceClassification.from_pretrained(NAME), and the
texts are random. It needs transformers 5. On one machine: torchrun --nproc_per_node=2 finetune.py --directory /tmp/finetune
"""

import argparse
import glob
import os
import time

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments, set_seed

parser = argparse.ArgumentParser()
parser.add_argument("--directory", required=True)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--every", type=int, default=20, help="steps between two checkpoints")
parser.add_argument("--pace", type=float, default=0, help="seconds that a step lasts longer, to watch it")
args = parser.parse_args()


class Texts(torch.utils.data.Dataset):
    """Of eight words each: does word 1 occur more often than word 2?"""

    def __init__(self):
        self.words = torch.randint(1, 4, (960, 8), generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        words = self.words[i]
        return {"input_ids": words, "labels": ((words == 1).sum() > (words == 2).sum()).long()}


class Pace(TrainerCallback):
    def on_step_end(self, *_, **__):
        time.sleep(args.pace)


def newest():
    """The newest checkpoint that is complete: its trainer_state.json is written last. None without one."""
    complete = [os.path.dirname(f) for f in glob.glob(os.path.join(args.directory, "checkpoint-*", "trainer_state.json"))]
    return max(complete, key=lambda path: int(path.rsplit("-", 1)[1]), default=None)


set_seed(1)
gpu = torch.cuda.is_available()
if not gpu:  # transformers 5 calls the CPU cpu:0 when it reads a checkpoint on several workers, a name that torch does not know
    torch.serialization.register_package(5, lambda storage: None, lambda storage, location: storage if location == "cpu:0" else None)
ranks = int(os.environ.get("WORLD_SIZE", 1))
model = BertForSequenceClassification(
    BertConfig(vocab_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=8)
)
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=args.directory,
        num_train_epochs=args.epochs,
        per_device_train_batch_size=48 // ranks,  # a step has 48 records with any number of ranks
        learning_rate=1e-3,
        lr_scheduler_type="cosine",
        save_steps=args.every,
        save_total_limit=2,
        disable_tqdm=True,
        report_to=[],
        use_cpu=not gpu,  # without it, each process of a machine without GPUs would train alone
        ddp_backend="nccl" if gpu else "gloo",
    ),
    train_dataset=Texts(),
    callbacks=[Pace()],
)
checkpoint = newest()
if trainer.is_world_process_zero():
    print("continues from %s on %d ranks" % (checkpoint, ranks), flush=True)
result = trainer.train(resume_from_checkpoint=checkpoint)
if trainer.is_world_process_zero():
    print("done after step %d, loss %.3g" % (result.global_step, result.training_loss), flush=True)
