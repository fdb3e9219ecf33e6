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
                    other = self.computation(optimizer)
                    other.load(memoryview(bytearray(state)).cast("f"))
                    for key, value in model.state_dict().items():
                        self.assertTrue(torch.equal(other._model.state_dict()[key], value), key)

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
            statistics = memoryview(bytearray(plain.gradient(self.minibatch(0)).statistics)).cast("f")
            after = words(c.apply(memoryview(bytearray(g)).cast("f"), [statistics], 2))
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


@unittest.skipIf(torch is None, "torch is not installed")
class State(unittest.TestCase):
    """What is kept between steps, and what a step leaves alone."""

    def computation(self, model, **more):
        options = {
            "model": model,
            "optimizer": lambda p: torch.optim.SGD(p, lr=0.1),
            "loss": lambda outputs, targets: (outputs - targets).square().mean(),
            "read": lambda record: (torch.tensor([float(b) for b in record]), 0.0),
            "read_validation": None,
            "collate": torch.utils.data.default_collate,
            "metrics": {},
            "schedule": None,
            "device": torch.device("cpu"),
        }
        options.update(more)
        c = adapter._Torch(**options)
        c.description = c.describe(elastic.Job(3, 2, 1, None))
        c.initial(3)
        return c

    def step(self, c, *minibatches, step=0):
        """One update by the gradients of these minibatches."""
        answers = []
        for i, records in enumerate(minibatches):
            g = c.gradient(elastic.Minibatch([memoryview(r) for r in records], step, i, 2 * len(minibatches), 100 + i))
            answers.append((words(g.values), bytes(g.statistics)))
        total = array.array("f", [sum(parts) for parts in zip(*(values for values, _ in answers))])
        statistics = [memoryview(bytearray(s)).cast("f") for _, s in answers]
        return bytes(c.apply(memoryview(total), statistics, step))

    RECORDS = [bytes([1, 2, 3]), bytes([4, 5, 6])]

    def test_every_buffer_is_kept_in_its_own_type_to_the_bit(self):
        values = {
            "count": torch.tensor(123456789),
            "small": torch.tensor([1, -2, 3], dtype=torch.int8),
            "flags": torch.tensor([True, False, True]),
            "mask": torch.full((3, 3), float("-inf")).triu(1),
            "scale": torch.tensor(1 / 3, dtype=torch.float64),
            "halves": torch.tensor([0.1, 65504.0, 3.0], dtype=torch.float16),
            "brain": torch.tensor([0.1], dtype=torch.bfloat16),
            "none": torch.empty(0, 4),
        }

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.dense = torch.nn.Linear(3, 1)
                for name, value in values.items():
                    self.register_buffer(name, value.clone())

            def forward(self, x):
                return self.dense(x).squeeze(-1)

        c = self.computation(Net)
        dtypes = {t.name: t.dtype for t in c.description.tensors}
        self.assertEqual(dtypes["count"], "I64")
        self.assertEqual(dtypes["mask"], "F32")
        state = self.step(c, self.RECORDS, self.RECORDS, self.RECORDS)
        other = self.computation(Net)
        with torch.no_grad():
            for b in other._buffers:
                b.zero_()
        other.load(memoryview(bytearray(state)).cast("f"))
        for name, value in values.items():
            for model in (c._model, other._model):
                got = getattr(model, name)
                self.assertEqual(got.dtype, value.dtype, name)
                self.assertTrue(torch.equal(got, value), name)
        self.assertEqual(bytes(other._flat()), state)

    def test_measured_buffers_become_the_mean_and_counters_that_of_the_first_minibatch(self):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.dense = torch.nn.Linear(3, 1)
                self.register_buffer("mean", torch.zeros(1))
                self.register_buffer("seen", torch.tensor(1 << 40))

            def forward(self, x):
                self.mean.copy_(x[:, :1].mean())
                self.seen += len(x)
                return self.dense(x).squeeze(-1)

        c = self.computation(Net)
        self.step(c, self.RECORDS, [bytes([7, 0, 0]), bytes([8, 0, 0])])
        self.assertEqual(c._model.mean.item(), (2.5 + 7.5) / 2)
        self.assertEqual(c._model.seen.item(), (1 << 40) + 2)

    def test_half_precision_parameters_stay_what_they_are(self):
        c = self.computation(
            lambda: torch.nn.Sequential(torch.nn.Linear(3, 1, bias=False), torch.nn.Flatten(0)).bfloat16(),
            read=lambda record: (torch.tensor([float(b) for b in record], dtype=torch.bfloat16), 0.0),
        )
        self.assertEqual(c.description.tensors[0].dtype, "BF16")
        state = self.step(c, self.RECORDS)
        other = self.computation(lambda: torch.nn.Sequential(torch.nn.Linear(3, 1, bias=False), torch.nn.Flatten(0)).bfloat16())
        other.load(memoryview(bytearray(state)).cast("f"))
        self.assertTrue(torch.equal(other._model[0].weight, c._model[0].weight))
        self.assertEqual(other._model[0].weight.dtype, torch.bfloat16)

    def test_tied_weights_are_one_parameter_with_all_their_names(self):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding = torch.nn.Linear(3, 3, bias=False)
                self.head = torch.nn.Linear(3, 3, bias=False)
                self.head.weight = self.embedding.weight

            def forward(self, x):
                return self.head(self.embedding(x)).sum(-1)

        c = self.computation(Net)
        parameters = [t for t in c.description.tensors if t.role == "parameter"]
        self.assertEqual([(t.name, t.aliases) for t in parameters], [("embedding.weight", ("head.weight",))])
        names = {name for t in parameters for name in (t.name,) + t.aliases}
        self.assertEqual(names, set(Net().state_dict()))

    def test_a_parameter_without_a_gradient_is_left_alone_as_in_a_loop_of_torch(self):
        class Net(torch.nn.Module):
            """One of two branches, by the first record."""

            def __init__(self):
                super().__init__()
                self.low = torch.nn.Linear(3, 1)
                self.high = torch.nn.Linear(3, 1)
                self.unused = torch.nn.Parameter(torch.ones(2))

            def forward(self, x):
                return (self.low if x[0, 0] < 100 else self.high)(x).squeeze(-1)

        high = [bytes([200, 1, 1]), bytes([201, 2, 2])]
        optimizers = {
            "decayed": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.5),
            "momentum": lambda p: torch.optim.SGD(p, lr=0.001, momentum=0.9),
            "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.5),
            "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01, initial_accumulator_value=0.1, weight_decay=0.1),
        }
        for name, optimizer in optimizers.items():
            with self.subTest(name):
                c, reference = self.computation(Net, optimizer=optimizer), self.computation(Net, optimizer=optimizer)
                model, opt = reference._model, reference._optimizer
                for step, records in enumerate((self.RECORDS, self.RECORDS, high, self.RECORDS)):
                    state = self.step(c, records, step=step)
                    c = self.computation(Net, optimizer=optimizer)  # whoever continues
                    c.load(memoryview(bytearray(state)).cast("f"))
                    opt.zero_grad(set_to_none=True)
                    inputs, targets = reference._batch([memoryview(r) for r in records], reference._read)
                    reference._loss(model(inputs), targets).backward()
                    opt.step()
                    for key, value in model.state_dict().items():
                        self.assertTrue(torch.equal(c._model.state_dict()[key], value), "%s after step %d" % (key, step))
                self.assertTrue(torch.equal(c._model.unused, torch.ones(2)))

    def test_a_parameter_has_a_gradient_when_any_minibatch_of_the_step_had_one(self):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.low, self.high = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)

            def forward(self, x):
                return (self.low if x[0, 0] < 100 else self.high)(x).squeeze(-1)

        c = self.computation(Net)
        before = {k: v.clone() for k, v in c._model.state_dict().items()}
        self.step(c, self.RECORDS, [bytes([200, 1, 1]), bytes([201, 2, 2])])
        for key, value in c._model.state_dict().items():
            self.assertFalse(torch.equal(value, before[key]), key)

    def test_augmentation_depends_on_the_minibatch_and_not_on_who_read_what_before(self):
        numpy = adapter.numpy
        draws = {"random": random.random, "torch": lambda: torch.rand(()).item()}
        if numpy is not None:
            draws["numpy"] = lambda: float(numpy.random.rand())
        for name, draw in draws.items():
            with self.subTest(name):
                augmented = lambda record: (torch.tensor([float(b) for b in record]) + draw(), 0.0)
                net = lambda: torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0))
                one = self.computation(net, read=augmented, read_validation=augmented)
                other = self.computation(net, read=augmented, read_validation=augmented)
                question = elastic.Minibatch([memoryview(r) for r in self.RECORDS], 5, 1, 2, 77)
                want = bytes(one.gradient(question).values)
                draw()
                other.gradient(question._replace(seed=78))
                other.evaluate([memoryview(r) for r in self.RECORDS])
                self.assertEqual(bytes(other.gradient(question).values), want)
                self.assertNotEqual(bytes(other.gradient(question._replace(seed=78)).values), want)
                measured = one.evaluate(question.records)
                draw()
                self.assertEqual(other.evaluate(question.records), measured)

    def test_what_an_optimizer_keeps_in_its_groups_is_refused_as_it_would_be_lost(self):
        class Counting(torch.optim.SGD):
            def step(self):
                self.param_groups[0]["k"] = self.param_groups[0].get("k", 0) + 1
                return super().step()

        with self.assertRaisesRegex(TypeError, "Counting changes 'k' of its parameter groups"):
            self.computation(
                lambda: torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0)), optimizer=lambda p: Counting(p, lr=0.1)
            )

    def test_a_record_that_the_dataset_lacks_is_named_with_the_remedy(self):
        read = adapter._reader("dataset", None, [(1, 2)])
        self.assertEqual(read((0).to_bytes(8, "little")), (1, 2))
        with self.assertRaisesRegex(IndexError, r"record 7 of a dataset of 1 items.*len\(dataset\)"):
            read((7).to_bytes(8, "little"))
        with self.assertRaisesRegex(TypeError, r"give run\(validation="):
            adapter._reader("validation", None, None)((0).to_bytes(8, "little"))


if __name__ == "__main__":
    unittest.main()
