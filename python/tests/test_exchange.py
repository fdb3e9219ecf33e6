"""Gradients that are added while the backward pass still runs: the same as those that are added after it."""

import contextlib
import copy
import io
import json
import multiprocessing
import os
import signal
import socket
import tempfile
import unittest
import unittest.mock

try:
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    from elastic_training import collectives, exchange

    class Net(nn.Module):
        """Parameters that are shared, frozen, never used, used by some minibatches, or in a nested backward pass."""

        def __init__(self, dtype):
            super().__init__()
            self.first = nn.Linear(8, 16)
            self.norm = nn.BatchNorm1d(16)
            self.drop = nn.Dropout(0.2)
            self.tied = nn.Linear(16, 16, bias=False)
            self.again = nn.Linear(16, 16, bias=False)
            self.again.weight = self.tied.weight
            self.frozen = nn.Linear(16, 16)
            self.later = nn.Linear(16, 16)
            for p in [*self.frozen.parameters(), *self.later.parameters()]:
                p.requires_grad_(False)
            self.unused = nn.Linear(16, 16)
            self.sometimes = nn.Linear(16, 16)
            self.nested = nn.Linear(16, 16)
            self.last = nn.Linear(16, 16).to(dtype)
            self.head = nn.Linear(16, 1)
            self.register_buffer("flag", torch.tensor([True, False]))

        def forward(self, x):
            sometimes = x[0, 0] > 0
            x = self.drop(torch.relu(self.norm(self.first(x))))
            x = self.later(self.again(self.frozen(self.tied(x))))
            if sometimes:
                x = torch.relu(self.sometimes(x))
            for _ in range(2):  # adds twice to the same gradient
                x = checkpoint(self.nested, x, use_reentrant=True)
            return self.head(self.last(x.to(self.last.weight.dtype)).float())

    class Records(torch.utils.data.Dataset):
        def __getitem__(self, i):
            return torch.randn(8, generator=torch.Generator().manual_seed(i)) + 0.01 * torch.randn(8)

        def __len__(self):
            return RECORDS

except ImportError:
    torch = None

STEPS, VIRTUAL, MINIBATCH = 5, 3, 4
RECORDS = STEPS * VIRTUAL * MINIBATCH
#: The virtual workers of two ranks in each step.
SHARES = [([0, 1], [2]), ([0], [1, 2]), ([0, 1, 2], []), ([], [0, 1, 2]), ([0, 1], [2])]


def rank(path, result, kind, hooks, victim):
    """A rank of a job. Its script writes what has become of the state to a file."""
    torch.set_num_threads(1)
    exchange.HOOKS = exchange.HOOKS and hooks
    exchange._FIRST_BUCKET_BYTES, exchange._BUCKET_BYTES = 100, 1000
    os.environ["ELASTIC_SOCKET"] = path
    job = collectives.init()
    net, early, losses = job.prepare(Net(torch.bfloat16 if kind == "bfloat16" else torch.float32)), [], []
    model = net
    if kind == "compiled":
        net = job.prepare(nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(4)]))
        model = torch.compile(net, backend="aot_eager")
    optimizer = job.prepare(torch.optim.SGD([p for p in net.parameters()], lr=0.1, momentum=0.9))
    next(net.parameters()).register_hook(lambda _: early.append(len(job._side._begun)))  # the last gradient of a pass
    records = Records()
    for step in job.steps():
        with step:
            if step.number == 2 and kind != "compiled":
                net.later.requires_grad_(True)
            if victim is not None and step.number == 1:
                disturb(job._side, victim)
            for x in step.batches(records, read_ahead=hooks):
                if kind == "changed":
                    (net.first.weight**2).mean().backward()
                with torch.autocast("cpu", torch.bfloat16, enabled=kind == "bfloat16"):
                    loss = (model(x) ** 2).mean()
                step.backward(loss)
                if kind == "changed":
                    (net.first.weight**2).mean().backward()
            if kind == "changed":
                with torch.no_grad():
                    for p in net.last.parameters():
                        if p.grad is not None:
                            p.grad.mul_(0.5)
                net.head.bias.grad = None
            if victim == "wait":
                side = job._side
                with side._guard:
                    side._guard.wait_for(lambda: side._aborted >= 1)
            losses.append(step.reduce())
            optimizer.step()
            copy.deepcopy(net)
            torch.save(net, io.BytesIO())
    torch.save({"state": net.state_dict(), "momentum": optimizer.state_dict(), "early": early, "losses": losses}, result)


def disturb(side, victim):
    """Ends or stops this process when its first all-reduce of the step has begun."""
    begin = side._begin_adding

    def begin_and_end(value):
        begin(value)
        side._tell(kind="begun")
        os.kill(os.getpid(), getattr(signal, victim))

    if victim.startswith("SIG"):
        side.exchange._collectives = side.exchange._collectives._replace(begin=begin_and_end)


class Rank:
    """A process of a script, opposite a test that speaks as its worker does."""

    def __init__(self, test, kind, hooks=True, victim=None):
        directory = tempfile.TemporaryDirectory()
        test.addCleanup(directory.cleanup)
        self.result = os.path.join(directory.name, "result")
        path = os.path.join(directory.name, "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.settimeout(120)
            listener.bind(path)
            listener.listen()
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(["torch._dynamo", "elastic_training.collectives"])  # once for all
            self.process = context.Process(target=rank, args=(path, self.result, kind, hooks, victim))
            self.process.start()
            test.addCleanup(self.process.join)
            test.addCleanup(self.process.kill)
            self._connection, _ = listener.accept()
        test.addCleanup(self._connection.close)
        self._connection.settimeout(120)
        self._lines = self._connection.makefile("r", encoding="utf-8")
        test.addCleanup(self._lines.close)
        self.tell(
            host="127.0.0.1", checkpoints=os.path.join(directory.name, "checkpoints"), seed=7, steps=STEPS,
            steps_per_epoch=STEPS, records=RECORDS, minibatch_size=MINIBATCH, records_per_task=RECORDS,
        )  # fmt: skip
        self.store = self.report("ready")["store"]

    def tell(self, **message):
        self._connection.sendall((json.dumps(message) + "\n").encode())

    def report(self, kind):
        report = json.loads(self._lines.readline() or '{"kind": "end"}')
        if report["kind"] != kind:
            raise AssertionError("the rank reports %s instead of %s" % (report, kind))
        return report


def begin(ranks, generation, step, broadcast=False):
    for i, r in enumerate(ranks):
        r.tell(
            kind="begin", generation=generation, rank=i, world=len(ranks), store=ranks[0].store, step=step, source=0,
            broadcast=broadcast,
        )  # fmt: skip


def work(ranks, generation, step):
    shares = SHARES[step] if len(ranks) == 2 else [range(VIRTUAL)]
    first = step * VIRTUAL * MINIBATCH
    # The last minibatch of a step is a small one.
    sizes = [MINIBATCH - (v == VIRTUAL - 1) for v in range(VIRTUAL)]
    records = [list(range(first + v * MINIBATCH, first + v * MINIBATCH + size)) for v, size in enumerate(sizes)]
    for r, share in zip(ranks, shares):
        r.tell(
            kind="work", generation=generation, step=step, epoch=0, virtual_workers=VIRTUAL, step_records=sum(map(len, records)),
            minibatches=[{"virtual_worker": v, "records": records[v]} for v in share],
        )  # fmt: skip


def train(ranks, generation, first, last=STEPS):
    for step in range(first, last):
        work(ranks, generation, step)
        for r in ranks:
            r.report("reduced")
        for r in ranks:
            r.tell(kind="commit", generation=generation, step=step)


def results(ranks, generation):
    for r in ranks:
        r.tell(kind="finish", generation=generation)
    for r in ranks:
        r.process.join()
    return [torch.load(r.result) for r in ranks]


@unittest.skipIf(torch is None, "torch is not installed")
class Ranks(unittest.TestCase):
    def trained(self, kind, count, hooks=True):
        ranks = [Rank(self, kind, hooks) for _ in range(count)]
        begin(ranks, 1, 0, broadcast=True)
        train(ranks, 1, 0)
        return results(ranks, 1)

    def assertSame(self, got, want, relative=0.0):
        tensors, wanted = [], []
        collectives._strip([got["state"], got["momentum"]], tensors)
        collectives._strip([want["state"], want["momentum"]], wanted)
        self.assertEqual(len(tensors), len(wanted))
        for a, b in zip(tensors, wanted):
            self.assertTrue(torch.allclose(a.double(), b.double(), rtol=relative, atol=relative), "%s and %s" % (a, b))
        for a, b in zip(got["losses"], want["losses"]):
            self.assertAlmostEqual(a, b, delta=relative * abs(b))

    def test_gradients_that_are_sent_early_are_those_that_are_sent_late_and_those_of_one_rank(self):
        kinds = ["plain", "changed", "bfloat16"] + (["compiled"] if hasattr(torch, "compile") else [])
        for kind in kinds:
            with self.subTest(kind):
                early, late, alone = self.trained(kind, 2), self.trained(kind, 2, hooks=False), self.trained(kind, 1)
                for i in range(2):
                    self.assertSame(early[i], late[i])
                    self.assertSame(early[i], alone[0], 0.05 if kind == "bfloat16" else 1e-5)
                    if kind != "compiled":  # all of a compiled graph's gradients come at its end
                        self.assertEqual(any(early[i]["early"]), exchange.HOOKS)
                    self.assertFalse(any(late[i]["early"]))

    def test_a_rank_that_is_killed_during_the_exchange_has_the_step_repeated(self):
        undisturbed = self.trained("plain", 2)
        for hooks in (True, False):
            with self.subTest(hooks=hooks):
                survivor, victim = Rank(self, "plain", hooks), Rank(self, "plain", hooks, "SIGKILL")
                begin([survivor, victim], 1, 0, broadcast=True)
                train([survivor, victim], 1, 0, 1)
                work([survivor, victim], 1, 1)
                self.assertEqual(survivor.report("idle")["held"], 1)
                victim.process.join()
                survivor.tell(kind="abort", generation=1)
                ranks = [survivor, Rank(self, "plain", hooks)]
                begin(ranks, 2, 1, broadcast=True)
                train(ranks, 2, 1)
                for got, want in zip(results(ranks, 2), undisturbed):
                    self.assertSame(got, {**want, "losses": want["losses"][-len(got["losses"]) :]})

    def test_a_rank_leaves_an_exchange_that_another_one_never_ends(self):
        for victim in (None, "wait"):  # in step.reduce(), and before it
            with self.subTest(victim):
                survivor, stopped = Rank(self, "plain", victim=victim), Rank(self, "plain", victim="SIGSTOP")
                begin([survivor, stopped], 1, 1, broadcast=True)
                work([survivor, stopped], 1, 1)
                stopped.report("begun")
                survivor.tell(kind="abort", generation=1)
                self.assertEqual(survivor.report("idle")["held"], 1)
                begin([survivor], 2, 1)
                train([survivor], 2, 1)
                results([survivor], 2)


@unittest.skipIf(torch is None or not exchange.HOOKS, "torch has no hooks of gradients")
class Buckets(unittest.TestCase):
    def setUp(self):
        self.sent, self.early = [], 0

        def begin(tensor):
            self.sent.append(tensor.clone())
            self.early += self.exchange._listening

        self.exchange = exchange.Exchange(exchange.Collectives(begin, lambda: None, torch.device("cpu"), 0))
        self.addCleanup(self.exchange.close)

    def test_their_order_becomes_that_in_which_gradients_are_complete(self):
        a, b, c, unused = parameters = [nn.Parameter(torch.tensor([float(i)])) for i in range(4)]
        early = []
        with unittest.mock.patch.multiple(exchange, _FIRST_BUCKET_BYTES=1, _BUCKET_BYTES=1):
            for _ in range(2):
                self.early = 0
                with self.exchange.last_backward(parameters):
                    ((b.exp() + c).exp() * a).backward()
                self.exchange.finish(parameters, [], None, lambda: None)
                self.exchange.store()
                early.append(self.early)
        self.assertEqual(early, [0, 3])  # at first the unused one is in the way
        order = [id(p) for bucket in self.exchange._buckets for p in bucket.parameters]
        self.assertEqual(order, list(map(id, [a, c, b, unused])))
        self.assertIsNone(unused.grad)

    def test_a_gradient_that_changes_after_it_was_sent_is_sent_again(self):
        p = nn.Parameter(torch.ones(1))
        with self.exchange.last_backward([p]):
            (2 * p).backward()
        (3 * p).backward()
        self.exchange.finish([p], [], None, lambda: None)
        self.exchange.store()
        self.assertEqual([float(t[0]) for t in self.sent], [2.0, 1.0, 5.0])
        self.assertEqual(p.grad.item(), 5.0)

    def test_other_numbers_are_added_with_them(self):
        p = nn.Parameter(torch.ones(1))
        numbers, integers = self.exchange.finish([p], [torch.tensor([2.0])], torch.tensor([3]), lambda: None)
        self.assertEqual((numbers.tolist(), integers.tolist()), ([2.0], [3]))

    def test_parameters_that_no_longer_require_a_gradient_when_the_step_is_reduced_are_an_error(self):
        a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
        with self.exchange.last_backward([a, b]):
            (a + b).backward()
        with self.assertRaisesRegex(RuntimeError, "require a gradient was changed"):
            self.exchange.finish([a], [], None, lambda: None)


if __name__ == "__main__":
    unittest.main()
