"""A loop with collectives of its own, outside a job: one plain process."""

import os
import random
import unittest

try:
    import torch

    from elastic_training import collectives
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "torch is not installed")
class Alone(unittest.TestCase):
    RECORDS = 23

    def setUp(self):
        self.assertNotIn("ELASTIC_SOCKET", os.environ)
        self.job = collectives.init(records=self.RECORDS, minibatch_size=3, grads_to_wait=2, epochs=2, device=torch.device("cpu"))

    def test_each_record_is_used_once_in_each_epoch_in_another_order(self):
        model = self.job.prepare(torch.nn.Linear(1, 1))
        epochs = [[], []]
        for step in self.job.steps():
            with step:
                for x in step.batches([torch.tensor([float(i)]) for i in range(self.RECORDS)]):
                    epochs[step.epoch] += x.reshape(-1).int().tolist()
                    step.backward(model(x).mean())
                self.assertFalse(step.committed)
                step.reduce()
            self.assertTrue(step.committed)
        for epoch in epochs:
            self.assertEqual(sorted(epoch), list(range(self.RECORDS)))
        self.assertNotEqual(*epochs)

    def test_the_gradient_is_that_of_the_steps_mean_loss_however_it_is_cut(self):
        model = self.job.prepare(torch.nn.Linear(1, 1))
        for step in self.job.steps():
            with step:
                seen = []
                for x in step.batches([torch.tensor([float(i)]) for i in range(self.RECORDS)]):
                    seen += x.reshape(-1).tolist()
                    step.backward((model(x) ** 2).mean())
                loss = step.reduce()
                got = model.weight.grad.clone()
                model.zero_grad()
                whole = (model(torch.tensor(seen).reshape(-1, 1)) ** 2).mean()
                whole.backward()
                self.assertAlmostEqual(loss, whole.item(), delta=1e-5 * whole.item())
                self.assertTrue(torch.allclose(got, model.weight.grad, rtol=1e-5))

    def test_each_minibatch_begins_with_the_buffers_that_the_step_found_and_their_mean_remains(self):
        norm = self.job.prepare(torch.nn.BatchNorm1d(1))
        step = next(self.job.steps())
        with step:
            begins, ends = [], []
            for x in step.batches([torch.tensor([float(i)]) for i in range(self.RECORDS)]):
                begins.append(norm.running_mean.item())
                step.backward(norm(x).mean())
                ends.append(norm.running_mean.item())
            step.reduce()
        self.assertEqual(begins, [0.0, 0.0])
        self.assertAlmostEqual(norm.running_mean.item(), sum(ends) / 2, places=5)
        self.assertEqual(norm.num_batches_tracked.item(), 1)

    def test_a_parameter_without_a_gradient_keeps_none(self):
        model = self.job.prepare(torch.nn.ParameterDict({"used": torch.nn.Parameter(torch.ones(1)), "not": torch.nn.Parameter(torch.ones(1))}))
        step = next(self.job.steps())
        with step:
            for x in step.batches([torch.ones(1)] * self.RECORDS):
                step.backward((model["used"] * x).mean())
            step.reduce()
            self.assertEqual(model["used"].grad.item(), 1.0)
            self.assertIsNone(model["not"].grad)

    def test_a_loop_that_leaves_something_out_says_what(self):
        model = self.job.prepare(torch.nn.Linear(1, 1))
        with self.assertRaisesRegex(TypeError, "no state_dict"):
            self.job.prepare(object())
        step = next(self.job.steps())
        with self.assertRaisesRegex(RuntimeError, "step.reduce"):
            with step:
                pass
        with self.assertRaisesRegex(RuntimeError, "0 of this rank's 6 records"):
            with step:
                for _ in step.batches([torch.ones(1)] * self.RECORDS):
                    pass
                step.reduce()
        with self.assertRaisesRegex(ValueError, "mean"):
            with step:
                for x in step.batches([torch.ones(1)] * self.RECORDS):
                    step.backward(model(x))

    def test_a_state_of_another_model_is_refused(self):
        self.job.prepare(torch.nn.Linear(1, 1))
        state = self.job._state()
        other = collectives.init(records=1, device=torch.device("cpu"))
        other.prepare(torch.nn.Linear(2, 1))
        with self.assertRaisesRegex(ValueError, "another model"):
            other._load(state)

    def test_processes_that_read_ahead_give_the_same_minibatches(self):
        class Noisy:
            def __len__(self):
                return 23

            def __getitem__(self, i):
                return torch.tensor([float(i), random.random(), torch.rand(()).item()])

        def run(num_workers):
            job = collectives.init(records=23, minibatch_size=3, grads_to_wait=2, epochs=2, device=torch.device("cpu"))
            model = job.prepare(torch.nn.Linear(3, 1))
            dataset, seen = Noisy(), []
            for step in job.steps():
                with step:
                    for x in step.batches(dataset, num_workers=num_workers):
                        seen += x.tolist()
                        step.backward(model(x).mean())
                    step.reduce()
            return seen

        self.assertEqual(run(0), run(2))

    def test_an_error_of_a_data_set_that_processes_read_is_raised(self):
        class Broken:
            def __len__(self):
                return 23

            def __getitem__(self, i):
                raise ValueError("record %d is damaged" % i)

        self.job.prepare(torch.nn.Linear(1, 1))
        with self.assertRaisesRegex(ValueError, "is damaged"):
            for step in self.job.steps():
                with step:
                    for _ in step.batches(Broken(), num_workers=1):
                        pass


@unittest.skipIf(torch is None, "torch is not installed")
class State(unittest.TestCase):
    def test_a_states_structure_and_tensors_are_taken_apart_and_put_together(self):
        state = {"step": 3, "others": [{"state": {0: {"step": torch.tensor(2.0), "exp_avg": torch.ones(2, dtype=torch.bfloat16)}}, "betas": (0.9, 0.99)}]}
        tensors = []
        structure = collectives._strip(state, tensors)
        fresh = []
        collectives._collect(structure, fresh)
        self.assertEqual([(t.shape, t.dtype) for t in fresh], [(t.shape, t.dtype) for t in tensors])
        again = collectives._fill(structure, iter(tensors))
        self.assertEqual(again["others"][0]["betas"], (0.9, 0.99))
        self.assertTrue(torch.equal(again["others"][0]["state"][0]["exp_avg"], torch.ones(2, dtype=torch.bfloat16)))


if __name__ == "__main__":
    unittest.main()
