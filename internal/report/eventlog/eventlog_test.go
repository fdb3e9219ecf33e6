package eventlog_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// good is the log of the scenario elastic-scheduling as it should go.
const good = "testdata/elastic-scheduling.jsonl"

func read(t *testing.T, path string) []eventlog.Event {
	t.Helper()
	events, err := eventlog.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestALogThatIsReadAndWrittenIsTheSame(t *testing.T) {
	want, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for _, event := range read(t, good) {
		if err := eventlog.Write(&log, event); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(want), log.String()); diff != "" {
		t.Error(diff)
	}
}

func TestALineThatIsNoEventIsRefusedWithItsNumber(t *testing.T) {
	_, err := eventlog.Read(strings.NewReader("{\"time\":\"2026-05-04T10:00:00Z\"}\n{\"time\":"))
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error %v, want one that names line 2", err)
	}
}

func FuzzReadNeverPanics(f *testing.F) {
	f.Add([]byte(`{"time":"2026-05-04T10:00:00Z","pod":{"name":"a","uid":"u"}}`))
	f.Fuzz(func(_ *testing.T, log []byte) {
		if events, err := eventlog.Read(bytes.NewReader(log)); err == nil {
			eventlog.Replay(events).Summarize()
		}
	})
}

func TestAPreemptedPodStaysPreemptedWhenItsLastStateLeavesThatOut(t *testing.T) {
	var log eventlog.Builder
	pod := eventlog.Pod{Name: "a", UID: "u", Phase: "Running"}
	for second, change := range []func(){
		func() {},
		func() { pod.Disruption, pod.Deleting = eventlog.PreemptionByScheduler, true },
		func() { pod.Disruption, pod.Deleted = "", true },
	} {
		change()
		state := pod
		log.Add(eventlog.Event{Time: time.Unix(int64(second+1), 0), Pod: &state})
	}
	h := log.History()
	if len(h.Pods) != 1 || !h.Pods[0].Preempted() {
		t.Fatalf("pods %+v, want one that was preempted", h.Pods)
	}
	if ran := h.Pods[0].Ended.Sub(h.Pods[0].Running); ran != 2*time.Second {
		t.Errorf("it ran for %s, want 2s", ran)
	}
}

func TestASummaryHasTheRunAndWaitingTimesOfAJob(t *testing.T) {
	summaries := eventlog.Replay(read(t, good)).Summarize()
	if len(summaries) != 2 || summaries[0].Job != "low-prio-job" {
		t.Fatalf("summaries %+v, want the low job's and the high job's", summaries)
	}
	low, high := summaries[0], summaries[1]
	if low.Preemptions != 1 || low.StepsDone != 1000 || low.Took != 38500*time.Millisecond {
		t.Errorf("the low job: %+v", low)
	}
	if low.Waited != 11120*time.Millisecond {
		t.Errorf("the low job's workers waited %s, want the replacement's 11.12s", low.Waited)
	}
	if high.Waited != 300*time.Millisecond {
		t.Errorf("the high job's worker waited %s, want 300ms", high.Waited)
	}
}

func TestNodesAreInTheOrderInWhichPeopleCount(t *testing.T) {
	var builder eventlog.Builder
	for _, name := range []string{"n-10", "n-9", "m-100", "n-09", "n-1a", "n"} {
		builder.Add(eventlog.Event{Time: time.Unix(1, 0), Node: &eventlog.Node{Name: name}})
	}
	var names []string
	for _, n := range builder.History().Nodes {
		names = append(names, n.Name)
	}
	if got, want := strings.Join(names, " "), "m-100 n n-1a n-9 n-09 n-10"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
