"""A model with one parameter for each record, of which a gradient is -1 where the record is.

An update with rate 1 adds exactly 1 for each time a record was applied: after E epochs every
parameter is E, or a record was lost or counted twice. Records are numbers: indices://NAME?records=N.
Plain Python; the environment says how to misbehave.
"""

import array
import os
import sys

import elastic_training as elastic

RECORDS = int(os.environ.get("COUNTED_RECORDS", "700"))


class Counting(elastic.Computation):
    def describe(self, job):
        if os.environ.get("COUNTING_PRINTS"):
            print("counting", RECORDS, "records")
        return elastic.Description(
            tensors=[
                elastic.Tensor("count", (RECORDS,)),
                elastic.Tensor("measured", (2,), elastic.STATISTIC),
                elastic.Tensor("constant", (), elastic.FROZEN),
                elastic.Tensor("updates", (), elastic.SLOT),
            ],
            model="counting",
            optimizer="addition",
            metrics=("even",),
        )

    def initial(self, seed):
        self.state = array.array("f", [0] * (RECORDS + 2) + [float(seed), 0])
        return self.state

    def load(self, state):
        self.state = array.array("f", state)

    def gradient(self, minibatch):
        values = array.array("f", [0] * RECORDS)
        numbers = [elastic.index(r) for r in minibatch.records]
        if os.environ.get("COUNTING_DIES_AT") == str(minibatch.step):
            print("the last line", file=sys.stderr)
            os._exit(3)
        if os.environ.get("COUNTING_DIVERGES_AT") == str(minibatch.step):
            raise elastic.NotFinite("the loss is infinite")
        for i in numbers:
            values[i] -= 1
        return elastic.Gradient(values, self._measure(numbers), array.array("f", [minibatch.virtual_worker, 1]))

    def apply(self, gradient, statistics, step):
        for i, g in enumerate(gradient):
            self.state[i] -= g
        for s in statistics:
            self.state[RECORDS] += s[0]
            self.state[RECORDS + 1] += s[1]
        self.state[-1] += 1
        return self.state

    def evaluate(self, records):
        return self._measure([elastic.index(r) for r in records])

    def _measure(self, numbers):
        return elastic.Measured(loss_sum=float(sum(numbers)), counts=[sum(i % 2 == 0 for i in numbers)])


if __name__ == "__main__":
    elastic.serve(Counting())
