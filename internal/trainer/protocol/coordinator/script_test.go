package coordinator

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestCoordinatorFollowsTheScriptsInTestdata replays each file of testdata: one event a line, and below it the effects.
// `go test ./internal/trainer/protocol/coordinator -rewrite` writes the effects; review them as text.
func TestCoordinatorFollowsTheScriptsInTestdata(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".txt"), "_", " ")
		t.Run(name, func(t *testing.T) {
			var c *Coordinator
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				if d.Cmd == "job" {
					c = New(scriptConfig(t, d))
					return "ok\n"
				}
				var out strings.Builder
				for _, line := range append([]string{strings.TrimSpace(d.Cmd + " " + joinArgs(d.CmdArgs))}, lines(d.Input)...) {
					line, at := cutTime(t, d, line)
					event, times := parseEvent(t, d, line)
					for range times {
						for _, event := range append(at, event) {
							for _, e := range c.Step(event) {
								out.WriteString(describe(e) + "\n")
							}
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
	steps, step, k, minimum, maximum, hashEvery, failures := 3, 0, 2, 1, 2, 100, 3
	evaluation, evaluationEvery, checkpoints, checkEvery := 0, 0, 0, 0
	for key, into := range map[string]*int{
		"steps": &steps, "step": &step, "k": &k, "min": &minimum, "max": &maximum,
		"hash-every": &hashEvery, "max-failures": &failures, "check-every": &checkEvery, "checkpoint-every": &checkpoints,
		"evaluation": &evaluation, "evaluation-every": &evaluationEvery,
	} {
		if d.HasArg(key) {
			d.ScanArgs(t, key, into)
		}
	}
	return Config{
		Steps:           int64(steps),
		Step:            int64(step),
		Restarted:       d.HasArg("restarted"),
		Approximate:     d.HasArg("approximate"),
		Minibatches:     func(int64) int { return k },
		EvaluationParts: evaluation,
		EvaluatesAt:     every(evaluationEvery),
		Identity:        Identity{Lineage: "lineage", Job: "job", Numerics: 1},
		AllReduce:       allReduceFrom(d),
		Min:             minimum, Max: maximum, MinPodsExternal: d.HasArg("min-pods-external"), LastWorkerID: -1,
		SilentTicks: 10, RetainedUpdates: 4, HashEvery: int64(hashEvery), MaxFailures: failures,
		CheckpointEvery: int64(checkpoints), CheckEvery: int64(checkEvery),
	}
}

// every is an evaluation every so many steps; 0 is none but the last.
func every(steps int) func(int64) bool {
	return func(step int64) bool { return steps > 0 && step%int64(steps) == 0 }
}

// allReduceFrom reads `allreduce=N`: from N workers on they add between themselves.
func allReduceFrom(d *datadriven.TestData) func(int) bool {
	for _, a := range d.CmdArgs {
		if a.Key == "allreduce" {
			least, _ := strconv.Atoi(a.Vals[0])
			return func(n int) bool { return n >= least }
		}
	}
	return nil
}

func joinArgs(args []datadriven.CmdArg) string {
	var s []string
	for _, a := range args {
		s = append(s, a.String())
	}
	return strings.Join(s, " ")
}

func lines(s string) []string {
	return slices.DeleteFunc(strings.Split(s, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
}

// cutTime takes `at=120ms` off a line: a Clock event precedes the event.
func cutTime(t *testing.T, d *datadriven.TestData, line string) (rest string, clock []Event) {
	t.Helper()
	fields := strings.Fields(line)
	i := slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, "at=") })
	if i < 0 {
		return line, nil
	}
	at, err := time.ParseDuration(strings.TrimPrefix(fields[i], "at="))
	if err != nil {
		d.Fatalf(t, "%q: %v", line, err)
	}
	return strings.Join(slices.Delete(fields, i, i+1), " "), []Event{Clock{At: at}}
}

// parseEvent reads one line of a script, such as `gradient w0 step=0 v0-v1` or `tick heard=w0 times=11`.
func parseEvent(t *testing.T, d *datadriven.TestData, line string) (Event, int) {
	t.Helper()
	fields := strings.Fields(line)
	positional := []string{}
	named := map[string]string{}
	for _, f := range fields[1:] {
		if key, value, ok := strings.Cut(f, "="); ok {
			named[key] = strings.Trim(value, "()")
		} else {
			positional = append(positional, f)
		}
	}
	number := func(s string) int {
		var n int
		if _, err := fmt.Sscanf(strings.TrimLeft(s, "wvp"), "%d", &n); err != nil {
			d.Fatalf(t, "%q: %q is no number", line, s)
		}
		return n
	}
	arg := func(key string, otherwise int) int {
		if v, ok := named[key]; ok {
			return number(v)
		}
		return otherwise
	}
	text := func(key, otherwise string) string {
		if v, ok := named[key]; ok {
			return v
		}
		return otherwise
	}
	spans := func(s string) (spans []Span) {
		for _, word := range strings.Fields(strings.ReplaceAll(s, ",", " ")) {
			lo, hi, isRange := strings.Cut(word, "-")
			span := Span{Lo: number(lo), Hi: number(lo) + 1}
			if isRange {
				span.Hi = number(hi) + 1
			}
			spans = append(spans, span)
		}
		return spans
	}
	worker := func() int { return number(positional[0]) }
	times := arg("times", 1)
	switch fields[0] {
	case "start":
		return Start{}, times
	case "hello":
		identity := Identity{Lineage: text("lineage", "lineage"), Job: text("digest", "job"), Numerics: arg("numerics", 1), Validation: text("validation", "")}
		return Hello{
			Worker:   worker(),
			Identity: identity,
			Step:     int64(arg("step", 0)),
			Hash:     text("hash", "good"),
			OwnHash:  "good",
			Machine:  Machine{Node: text("node", ""), CPU: text("cpu", ""), Kernel: text("kernel", "")},
			Computed: spans(text("computed", "")),
		}, times
	case "applied":
		return Applied{Worker: worker(), Step: int64(arg("step", 0))}, times
	case "gradient":
		lo, hi, isRange := strings.Cut(positional[1], "-")
		g := Gradient{Worker: worker(), Step: int64(arg("step", 0)), Lo: number(lo), Hi: number(lo) + 1}
		if isRange {
			g.Hi = number(hi) + 1
		}
		for _, h := range strings.Split(text("is", ""), ",") {
			if h != "" {
				g.Hashes = append(g.Hashes, uint32(number(h)))
			}
		}
		return g, times
	case "evaluated":
		return EvaluationPart{Worker: worker(), Step: int64(arg("step", 0)), Part: number(positional[1])}, times
	case "unreachable":
		return Unreachable{Worker: worker(), Peer: number(positional[1]), Round: int64(arg("round", 1)), Reason: text("reason", "refused")}, times
	case "leaving":
		return Leaving{Worker: worker()}, times
	case "leave":
		return Left{Worker: worker()}, times
	case "lose":
		return Lost{Worker: worker(), Reason: text("reason", "was lost"), Fault: slices.Contains(positional, "fault")}, times
	case "behind":
		return Behind{Is: true}, times
	case "caught-up":
		return Behind{Is: false}, times
	case "overflow":
		return Overflow{Worker: worker()}, times
	case "hash":
		if positional[0] == "master" {
			return StateHash{Worker: -1, Step: int64(arg("step", 0)), Hash: text("is", "good")}, times
		}
		return StateHash{Worker: worker(), Step: int64(arg("step", 0)), Hash: text("is", "good")}, times
	case "fetched":
		return StateFetched{Worker: worker(), Step: int64(arg("step", 0)), Hash: text("hash", "good")}, times
	case "pod":
		e := PodChanged{Worker: worker(), Reason: text("reason", "")}
		for _, word := range positional[1:] {
			switch word {
			case "pending":
				e.State = PodPending
			case "running":
				e.State = PodRunning
			case "ended":
				e.State = PodEnded
			case "preempted":
				e.Terminating, e.Preempted, e.Disrupted = true, true, true
			case "terminating":
				e.Terminating, e.Disrupted = true, true
			case "minimum":
				e.Minimum = true
			default:
				d.Fatalf(t, "%q: unknown word %q", line, word)
			}
		}
		return e, times
	case "resize":
		return Resize{Min: arg("min", 1), Max: arg("max", 1)}, times
	case "request-checkpoint":
		return CheckpointRequested{}, times
	case "written":
		return CheckpointWritten{Step: int64(arg("step", 0))}, times
	case "not-written":
		return CheckpointNotWritten{Step: int64(arg("step", 0)), Reason: "disk full"}, times
	case "saved":
		return ModelSaved{SHA256: "5ad1"}, times
	case "not-saved":
		return ModelNotSaved{Reason: "disk full"}, times
	case "unhealthy":
		return Unhealthy{Reason: text("reason", "")}, times
	case "fenced":
		return Fenced{Reason: "generation 4 has taken over"}, times
	case "stop":
		switch {
		case slices.Contains(positional, "evicted"):
			return Stop{Cause: Evicted}, times
		case slices.Contains(positional, "suspended"):
			return Stop{Cause: Suspended}, times
		}
		return Stop{}, times
	case "clock": // with at=
		return Clock{}, times
	case "tick":
		e := Tick{Late: slices.Contains(positional, "late")}
		if h, ok := named["heard"]; ok {
			for _, w := range strings.Split(h, ",") {
				e.Heard = append(e.Heard, number(w))
			}
		}
		return e, times
	}
	d.Fatalf(t, "unknown event %q", line)
	return nil, 0
}

// describe is an effect as a line of a script.
func describe(e Effect) string {
	list := func(vs []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(vs), " ", " v"), "[]") }
	switch e := e.(type) {
	case Accept:
		return fmt.Sprintf("accept w%d step=%d v%d…v%d", e.Worker, e.Step, e.Lo, e.Hi-1)
	case AcceptEvaluation:
		return fmt.Sprintf("accept w%d step=%d part %d", e.Worker, e.Step, e.Part)
	case Evaluated:
		return fmt.Sprintf("evaluated step=%d", e.Step)
	case Publish:
		s := fmt.Sprintf("publish step=%d", e.Step)
		for _, w := range sortedKeys(e.Next) {
			s += fmt.Sprintf(" | w%d: v%s", w, list(e.Next[w]))
		}
		if e.Hash {
			s += " | everybody hashes"
		}
		return s
	case Round:
		s := fmt.Sprintf("round %d of step=%d", e.Number, e.Step)
		for _, w := range e.Owners {
			s += fmt.Sprintf(" | w%d: v%s", w, list(e.Assigned[w]))
			if len(e.Assigned[w]) == 0 {
				s = strings.TrimSuffix(s, ": v")
			}
		}
		for _, w := range e.Listeners {
			s += fmt.Sprintf(" | w%d listens", w)
		}
		for _, w := range sortedKeys(e.Backups) {
			s += fmt.Sprintf(" | w%d checks v%s", w, list(e.Backups[w]))
		}
		if e.Hash {
			s += " | everybody hashes"
		}
		return s
	case Relay:
		return fmt.Sprintf("w%d sends the sum of step=%d to %v, as of round %d", e.From, e.Step, e.To, e.Round)
	case Advance:
		return fmt.Sprintf("all have applied step=%d", e.Step)
	case Assign:
		return fmt.Sprintf("assign w%d step=%d: v%s", e.Worker, e.Step, list(e.VirtualWorkers))
	case Evaluate:
		return fmt.Sprintf("evaluate w%d step=%d: parts %s", e.Worker, e.Step, strings.Trim(fmt.Sprint(e.Parts), "[]"))
	case SendState:
		return fmt.Sprintf("send state to w%d", e.Worker)
	case SendUpdates:
		return fmt.Sprintf("send updates from %d to w%d", e.From, e.Worker)
	case Subscribe:
		return fmt.Sprintf("subscribe w%d", e.Worker)
	case FetchState:
		return fmt.Sprintf("fetch the state of w%d", e.Worker)
	case AdoptState:
		return fmt.Sprintf("adopt the state of w%d at step %d", e.Worker, e.Step)
	case Refuse:
		return fmt.Sprintf("refuse w%d: %s", e.Worker, e.Reason)
	case Disconnect:
		return fmt.Sprintf("disconnect w%d: %s", e.Worker, e.Reason)
	case Dismiss:
		return fmt.Sprintf("dismiss w%d", e.Worker)
	case CreatePod:
		if e.Minimum {
			return fmt.Sprintf("create pod w%d (minimum)", e.Worker)
		}
		return fmt.Sprintf("create pod w%d", e.Worker)
	case DeletePod:
		return fmt.Sprintf("delete pod w%d: %s", e.Worker, e.Reason)
	case Checkpoint:
		return fmt.Sprintf("checkpoint step=%d", e.Step)
	case Withdraw:
		return fmt.Sprintf("withdraw what was written after step %d", e.After)
	case SaveModel:
		return "save the model"
	case Report:
		return "report"
	case Notice:
		return fmt.Sprintf("notice %s: %s", e.Reason, e.Message)
	case Exit:
		return strings.TrimSuffix(fmt.Sprintf("exit %d: %s", e.Code, e.Reason), ": ")
	}
	return fmt.Sprintf("%T", e)
}
