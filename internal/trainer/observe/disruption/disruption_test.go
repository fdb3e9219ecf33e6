package disruption_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/disruption"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

const (
	computing   = trainingjob.GoodputComputing
	recovering  = trainingjob.GoodputRecovering
	recomputing = trainingjob.GoodputRecomputing
	waiting     = trainingjob.GoodputWaitingForRoom
)

var began = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }

// status is of a job of a thousand steps with ready workers.
func status(step int64, phase trainingjob.GoodputPhase, ready ...int) trainingjob.Status {
	s := trainingjob.Status{
		Phase: trainingjob.PhaseRunning, StepsDone: step, StepsTotal: 1000,
		GoodputSplit: &trainingjob.GoodputSplit{Phase: phase, HighestStep: step, JobDigest: "digest"},
	}
	for _, id := range ready {
		s.Workers = append(s.Workers, trainingjob.WorkerStatus{ID: id, State: string(coordinator.WorkerReady)})
	}
	return s
}

// taken is the event of a worker that is preempted for a pod of Kueue's.
func taken(worker int, pod string) coordinator.PodChanged {
	return coordinator.PodChanged{Worker: worker, State: coordinator.PodRunning, Terminating: true, Preempted: true, Cause: trainingjob.DisruptionCause{
		Pod: pod, UID: "uid-" + pod, Kind: trainingjob.DisruptionPreempted, Reason: "InClusterQueue", ByUID: "urgent",
	}}
}

func newest(t *testing.T, tracker *disruption.Tracker, count int) trainingjob.Disruption {
	t.Helper()
	r := tracker.Report()
	if r == nil || r.Count != int64(count) || len(r.Newest) != min(count, trainingjob.MostDisruptions) {
		t.Fatalf("reported are %+v, want %d", r, count)
	}
	return r.Newest[len(r.Newest)-1]
}

func TestAPreemptedWorkerCostsTheStepsThatAreRepeatedAndTheTimeUntilTheFirstNewOne(t *testing.T) {
	var d disruption.Tracker
	d.Observe(at(0), status(0, recovering))
	d.Observe(at(5), status(10, computing, 0, 1))
	for range 10 {
		d.OnStep()
	}
	d.OnEvent(at(10), taken(1, "low-worker-1"))
	d.OnEvent(at(10.1), taken(1, "low-worker-1")) // again, as its pod changes
	d.Observe(at(11), status(20, waiting, 0))
	d.OnEvent(at(11), coordinator.PodChanged{Worker: 1, State: coordinator.PodEnded, Terminating: true, Disrupted: true})
	d.Observe(at(15), status(12, recomputing, 0))
	if got := newest(t, &d, 1); got.Recovered != nil || got.FullSize != nil {
		t.Errorf("it has not recovered: %+v", got)
	}
	recovered := d.Observe(at(18), status(21, computing, 0))
	d.Observe(at(40), status(50, computing, 0, 2))
	got := newest(t, &d, 1)
	if got.Role != trainingjob.RoleWorker || got.Step != 20 || got.Workers != 2 || got.LostSteps != 8 || got.LostSeconds != 7 ||
		got.Recovered == nil || *got.Recovered != 8 || got.FullSize == nil || *got.FullSize != 30 || !got.At.Equal(at(10)) {
		t.Errorf("got %+v", got)
	}
	if sum := d.Report(); sum.LostSteps != 8 || sum.LostSeconds != 7 {
		t.Errorf("the sums are %+v", sum)
	}
	if len(recovered) != 1 {
		t.Fatalf("%d were recovered", len(recovered))
	}
	want := "training continued 8.0 s after low-worker-1 was preempted at step 20 (InClusterQueue, for UID urgent); lost: 8 steps and 7.0 s"
	if n := disruption.Notice(recovered[0]); n.Message != want {
		t.Errorf("the notice is %q, want %q", n.Message, want)
	}
}

func TestStepsThatAreLostBeforeThePodsEndIsSeenAreItsOwn(t *testing.T) {
	var d disruption.Tracker
	d.Observe(at(0), status(30, computing, 0, 1))
	d.Observe(at(1), status(25, recomputing, 0)) // its stream has ended
	d.OnEvent(at(2), coordinator.PodChanged{Worker: 1, State: coordinator.PodEnded, Cause: trainingjob.DisruptionCause{Kind: trainingjob.DisruptionFailed, Reason: "OOMKilled"}})
	if got := newest(t, &d, 1); got.LostSteps != 5 || got.Kind != trainingjob.DisruptionFailed || got.Reason != "OOMKilled" {
		t.Errorf("got %+v", got)
	}
	if sum := d.Report(); sum.LostSteps != 5 {
		t.Errorf("the sums are %+v", sum)
	}
}

func TestAWorkerIsCountedAmongThoseBeforeItsLossAlsoWhenNobodyIsReadyAnyMoreAsItsEndIsSeen(t *testing.T) {
	var d disruption.Tracker
	d.Observe(at(0), status(6, computing, 0, 1))
	d.Observe(at(1), status(6, recovering)) // worker 1's stream has ended, and worker 0 begins a new process group
	d.OnEvent(at(2), coordinator.PodChanged{Worker: 1, State: coordinator.PodEnded})
	if got := newest(t, &d, 1); got.Workers != 2 {
		t.Errorf("got %+v", got)
	}
	d.Observe(at(3), status(7, computing, 0))
	d.OnEvent(at(4), coordinator.PodChanged{Worker: 0, State: coordinator.PodEnded})
	if got := newest(t, &d, 2); got.Workers != 1 {
		t.Errorf("of the next: %+v", got)
	}
}

func TestAStepAfterTheMasterReceivedSIGTERMIsNoRecovery(t *testing.T) {
	var d disruption.Tracker
	d.Observe(at(0), status(19, computing, 0, 1))
	d.OnEvent(at(1), coordinator.Stop{Cause: coordinator.Evicted})
	last := status(20, computing, 0, 1)
	if recovered := d.Observe(at(2), last); len(recovered) != 0 {
		t.Errorf("recovered are %+v", recovered)
	}
	next := disruption.Resume(persisted(t, last, &d, at(2)), "digest", at(12))
	if recovered := next.Observe(at(13), status(21, computing, 0, 1)); len(recovered) != 1 || recovered[0].LostSeconds < 10 {
		t.Errorf("with the next master, recovered are %+v", recovered)
	}
}

func TestOfSeveralAtOnceTheNewestIsChargedSoThatSumsCountNothingTwice(t *testing.T) {
	var d disruption.Tracker
	d.Observe(at(0), status(10, computing, 0, 1))
	d.OnEvent(at(1), taken(0, "a"))
	d.OnEvent(at(1), taken(1, "b"))
	d.Observe(at(1), status(10, waiting))
	d.Observe(at(5), status(11, computing, 2, 3))
	r := d.Report()
	if r.LostSeconds != 4 || r.Newest[0].LostSeconds != 0 || r.Newest[1].LostSeconds != 4 || r.Newest[0].Recovered == nil {
		t.Errorf("got %+v", r)
	}
}

func TestAWorkerThatTheMasterRetiresOrThatEndsAfterTheLastStepIsNoDisruption(t *testing.T) {
	var d disruption.Tracker
	d.Observe(at(0), status(10, computing, 0, 1))
	d.OnRetire(1)
	d.OnEvent(at(1), coordinator.PodChanged{Worker: 1, State: coordinator.PodRunning})
	d.OnEvent(at(1), coordinator.PodChanged{Worker: 1, State: coordinator.PodRunning, Terminating: true})
	d.OnEvent(at(2), coordinator.PodChanged{Worker: 1, State: coordinator.PodEnded, Terminating: true})
	d.OnEvent(at(2), coordinator.PodChanged{Worker: 1, State: coordinator.PodEnded, Terminating: true, Disrupted: true})
	d.Observe(at(3), status(1000, trainingjob.GoodputSaving, 0))
	d.OnEvent(at(4), coordinator.PodChanged{Worker: 0, State: coordinator.PodEnded})
	if r := d.Report(); r != nil {
		t.Errorf("got %+v", r)
	}
	// The minimum's workers come again with their numbers.
	d.OnEvent(at(5), coordinator.PodChanged{Worker: 1, State: coordinator.PodPending})
	d.OnEvent(at(6), taken(1, "again"))
	newest(t, &d, 1)
}

// persisted is a status as the next master reads it.
func persisted(t *testing.T, s trainingjob.Status, d *disruption.Tracker, now time.Time) (read trainingjob.Status) {
	t.Helper()
	s.Disruptions, s.GoodputSplit.At = d.Report(), now
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func TestTheNextMasterContinuesTheRecordOfOneThatReportedWhyItEnded(t *testing.T) {
	var first disruption.Tracker
	first.Observe(at(0), status(40, computing, 0, 1))
	first.OnEvent(at(2), coordinator.Stop{Cause: coordinator.Evicted, ItsCause: trainingjob.DisruptionCause{
		Pod: "low-master", Kind: trainingjob.DisruptionPreempted, Reason: "InCohortReclamation", ByUID: "urgent",
	}})
	last := status(40, recovering, 0, 1)
	first.Observe(at(3), last)
	second := disruption.Resume(persisted(t, last, &first, at(3)), "digest", at(10))
	second.Observe(at(12), status(0, waiting))
	if other := disruption.Resume(persisted(t, status(0, waiting), &second, at(13)), "digest", at(14)); other.Report().Count != 2 {
		t.Errorf("a second master that is lost before anything is recovered is missing in %+v", other.Report())
	}
	second.Observe(at(20), status(36, recomputing, 0))
	second.Observe(at(22), status(41, computing, 0, 1))
	got := newest(t, &second, 1)
	if got.Role != trainingjob.RoleMaster || got.LostSteps != 4 || got.LostSeconds != 19 || *got.Recovered != 20 || *got.FullSize != 20 {
		t.Errorf("got %+v: %v, %v", got, got.Recovered, got.FullSize)
	}
}

func TestAMasterThatDidNotReportItsEndWasLost(t *testing.T) {
	var first disruption.Tracker
	first.Observe(at(0), status(40, computing, 0, 1))
	read := persisted(t, status(40, computing, 0, 1), &first, at(3))
	second := disruption.Resume(read, "digest", at(10))
	second.Observe(at(11), status(41, computing, 0, 1))
	if got := newest(t, &second, 1); got.Kind != trainingjob.DisruptionLost || !got.At.Equal(at(3)) || got.LostSeconds != 8 || *got.Recovered != 8 {
		t.Errorf("got %+v", got)
	}
	other := disruption.Resume(read, "another", at(10))
	if r := other.Report(); r != nil {
		t.Errorf("a job with another digest has %+v", r)
	}
	read.GoodputSplit.Phase = ""
	over := disruption.Resume(read, "digest", at(10))
	if r := over.Report(); r != nil {
		t.Errorf("a job that had ended has %+v", r)
	}
}

func TestTheRecordIsBoundedAndItsSumsAreNot(t *testing.T) {
	var d disruption.Tracker
	for i := range 3 * trainingjob.MostDisruptions {
		d.Observe(at(float64(i)), status(int64(10+i), computing, i))
		d.OnEvent(at(float64(i)), taken(i, strings.Repeat("p", i+1)))
		d.Observe(at(float64(i)), status(int64(10+i), waiting))
		d.Observe(at(float64(i)+0.5), status(int64(11+i), computing, i+1))
	}
	newest(t, &d, 3*trainingjob.MostDisruptions)
	if sum := d.Report(); sum.LostSeconds != 30 {
		t.Errorf("the sum is %+v", sum)
	}
}

func TestAJobWhoseStepsAreNotKnownRecoversWhenItsCommandRunsAgain(t *testing.T) {
	of := func(phase trainingjob.GoodputPhase, starts int64, ready ...int) trainingjob.Status {
		s := status(0, phase, ready...)
		s.StepsTotal, s.Starts = 0, starts
		return s
	}
	var d disruption.Tracker
	d.Observe(at(0), of(computing, 1, 0, 1))
	d.OnEvent(at(1), taken(1, "a"))
	d.Observe(at(2), of(computing, 1, 0, 1)) // it is signalled to stop, and computes still
	if got := newest(t, &d, 1); got.Recovered != nil {
		t.Errorf("got %+v", got)
	}
	d.Observe(at(3), of(recovering, 1, 0))
	d.Observe(at(7), of(computing, 2, 0))
	if got := newest(t, &d, 1); got.Recovered == nil || *got.Recovered != 6 || got.LostSeconds != 4 {
		t.Errorf("got %+v", got)
	}
}
