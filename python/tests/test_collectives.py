"""A loop with collectives of its own: outside a job, in one plain process, and as a worker of one."""

import contextlib
import gc
import json
import os
import random
import socket
import tempfile
import threading
import time
import unittest
import unittest.mock
from concurrent.futures import ThreadPoolExecutor

try:
    import torch

    from elastic_training import collectives, data

    class Stream(torch.utils.data.IterableDataset):
        """Numbers in order, divided among the processes of a DataLoader as its documentation shows."""

        def __init__(self, records, first=0, read=None):
            self.records, self.first, self.read = records, first, [] if read is None else read

        def __iter__(self):
            info = torch.utils.data.get_worker_info()
            step, offset = (info.num_workers, info.id) if info else (1, 0)
            for i in range(self.first + offset, self.records, step):
                self.read.append(i)
                yield torch.tensor([float(i)])

    class SkippingStream(Stream):
        def skip(self, n):
            return Stream(self.records, n, self.read)

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

    def test_each_process_of_a_worker_has_a_gpu_of_its_own(self):
        def device(gpus, **variables):
            with unittest.mock.patch.dict(os.environ, variables), unittest.mock.patch("torch.cuda.current_device", lambda: 3):
                return collectives._device(gpus)

        second_of_two = {"ELASTIC_SOCKET": "s", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
        self.assertEqual(device(2, **second_of_two), torch.device("cuda", 1))
        self.assertEqual(device(0, **second_of_two), torch.device("cpu"))
        with self.assertRaisesRegex(RuntimeError, "2 processes, and this one has 1 GPUs: set workers.processes"):
            device(1, **second_of_two)
        self.assertEqual(device(4, ELASTIC_SOCKET="s", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1"), torch.device("cuda", 3))
        self.assertEqual(device(4, LOCAL_RANK="1", LOCAL_WORLD_SIZE="2"), torch.device("cuda", 3), "outside a job")

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

    def test_the_next_steps_first_minibatch_is_read_while_a_step_is_reduced_and_the_script_cannot_tell(self):
        class Noisy:
            def __init__(self):
                self.read = []

            def __len__(self):
                return 23

            def __getitem__(self, i):
                self.read.append(i)
                return torch.tensor([float(i), random.random(), torch.rand(()).item()])

        def run(read_ahead):
            job = collectives.init(records=23, minibatch_size=3, grads_to_wait=2, epochs=2, device=torch.device("cpu"))
            model = job.prepare(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5)))
            dataset, seen, ahead = Noisy(), [], []
            for step in job.steps():
                with step:
                    for x in step.batches(dataset, read_ahead=read_ahead):
                        seen += x.tolist()
                        step.backward(model(x).mean())
                    before = len(dataset.read)
                    step.reduce()
                    ahead.append(len(dataset.read) - before)
                    seen.append((torch.rand(()).item(), random.random()))
            self.assertEqual(len(dataset.read), 2 * 23)
            return seen, ahead

        (seen, ahead), (want, none) = run(True), run(False)
        self.assertEqual(seen, want)
        self.assertEqual(none, [0] * 8)
        self.assertEqual(ahead, [3, 3, 3, 0] * 2)  # none of another epoch, for which the script may prepare the data set

    def test_an_error_of_the_data_set_is_raised_where_the_minibatch_is_taken(self):
        class Broken:
            def __init__(self):
                self.read = 0

            def __len__(self):
                return 23

            def __getitem__(self, i):
                self.read += 1
                if self.read > 6:  # those of the first step
                    raise ValueError("record %d is damaged" % i)
                return torch.ones(1)

        model, dataset, reduced = self.job.prepare(torch.nn.Linear(1, 1)), Broken(), []
        with self.assertRaisesRegex(ValueError, "is damaged"):
            for step in self.job.steps():
                with step:
                    for x in step.batches(dataset):
                        step.backward(model(x).mean())
                    step.reduce()
                reduced.append(step.number)
        self.assertEqual((reduced, dataset.read), ([0], 7))

    def test_nothing_is_read_twice_for_scripts_that_make_their_functions_anew_in_each_step(self):
        class Counting:
            read = 0

            def __len__(self):
                return 23

            def __getitem__(self, i):
                self.read += 1
                return torch.ones(1)

        model, dataset = self.job.prepare(torch.nn.Linear(1, 1)), Counting()
        for step in self.job.steps():
            with step:
                for x in step.batches(dataset, collate_fn=lambda items: torch.stack(items)):
                    step.backward(model(x).mean())
                step.reduce()
        self.assertEqual(dataset.read, 2 * 23 + 3)  # the second step's first minibatch shows it

    def test_a_data_set_that_can_only_be_iterated_over_gives_each_record_once_in_each_epoch(self):
        for kind in (Stream, SkippingStream):
            for num_workers in (0, 2):
                with self.subTest(kind=kind.__name__, num_workers=num_workers):
                    job = collectives.init(
                        records=self.RECORDS, minibatch_size=3, grads_to_wait=2, epochs=2, records_per_task=6, device=torch.device("cpu")
                    )
                    model = job.prepare(torch.nn.Linear(1, 1))
                    dataset, epochs = kind(self.RECORDS), [[], []]
                    for step in job.steps():
                        with step:
                            for x in step.batches(dataset, num_workers=num_workers):
                                epochs[step.epoch] += x.reshape(-1).int().tolist()
                                step.backward(model(x).mean())
                            step.reduce()
                    for epoch in epochs:
                        self.assertEqual(sorted(epoch), list(range(self.RECORDS)))
                    self.assertNotEqual(*epochs)

    def test_the_script_evaluates_at_the_beginning_of_a_step_and_after_the_loop(self):
        model = self.job.prepare(torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Dropout(0.5)))
        model[1].eval()  # the script's own choice, which an evaluation leaves alone
        numbers = [torch.tensor([float(i)]) for i in range(10)]

        def measure(x):
            self.assertFalse(model.training)
            self.assertFalse(model(x).requires_grad)
            return {"sum": x.sum(), "large": int((x > 6).sum())}

        want = {"sum": 4.5, "large": 0.3}
        for step in self.job.steps():
            with step:
                for dataset, given in ((numbers, {}), (Stream(10), {"records": 10}), (numbers, {"num_workers": 2})):
                    self.assertEqual(step.evaluate(dataset, measure, minibatch_size=4, **given), want)
                self.assertTrue(model.training)
                self.assertFalse(model[1].training)
                for x in step.batches([torch.ones(1)] * self.RECORDS):
                    step.backward(model(x).mean())
                with self.assertRaisesRegex(RuntimeError, "before step.batches"):
                    step.evaluate(numbers, measure)
                step.reduce()
        self.assertEqual(self.job.evaluate(numbers, measure), want)
        with self.assertRaisesRegex(ValueError, "number of records"):
            self.job.evaluate(Stream(10), measure)

    def test_rank_0_writes_files_that_are_complete(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "model.pt")
            self.assertTrue(self.job.is_main)
            self.job.save({"w": torch.ones(2)}, path)
            with self.assertRaises(Exception):
                self.job.save(lambda: None, path)  # cannot be pickled
            self.assertEqual(os.listdir(directory), ["model.pt"])
            self.assertTrue(torch.equal(torch.load(path)["w"], torch.ones(2)))


@unittest.skipIf(torch is None, "torch is not installed")
class AsAWorker(unittest.TestCase):
    """The script's side of the protocol, opposite a test that speaks as the worker does."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        path = os.path.join(directory.name, "socket")
        listener.bind(path)
        listener.listen()
        with ThreadPoolExecutor(1) as pool:
            accepted = pool.submit(self._accept, listener, directory.name)
            self.side = collectives._Worker(path, torch.device("cpu"), "gloo")
            self.to_script, self.from_script = accepted.result()
        self.addCleanup(self.to_script.close)
        self.side.start(unittest.mock.Mock())
        self.store = self.report()["store"]
        threading.Thread(target=self._script, daemon=True).start()
        self.addCleanup(self.to_script.shutdown, socket.SHUT_RDWR)

    def _accept(self, listener, directory):
        connection, _ = listener.accept()
        connection.settimeout(30)
        self.to_script = connection
        self.tell(host="127.0.0.1", checkpoints=os.path.join(directory, "checkpoints"))
        return connection, connection.makefile("r", encoding="utf-8")

    def _script(self):
        with contextlib.suppress(SystemExit):
            self.side.next()

    def tell(self, **message):
        self.to_script.sendall((json.dumps(message) + "\n").encode())

    def report(self):
        return json.loads(self.from_script.readline())

    def aborted_while_it_meets(self, number, rank, store):
        """What the script reports of a generation that is aborted before it has opened any connection."""
        meet = self.side._meet

        def abort_and_meet(generation, store):
            self.tell(kind="abort", generation=number)
            with self.side._guard:
                self.side._guard.wait_for(lambda: self.side._aborted >= number)
            meet(generation, store)

        with unittest.mock.patch.object(self.side, "_meet", abort_and_meet):
            self.tell(kind="begin", generation=number, rank=rank, world=2, step=0, store=store)
            return self.report()

    def test_a_process_group_whose_other_rank_never_comes_is_given_up_when_it_is_aborted(self):
        gc.disable()  # it would hide that errors keep connections
        self.addCleanup(gc.enable)
        self.side._store.set("a", "b")  # the store's thread accepts this process's own connection at some time before it answers
        before = len(data.sockets())
        for number, rank in ((1, 0), (2, 1)):
            report = self.aborted_while_it_meets(number, rank, self.store)
            self.assertEqual(report, {"kind": "idle", "generation": number, "held": -1, "of": 0, "reason": ""})
        deadline = time.monotonic() + 30
        while len(data.sockets()) > before:  # threads of torch close some
            self.assertLess(time.monotonic(), deadline, "connections of process groups that were given up are still open")

    def test_a_store_that_nobody_serves_any_more_is_given_up_when_the_generation_is_aborted(self):
        with socket.socket() as gone:
            gone.bind(("127.0.0.1", 0))
            port = gone.getsockname()[1]
        self.assertEqual(self.aborted_while_it_meets(1, 1, "127.0.0.1:%d" % port)["kind"], "idle")


@unittest.skipIf(torch is None, "torch is not installed")
class Store(unittest.TestCase):
    def test_no_server_of_libuv_is_asked_for_which_builds_may_lack(self):
        store = collectives._tcp_store("127.0.0.1", 0, serves=True)
        collectives._tcp_store("127.0.0.1", store.port, serves=False).set("a", "b")
        self.assertEqual(store.get("a"), b"b")
        self.assertFalse(getattr(store, "libuvBackend", False))


@unittest.skipIf(torch is None, "torch is not installed")
class RangesOfAStream(unittest.TestCase):
    def test_records_are_found_by_number_and_read_in_their_order(self):
        stream = SkippingStream(10)
        ranges = data.Ranges(stream, 10, 4)
        self.assertEqual([ranges[i].item() for i in (5, 4, 9, 0, 3, 7)], [5, 4, 9, 0, 3, 7])
        self.assertEqual(stream.read, [4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7])  # the range of 5 and 7 was dropped meanwhile

    def test_without_skip_a_data_set_is_read_on_where_it_can_be(self):
        stream = Stream(12)
        ranges = data.Ranges(stream, 12, 4)
        self.assertEqual([ranges[i].item() for i in (0, 8, 4)], [0, 8, 4])
        self.assertEqual(stream.read, list(range(12)) + list(range(8)))

    def test_random_numbers_are_those_of_the_range_and_the_generators_stay_as_they_were(self):
        class Noisy(torch.utils.data.IterableDataset):
            def __iter__(self):
                for _ in range(8):
                    yield torch.rand(()).item(), random.random()

        def read(seed):
            data.seed_all(seed)
            items = data.Ranges(Noisy(), 8, 4)[5]
            return items, torch.rand(()).item(), random.random()

        one, other = read(1), read(2)
        self.assertEqual(one[0], other[0])
        data.seed_all(1)
        self.assertEqual(one[1:], (torch.rand(()).item(), random.random()))

    def test_a_data_set_that_ends_early_says_where(self):
        with self.assertRaisesRegex(IndexError, "ended after 10 records, of 12"):
            data.Ranges(Stream(10), 12, 4)[8]


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
