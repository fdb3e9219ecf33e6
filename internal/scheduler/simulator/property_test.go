package simulator_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// draw makes a scenario in which every job could end if it were alone.
func draw(t *rapid.T) string {
	var text strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	number := func(what string, from, to int) int { return rapid.IntRange(from, to).Draw(t, what) }
	yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
	put("name: drawn\nseed: %d", number("seed", 0, 1000))
	put("nodes: [{name: n, count: %d, allocatable: {cpu: \"4\", memory: 8Gi}, labels: {group: n}, domains: {rack: [r1, r2]}}]", number("nodes", 2, 4))
	put("priorityClasses: [{name: low, value: 100}, {name: high, value: 1000}, {name: never, value: 500, preemptionPolicy: Never}]")
	flavor, requests := "name: f", []string{""}
	if yes("topology") {
		put("topologies: [{name: t, levels: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]}]")
		flavor += ", nodeLabels: {group: n}, topologyName: t"
		requests = append(requests, "required: rack", "preferred: rack", "unconstrained: true", "slice_size: 1, slice_required: rack")
	}
	request := func() string { // only under a queue
		if r := rapid.SampledFrom(requests).Draw(t, "request"); r != "" {
			return ", topology: {" + r + "}"
		}
		return ""
	}
	put("resourceFlavors: [{%s}]\nworkloadPriorityClasses: [{name: w1, value: 100}, {name: w2, value: 200}]", flavor)
	if yes("checkpoint age") {
		put("checkpointAge: {step: %ds, max: %d, hold: %ds, every: %ds}", number("step", 1, 300), number("most", 1, 99), number("hold", 0, 60), number("look", 1, 60))
	}
	put("clusterQueues:")
	for q := range 2 {
		put("  - {name: q%d, cohortName: c, preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}, resourceGroups: "+
			"[{coveredResources: [cpu, memory], flavors: [{name: f, resources: [{name: cpu, nominalQuota: \"4\"}, {name: memory, nominalQuota: 8Gi}]}]}]}", q)
	}
	put("localQueues: [{name: q0, clusterQueue: q0}, {name: q1, clusterQueue: q1}]")
	if yes("nodes fail") {
		put("faults:")
		for range number("faults", 1, 4) {
			put("  - {at: %ds, node: n-%d, returns: %ds}", number("at", 1, 2000), number("node", 0, 1), number("returns", 1, 600))
		}
	}
	put("jobs:")
	for j := range number("jobs", 1, 8) {
		class := rapid.SampledFrom([]string{"low", "high", "never"}).Draw(t, "class")
		queue := number("queue", -1, 1)
		put("  - name: j%d\n    submit: %ds", j, number("submit", 0, 900))
		if yes("elastic") {
			put("    elastic:\n      master: {requests: {cpu: 100m}, priorityClass: high, starts: %dms}", number("starts", 0, 3000))
			put("      workers: {min: 1, max: %d, requests: {cpu: \"1\", memory: 1Gi}, priorityClass: %s, starts: %dms, joins: %dms, stops: %dms}",
				number("max", 1, 5), class, number("starts", 0, 3000), number("joins", 0, 3000), number("stops", 0, 3000))
			put("      steps: %d\n      speed: {gradsToWait: 4, gradient: %dms}\n      checkpointEvery: %ds", number("steps", 1, 3000), number("gradient", 1, 200), number("every", 0, 100))
			if queue >= 0 {
				put("      queue: {name: q%d, priorityClass: w1, minPriorityClass: w2}", queue)
				if r := request(); r != "" {
					put("      %s", strings.TrimPrefix(r, ", "))
				}
			}
			continue
		}
		put("    gang: {pods: %d, requests: {cpu: \"%d\"}, priorityClass: %s, runs: %ds, checkpointEvery: %ds, restart: %ds, starts: %dms, stops: %dms%s}",
			number("pods", 1, 2), number("cpu", 1, 2), class, number("runs", 1, 900), number("every", 0, 300), number("restart", 0, 30),
			number("starts", 0, 3000), number("stops", 0, 3000), map[bool]string{true: fmt.Sprintf(", queue: q%d, workloadPriorityClass: w%d%s", max(queue, 0), number("w", 1, 2), request())}[queue >= 0])
	}
	return text.String()
}

func TestWhateverHappensEveryJobEndsAndNoNodeHoldsMoreThanItHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := draw(t)
		first, summary := drawn(t, text)
		again, _ := drawn(t, text)
		if !bytes.Equal(first, again) {
			t.Fatal("the same scenario has two logs")
		}
		if summary.Finished != summary.Jobs {
			t.Fatalf("not ended: %v\n%s", summary.Unfinished, text)
		}
		if summary.Goodput > 10_000 || summary.Useful+summary.Lost > summary.Held+1 {
			t.Fatalf("held %d s, useful %d s, lost %d s, goodput %s", summary.Held, summary.Useful, summary.Lost, summary.Goodput)
		}
		events, err := eventlog.Read(bytes.NewReader(first))
		if err != nil {
			t.Fatal(err)
		}
		checkNodes(t, events)
		checkJobs(t, eventlog.Replay(events))
	})
}

func drawn(t *rapid.T, text string) ([]byte, *simulator.Summary) {
	s, err := scenariofile.Parse("drawn.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var log bytes.Buffer
	summary, err := simulator.Run(context.Background(), s, simulator.Options{Log: func(e eventlog.Event) error { return eventlog.Write(&log, e) }})
	if err != nil {
		t.Fatal(err)
	}
	return log.Bytes(), summary
}

// checkNodes follows the log: what runs on a node fits, and nothing is on a node that is lost.
func checkNodes(t *rapid.T, events []eventlog.Event) {
	held := map[string]int64{}
	on := map[string]string{} // pods on nodes, by UID
	request := map[string]int64{}
	lost := map[string]bool{}
	last := time.Time{}
	for i, e := range events {
		if e.Time.Before(last) {
			t.Fatalf("event %d is earlier than the one before it", i)
		}
		last = e.Time
		switch {
		case e.Node != nil:
			lost[e.Node.Name] = e.Node.Lost
		case e.Pod != nil:
			p := e.Pod
			if cpu := p.Requests["cpu"]; cpu != "" {
				q := resource.MustParse(cpu)
				request[p.UID] = q.MilliValue()
			}
			ended := p.Deleted || p.Phase == "Succeeded"
			switch {
			case ended && on[p.UID] != "":
				held[on[p.UID]] -= request[p.UID]
				delete(on, p.UID)
			case !ended && p.Node != "" && on[p.UID] == "":
				on[p.UID] = p.Node
				held[p.Node] += request[p.UID]
				if held[p.Node] > 4000 || lost[p.Node] {
					t.Fatalf("%s has pods that ask for %dm of 4 CPU (lost: %t) after event %d", p.Node, held[p.Node], lost[p.Node], i)
				}
			}
		}
	}
}

// checkJobs looks at the reports of elastic jobs: all steps are done at the end, and none is ever taken back but by the
// loss of everything.
func checkJobs(t *rapid.T, h *eventlog.History) {
	for _, job := range h.Jobs {
		last := job.Last().Status
		if last.StepsDone != last.StepsTotal || last.Phase != "Succeeded" {
			t.Fatalf("%s ended as %s with %d of %d steps", job.Name, last.Phase, last.StepsDone, last.StepsTotal)
		}
	}
}
