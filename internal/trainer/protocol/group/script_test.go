package group

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// TestTheGroupFollowsTheScriptsInTestdata replays each file of testdata: one event a line, and below it the effects.
// `go test ./internal/trainer/protocol/group -rewrite` writes the effects; review them as text.
func TestTheGroupFollowsTheScriptsInTestdata(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".txt"), "_", " "), func(t *testing.T) {
			var g *Group
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				if d.Cmd == "job" {
					g = New(scriptConfig(t, d))
					return "ok\n"
				}
				var out strings.Builder
				var args []string
				for _, a := range d.CmdArgs {
					args = append(args, a.String())
				}
				for _, line := range append([]string{d.Cmd + " " + strings.Join(args, " ")}, strings.Split(d.Input, "\n")...) {
					if strings.TrimSpace(line) == "" {
						continue
					}
					for _, event := range parse(t, d, line) {
						for _, e := range g.Step(event) {
							out.WriteString(describe(e) + "\n")
						}
					}
				}
				if out.Len() == 0 {
					return "nothing\n"
				}
				return out.String()
			})
		})
	}
}

func scriptConfig(t *testing.T, d *datadriven.TestData) Config {
	t.Helper()
	steps, minimum, maximum, multiple, failures, checkpoints := 3, 1, 2, 1, 3, 0
	for key, into := range map[string]*int{
		"steps": &steps, "min": &minimum, "max": &maximum, "multiple": &multiple, "max-failures": &failures, "checkpoint-every": &checkpoints,
	} {
		if d.HasArg(key) {
			d.ScanArgs(t, key, into)
		}
	}
	return Config{
		Steps: int64(steps), Identity: Identity{Lineage: "lineage", Job: "job", Numerics: 1},
		Min: minimum, Max: maximum, Multiple: multiple, MinPodsExternal: d.HasArg("min-pods-external"), LastWorkerID: -1,
		Restarted: d.HasArg("restarted"), Gather: 3 * time.Second, JoinInterval: 2 * time.Second, Settle: 200 * time.Millisecond,
		IdleTimeout: 5 * time.Second, RetryInterval: time.Second, MaxFailures: failures, SilentTicks: 10, CheckpointEvery: int64(checkpoints),
	}
}

// parse reads one line of a script, such as `reduced w0 gen=1 step=0 at=120ms`. A time precedes its event.
func parse(t *testing.T, d *datadriven.TestData, line string) (events []Event) {
	t.Helper()
	named, words := map[string]string{}, []string{}
	for _, f := range strings.Fields(line) {
		if key, value, ok := strings.Cut(f, "="); ok {
			named[key] = value
		} else {
			words = append(words, f)
		}
	}
	number := func(key string, otherwise int64) int64 {
		n := otherwise
		if text, ok := named[key]; ok {
			if _, err := fmt.Sscanf(text, "%d", &n); err != nil {
				d.Fatalf(t, "%q: %q is no number", line, text)
			}
		}
		return n
	}
	worker := -1
	if len(words) > 1 {
		_, _ = fmt.Sscanf(words[1], "w%d", &worker)
	}
	if text, ok := named["at"]; ok {
		at, err := time.ParseDuration(text)
		if err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		events = append(events, coordinator.Clock{At: at})
	}
	has := func(word string) bool { return slices.Contains(words, word) }
	var e Event
	switch words[0] {
	case "start":
		e = coordinator.Start{}
	case "ready":
		lineage := "lineage"
		if has("stranger") {
			lineage = "other"
		}
		e = Ready{
			Worker: worker, Identity: Identity{Lineage: lineage, Job: "job", Numerics: 1}, Held: number("held", NoState), Of: number("of", 0),
			Checkpoint: number("checkpoint", NoState), Finishing: has("finishing"), Address: fmt.Sprintf("host-%d:1", worker),
		}
	case "idle":
		e = Idle{Worker: worker, Generation: number("gen", 1), Held: number("held", 0), Of: number("of", 0), Reason: strings.ReplaceAll(named["reason"], "-", " ")}
	case "reduced":
		e = Reduced{Worker: worker, Generation: number("gen", 1), Step: number("step", 0), LossSum: float64(number("loss", 0)), Records: int(number("records", 1))}
	case "saved":
		e = Saved{Worker: worker, Step: number("step", 0)}
	case "finished":
		e = Finished{Worker: worker}
	case "leaving":
		e = coordinator.Leaving{Worker: worker}
	case "lose":
		e = coordinator.Lost{Worker: worker, Reason: "was lost"}
	case "pod":
		p := coordinator.PodChanged{Worker: worker, Minimum: has("minimum"), Reason: named["reason"]}
		switch {
		case has("running"):
			p.State = coordinator.PodRunning
		case has("ended"):
			p.State, p.Disrupted = coordinator.PodEnded, has("disrupted")
		case has("preempted"):
			p.State, p.Terminating, p.Preempted, p.Disrupted = coordinator.PodRunning, true, true, true
		}
		e = p
	case "resize":
		e = coordinator.Resize{Min: int(number("min", 1)), Max: int(number("max", 1))}
	case "stop":
		e = coordinator.Stop{}
	case "tick":
		tick := coordinator.Tick{Late: has("late")}
		for _, w := range words[1:] {
			id := 0
			if _, err := fmt.Sscanf(w, "w%d", &id); err == nil {
				tick.Heard = append(tick.Heard, id)
			}
		}
		e = tick
	case "wait":
		return events
	default:
		d.Fatalf(t, "unknown event %q", line)
	}
	for range number("times", 1) {
		events = append(events, e)
	}
	return events
}

// describe is an effect as a line of a script.
func describe(e Effect) string {
	workers := func(ids []int) string {
		var names []string
		for _, id := range ids {
			names = append(names, fmt.Sprintf("w%d", id))
		}
		return strings.Join(names, " ")
	}
	switch e := e.(type) {
	case Begin:
		s := fmt.Sprintf("begin %d step=%d at %s | %s", e.Generation, e.Step, e.Store, workers(e.Members))
		if e.Load {
			s += fmt.Sprintf(" | w%d loads", e.Members[e.Source])
		}
		if e.Broadcast {
			s += fmt.Sprintf(" | w%d broadcasts", e.Members[e.Source])
		}
		return s
	case Commit:
		s := fmt.Sprintf("commit %d step=%d | %s | loss %v of %d", e.Generation, e.Step, workers(e.Members), e.LossSum, e.Records)
		if e.Save {
			s += " | save"
		}
		if e.Last {
			s += " | last"
		}
		return s
	case Abort:
		return fmt.Sprintf("abort %d | %s", e.Generation, workers(e.Members))
	case Save:
		return fmt.Sprintf("save w%d step=%d", e.Worker, e.Step)
	case Finish:
		if e.Saver {
			return fmt.Sprintf("finish w%d, which saves", e.Worker)
		}
		return fmt.Sprintf("finish w%d", e.Worker)
	case coordinator.Refuse:
		return fmt.Sprintf("refuse w%d: %s", e.Worker, e.Reason)
	case coordinator.Disconnect:
		return fmt.Sprintf("disconnect w%d: %s", e.Worker, e.Reason)
	case coordinator.Dismiss:
		return fmt.Sprintf("dismiss w%d", e.Worker)
	case coordinator.CreatePod:
		if e.Minimum {
			return fmt.Sprintf("create pod w%d (minimum)", e.Worker)
		}
		return fmt.Sprintf("create pod w%d", e.Worker)
	case coordinator.DeletePod:
		return fmt.Sprintf("delete pod w%d: %s", e.Worker, e.Reason)
	case coordinator.Report:
		return "report"
	case coordinator.Notice:
		return fmt.Sprintf("notice %s: %s", e.Reason, e.Message)
	case coordinator.Exit:
		return strings.TrimSuffix(fmt.Sprintf("exit %d: %s", e.Code, e.Reason), ": ")
	}
	return fmt.Sprintf("%T", e)
}
