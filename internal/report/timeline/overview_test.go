package timeline

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// crowd is a log of many nodes, each with a pod after the other; the second one preempts the first.
func crowd(nodes int) *eventlog.History {
	var t eventlog.Builder
	at := func(minutes int, e eventlog.Event) {
		e.Time = start.Add(time.Duration(minutes) * time.Minute)
		t.Add(e)
	}
	for n := range nodes {
		at(0, eventlog.Event{Node: &eventlog.Node{Name: fmt.Sprintf("n-%d", n), CPU: "4", Memory: "8Gi"}})
	}
	for n := range nodes {
		low := eventlog.Pod{Name: fmt.Sprintf("low-%d", n), UID: fmt.Sprintf("l%d", n), Job: "low", Role: "task", PriorityClass: "low", Phase: "Pending", Requests: map[string]string{"cpu": "2"}}
		at(0, eventlog.Event{Pod: &low})
		bound := low
		bound.Node, bound.Phase = fmt.Sprintf("n-%d", n), "Running"
		at(0, eventlog.Event{Pod: &bound})
	}
	for n := range nodes {
		gone := eventlog.Pod{Name: fmt.Sprintf("low-%d", n), UID: fmt.Sprintf("l%d", n), Job: "low", Role: "task", PriorityClass: "low", Phase: "Running", Disruption: eventlog.PreemptionByScheduler, Deleted: true}
		at(60, eventlog.Event{Pod: &gone})
	}
	at(90, eventlog.Event{Node: &eventlog.Node{Name: "n-1", CPU: "4", Memory: "8Gi", Lost: true}})
	at(120, eventlog.Event{Job: &eventlog.Job{Name: "low"}})
	return t.History()
}

func crowded(t *testing.T, h *eventlog.History) string {
	t.Helper()
	var out bytes.Buffer
	if err := (Page{Title: "Crowd", Simulated: true}).Render(&out, h); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestFewNodesAreDrawnPodByPod(t *testing.T) {
	if text := crowded(t, crowd(3)); !strings.Contains(text, `class="lane"`) || strings.Contains(text, "Each row is") {
		t.Error("three nodes with a pod each are not drawn as lanes with bars")
	}
}

func TestManyNodesAreDrawnByHowMuchOfThemIsInUse(t *testing.T) {
	text := crowded(t, crowd(300))
	for _, want := range []string{"Each row is one node", "n-299: 25 % of cpu in use, 1 pod, 1 preemption", `class="shade4"`, `class="absent"`, `class="mark"`, "cpu held by pods"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page of 300 nodes does not show %q", want)
		}
	}
	if strings.Contains(text, `class="lane"`) {
		t.Error("300 nodes are drawn pod by pod")
	}
}

func TestMoreNodesThanRowsShareRowsAndThePageReportsIt(t *testing.T) {
	if text := crowded(t, crowd(1000)); !strings.Contains(text, "Each row is 3 nodes") || !strings.Contains(text, "n-3 to n-5: 25 % of cpu") {
		t.Error("a thousand nodes are not three to a row")
	}
}

func TestWhatIsHeldIsSpreadOverTheSlicesInProportion(t *testing.T) {
	l := audit(crowd(2), "cpu", start, start.Add(2*time.Hour), 2)
	for i, want := range []struct{ capacity, used float64 }{{8, 4}, {6, 0}} { // n-1 was lost in the middle of the second hour
		if l.capacity[i] != want.capacity || l.used[i] != want.used {
			t.Errorf("hour %d: %g of %g are held, want %g of %g", i, l.used[i], l.capacity[i], want.used, want.capacity)
		}
	}
}
