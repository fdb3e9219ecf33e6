"""The PyTorch adapter: every answer is a function of its question."""

import array
import random
import unittest

import elastic_training as elastic

try:
    import torch
    from elastic_training import torch as adapter
except ImportError:
    torch = None


def words(buffer):
    return array.array("f", bytes(buffer)).tolist()


@unittest.skipIf(torch is None, "torch is not installed")
class Torch(unittest.TestCase):
    SEED = 5

    def computation(self, optimizer, **more):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = torch.nn.Linear(3, 4)
                self.fixed = torch.nn.Linear(4, 4)
                self.norm = torch.nn.BatchNorm1d(4)
                self.dropout = torch.nn.Dropout(0.5)
                self.last = torch.nn.Linear(4, 2)
                self.fixed.requires_grad_(False)

            def forward(self, x):
                return self.last(self.dropout(self.norm(self.fixed(torch.relu(self.first(x))))))

        def read(record):
            return torch.tensor([float(b) for b in record[:3]]) / 255, record[3] % 2

        options = {
            "model": Net,
            "optimizer": optimizer,
            "loss": torch.nn.functional.cross_entropy,
            "read": read,
            "read_validation": read,
            "collate": torch.utils.data.default_collate,
            "metrics": {"accuracy": adapter.accuracy},
            "schedule": None,
            "device": torch.device("cpu"),
        }
        options.update(more)
        c = adapter._Torch(**options)
        self.description = c.describe(elastic.Job(self.SEED, 4, 1, None))
        return c

    def minibatch(self, step, worker=0, records=8):
        generator = random.Random(1000 * step + worker)
        data = [memoryview(bytes(generator.randrange(256) for _ in range(4))) for _ in range(records)]
        return elastic.Minibatch(data, step, worker, 2 * records, 10 * step + worker)

    def train(self, c, state, steps):
        """Two virtual workers each step; returns the state, having asked another one meanwhile."""
        c.load(memoryview(bytearray(state)).cast("f"))
        for step in steps:
            parts = [c.gradient(self.minibatch(step, w)) for w in (0,)]
            values = [words(parts[0].values)]
            statistics = [memoryview(bytearray(parts[0].statistics)).cast("f")]
            second = c.gradient(self.minibatch(step, 1))
            values.append(words(second.values))
            statistics.append(memoryview(bytearray(second.statistics)).cast("f"))
            total = array.array("f", [a + b for a, b in zip(*values)])
            state = bytes(c.apply(memoryview(total), statistics, step))
        return state

    OPTIMIZERS = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
        "momentum, damped": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5),
        "adam": lambda p: torch.optim.Adam(p, lr=0.01),
        "adamw, amsgrad": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
        "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01, initial_accumulator_value=0.1),
        "rmsprop, centered": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True),
    }

    def test_another_process_goes_on_from_a_state_to_the_same_bits(self):
        for name, optimizer in self.OPTIMIZERS.items():
            with self.subTest(name):
                one = self.computation(optimizer)
                start = bytes(one.initial(self.SEED))
                self.assertEqual(bytes(self.computation(optimizer).initial(self.SEED)), start)
                whole = self.train(one, start, range(6))
                half = self.train(self.computation(optimizer), start, range(3))
                other = self.computation(optimizer)
                self.train(other, start, range(2))  # whatever it did before
                self.assertEqual(self.train(other, half, range(3, 6)), whole)
                self.assertNotEqual(whole, start)

    def test_it_trains_as_a_loop_of_torch_does(self):
        for name, optimizer in self.OPTIMIZERS.items():
            with self.subTest(name):
                c = self.computation(optimizer)
                state = bytes(c.initial(self.SEED))
                reference = self.computation(optimizer)
                model, opt = reference._model, reference._optimizer
                for step in range(4):
                    m = self.minibatch(step)._replace(step_records=8)
                    g = c.gradient(m)
                    state = bytes(
                        c.apply(
                            memoryview(bytearray(g.values)).cast("f"),
                            [memoryview(bytearray(g.statistics)).cast("f")],
                            step,
                        )
                    )
                    inputs, targets = reference._batch(m.records, reference._read)
                    model.train()
                    torch.manual_seed(m.seed)
                    opt.zero_grad()
                    torch.nn.functional.cross_entropy(model(inputs), targets).backward()
                    opt.step()
                    trained = [p for p in model.parameters() if p.requires_grad]
                    want = torch.cat([t.detach().float().reshape(-1) for t in trained + list(model.buffers())])
                    self.assertEqual(words(state)[: len(want)], want.tolist())

    def test_a_gradient_changes_nothing_and_is_the_same_again(self):
        c = self.computation(self.OPTIMIZERS["adam"])
        before = bytes(c.initial(self.SEED))
        first = bytes(c.gradient(self.minibatch(0)).values)
        self.assertEqual(bytes(c._flat()), before)
        c.gradient(self.minibatch(1))
        c.evaluate(self.minibatch(2).records)
        self.assertEqual(bytes(c.gradient(self.minibatch(0)).values), first)
        self.assertNotEqual(bytes(c.gradient(self.minibatch(0)._replace(seed=99)).values), first, "dropout")

    def test_the_description_names_tensors_as_torch_does_and_the_optimizers_behind(self):
        c = self.computation(self.OPTIMIZERS["adam"])
        roles = {}
        for t in self.description.tensors:
            roles.setdefault(t.role, []).append(t.name)
        self.assertEqual(roles["parameter"][:2], ["first.weight", "first.bias"])
        self.assertEqual(roles["statistic"], ["norm.running_mean", "norm.running_var", "norm.num_batches_tracked"])
        self.assertEqual(roles["frozen"], ["fixed.weight", "fixed.bias"])
        self.assertIn("optimizer/exp_avg/first.weight", roles["slot"])
        exported = set(roles["parameter"] + roles["statistic"] + roles["frozen"])
        self.assertEqual(exported, set(c._model.state_dict()))

    def test_a_schedule_and_the_jobs_learning_rate_scale_the_update(self):
        plain = self.computation(lambda p: torch.optim.SGD(p, lr=0.1))
        start = bytes(plain.initial(self.SEED))
        g = bytes(plain.gradient(self.minibatch(0)).values)

        def moved(c):
            c.load(memoryview(bytearray(start)).cast("f"))
            after = words(c.apply(memoryview(bytearray(g)).cast("f"), [memoryview(array.array("f", [0] * 9))], 2))
            return after[0] - words(start)[0]

        half = self.computation(lambda p: torch.optim.SGD(p, lr=0.1), schedule=lambda step: 1 / step)
        self.assertAlmostEqual(moved(half) * 2, moved(plain), places=6)
        given = self.computation(lambda p: torch.optim.SGD(p, lr=99.0))
        given.describe(elastic.Job(self.SEED, 4, 1, 0.1))
        self.assertEqual(moved(given), moved(plain))

    def test_what_cannot_be_made_elastic_is_refused_with_the_reason(self):
        with self.assertRaisesRegex(TypeError, "the function or class that builds it"):
            adapter.run(model=torch.nn.Linear(1, 1), optimizer=None, loss=None, decode=bytes)
        with self.assertRaisesRegex(TypeError, "either decode"):
            adapter.run(model=torch.nn.Linear, optimizer=None, loss=None)
        with self.assertRaisesRegex(TypeError, "float64"):
            self.computation(self.OPTIMIZERS["sgd"], model=lambda: torch.nn.Linear(3, 2).double())
        c = self.computation(
            self.OPTIMIZERS["sgd"], loss=lambda o, t: torch.nn.functional.cross_entropy(o, t, reduction="none")
        )
        c.initial(self.SEED)
        with self.assertRaisesRegex(ValueError, "one number, the mean"):
            c.gradient(self.minibatch(0))
        c = self.computation(self.OPTIMIZERS["sgd"], loss=lambda o, t: o.sum() * float("inf"))
        c.initial(self.SEED)
        with self.assertRaises(elastic.NotFinite):
            c.gradient(self.minibatch(0))


if __name__ == "__main__":
    unittest.main()
