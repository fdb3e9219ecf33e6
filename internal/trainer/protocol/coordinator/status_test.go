package coordinator

import "testing"

func TestStatusNamesTheReasonForALostWorkerUntilItReturns(t *testing.T) {
	c := New(Config{
		Steps: 4, Minibatches: func(int64) int { return 2 }, EvaluatesAt: func(int64) bool { return false },
		Identity: Identity{Lineage: "lineage", Job: "job", Numerics: 1}, Min: 1, Max: 1, LastWorkerID: -1, SilentTicks: 2, RetainedUpdates: 4, HashEvery: 100, MaxFailures: 6,
	})
	hello := Hello{Worker: 0, Identity: Identity{Lineage: "lineage", Job: "job", Numerics: 1}}
	for _, e := range []Event{Start{}, PodChanged{Worker: 0, State: PodRunning}} {
		c.Step(e)
	}
	expect := func(when string, state WorkerState, reason string) {
		t.Helper()
		if w := c.Status().Workers; len(w) != 1 || w[0].State != state || w[0].Reason != reason {
			t.Errorf("%s: %+v", when, w)
		}
	}
	expect("before its hello", WorkerStarting, "")
	c.Step(hello)
	expect("after it", WorkerReady, "")
	for range 3 {
		c.Step(Tick{})
	}
	expect("after its silence", WorkerStarting, "it stopped responding at step 0, and has sent no hello since")
	c.Step(hello)
	expect("after its next hello", WorkerReady, "")
}
