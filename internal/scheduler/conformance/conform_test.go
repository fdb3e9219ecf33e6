package conformance

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recordings are what the tests compare with: a selection that is here always, and those of KUEUE_RECORDINGS=DIR[:DIR].
func recordings() []string {
	return append([]string{"testdata"}, filepath.SplitList(os.Getenv("KUEUE_RECORDINGS"))...)
}

func TestTheEngineDecidesLikeARealKueue(t *testing.T) {
	n := 0
	for s, err := range Read(recordings()...) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if d := Difference(s); d != "" {
			t.Errorf("%s: %s", s.Name, d)
		}
	}
	if n < 50 {
		t.Errorf("only %d recordings were found", n)
	}
}

// one gives a recording with evictions, read anew each time.
func one(t *testing.T) *Scenario {
	t.Helper()
	for s, err := range Read("testdata") {
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range s.Outcomes[:s.Asserted()] {
			if len(o.Events) > 0 && o.Events[0].Event == "Evicted" && len(o.ClusterQueues) > 0 {
				return s
			}
		}
	}
	t.Fatal("no recording has an eviction")
	return nil
}

func TestEveryDifferenceIsNamed(t *testing.T) {
	// evicting is the first outcome with an eviction, and the name of a workload that holds quota there.
	evicting := func(s *Scenario) (*Outcome, string) {
		for i := range s.Outcomes {
			o := &s.Outcomes[i]
			if len(o.Events) == 0 || o.Events[0].Event != "Evicted" {
				continue
			}
			for name, w := range o.Workloads {
				if w.State == "Admitted" && w.Count != nil {
					return o, name
				}
			}
		}
		panic("no outcome has an eviction")
	}
	change := func(s *Scenario, f func(*WorkloadState)) {
		o, name := evicting(s)
		w := o.Workloads[name]
		f(&w)
		o.Workloads[name] = w
	}
	for name, test := range map[string]struct {
		tamper func(*Scenario)
		want   string
	}{
		"an event too many": {func(s *Scenario) {
			o, _ := evicting(s)
			o.Events = append(o.Events, Event{Event: "Admitted", Workload: "nobody"})
		}, `expected "Admitted nobody"`},
		"an event too few":     {func(s *Scenario) { o, _ := evicting(s); o.Events = o.Events[1:] }, `got "Evicted`},
		"another preemptor":    {func(s *Scenario) { o, _ := evicting(s); o.Events[0].By = "nobody" }, "by nobody"},
		"another state":        {func(s *Scenario) { change(s, func(w *WorkloadState) { w.State = "Pending" }) }, "expected state Pending"},
		"another count":        {func(s *Scenario) { change(s, func(w *WorkloadState) { n := int32(77); w.Count = &n }) }, "expected count 77"},
		"another flavor":       {func(s *Scenario) { change(s, func(w *WorkloadState) { w.Flavors = map[string]string{"cpu": "x"} }) }, "expected flavors"},
		"another priority":     {func(s *Scenario) { change(s, func(w *WorkloadState) { w.Priority++ }) }, "expected priority"},
		"another eviction":     {func(s *Scenario) { change(s, func(w *WorkloadState) { w.Evictions = map[string]int32{"X": 9} }) }, "expected evictions"},
		"another queue":        {func(s *Scenario) { change(s, func(w *WorkloadState) { w.ClusterQueue = "x" }) }, `expected quota of "x"`},
		"a missing workload":   {func(s *Scenario) { o, n := evicting(s); delete(o.Workloads, n) }, "not expected"},
		"an extra workload":    {func(s *Scenario) { o, _ := evicting(s); o.Workloads["ghost"] = WorkloadState{} }, "workload ghost"},
		"another reservation":  {func(s *Scenario) { o, _ := evicting(s); empty(o) }, "reserved"},
		"a step that is wrong": {func(s *Scenario) { s.Steps[0].Op = "jump" }, `"jump" is not known`},
	} {
		t.Run(name, func(t *testing.T) {
			s := one(t)
			test.tamper(s)
			if d := Difference(s); !strings.Contains(d, test.want) || !strings.HasPrefix(d, "step ") {
				t.Errorf("the difference is %q, which does not name %q", d, test.want)
			}
		})
	}
}

// empty takes all reservations away.
func empty(o *Outcome) {
	for name, q := range o.ClusterQueues {
		q.Reserved = nil
		o.ClusterQueues[name] = q
	}
}

func TestTextsTimesAndUIDsAreNotCompared(t *testing.T) {
	s := one(t)
	for i := range s.Outcomes {
		s.Outcomes[i].At += 100
		for name, w := range s.Outcomes[i].Workloads {
			w.Why, w.ReservedAt, w.CreatedAt = &Why{Message: "another"}, nil, 12345
			s.Outcomes[i].Workloads[name] = w
		}
	}
	if d := Difference(s); d != "" {
		t.Error(d)
	}
}

func TestOnlyStepsThatDoNotDependOnTimingAreAsserted(t *testing.T) {
	n := func(n int) *int { return &n }
	for name, test := range map[string]struct {
		checks Checks
		want   int
	}{
		"nothing said":                     {Checks{}, 9},
		"a number":                         {Checks{AssertedSteps: n(4)}, 4},
		"more than there are":              {Checks{AssertedSteps: n(40)}, 9},
		"the real Kueue again, equal":      {Checks{ReplayedOnRealKueue: "equal", InProcessScheduler: "differs from step 2 on"}, 9},
		"in one process, equal":            {Checks{ReplayedOnRealKueue: "differs from step 2 on", InProcessScheduler: "equal"}, 9},
		"both differ: the later":           {Checks{ReplayedOnRealKueue: "differs from step 2 on", InProcessScheduler: "differs from step 5 on"}, 5},
		"one not done, the other differs":  {Checks{ReplayedOnRealKueue: "not replayed", InProcessScheduler: "differs from step 3 on"}, 3},
		"neither done":                     {Checks{ReplayedOnRealKueue: "not replayed", InProcessScheduler: "not run"}, 9},
		"a difference beyond the last one": {Checks{ReplayedOnRealKueue: "differs from step 99999999999999999999 on"}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Scenario{Steps: make([]Step, 9), Checks: test.checks}
			if got := s.Asserted(); got != test.want {
				t.Errorf("%d steps are asserted, not %d", got, test.want)
			}
		})
	}
}

func TestBadFilesAreNamedWithTheirLine(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, ".gz") {
			var b bytes.Buffer
			zip := gzip.NewWriter(&b)
			_, _ = zip.Write([]byte(text))
			_ = zip.Close()
			text = b.String()
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := `{"format":1,"name":"x","future":{"field":[1]}}`
	for name, test := range map[string]struct{ path, want string }{
		"a line cut short":         {write("cut.jsonl", good+"\n\n"+good[:20]), "cut.jsonl: line 3"},
		"the same compressed":      {write("cut.jsonl.gz", good+"\n"+good[:20]), "cut.jsonl.gz: line 2"},
		"a file that is not JSON":  {write("text.json", "{\n \"format\": 1,\n oops\n}"), "text.json: line 3"},
		"a file that is not zip":   {func() string { p := write("x.json", "plain"); _ = os.Rename(p, p+".gz"); return p + ".gz" }(), "x.json.gz"},
		"another format":           {write("new.json", `{"format":2,"name":"x"}`), "format 2"},
		"outcomes without steps":   {write("odd.json", `{"format":1,"name":"x","outcomes":[{}]}`), "0 steps, but 1 outcomes"},
		"a quantity that is none":  {write("q.json", `{"format":1,"name":"x","steps":[{"op":"setQuota","set":{"nominalQuota":"lots"}}],"outcomes":[{}]}`), "q.json"},
		"a file that is not there": {filepath.Join(dir, "nowhere"), "nowhere"},
		"a directory with nothing": {t.TempDir(), "no file .json"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			for _, err = range Read(test.path) {
				if err != nil {
					break
				}
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error %v does not name %q", err, test.want)
			}
		})
	}
}

func TestOutcomesAreWrittenAsTheyAreRead(t *testing.T) {
	s := one(t)
	got, err := Replay(s)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var again []Outcome
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if d := got[i].Difference(&again[i]); d != "" {
			t.Errorf("outcome %d: %s", i, d)
		}
	}
}

func FuzzRecordings(f *testing.F) {
	n := 0
	for s, err := range Read("testdata") {
		if err != nil {
			f.Fatal(err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		if n++; len(text) < 30_000 {
			f.Add(text)
		}
	}
	f.Add([]byte(`{"format":1,"name":"x","steps":[{"op":"submit","workload":{"name":"w","queue":"q","podSets":[{"count":-1}]}}],"outcomes":[{}]}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		s, err := Parse(text)
		if err != nil || len(s.Steps) > 50 || len(s.ClusterQueues) > 20 {
			return
		}
		Difference(s) // it must end without a panic, whatever it says
	})
}
