package framework

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/torchtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const counted = 10

// counting are the options of testdata/counting.py with ten records.
func counting(t *testing.T) (Options, *eventually.Text) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	t.Setenv("COUNTED_RECORDS", "10")
	text, err := os.ReadFile("testdata/counting.py")
	if err != nil {
		t.Fatal(err)
	}
	log := &eventually.Text{}
	return Options{
		Command: []string{python}, Name: "counting.py", Script: text, Seed: 3, MinibatchSize: 4, Output: log, Finite: kernel.Portable().Finite,
	}, log
}

func start(t *testing.T, o Options) *Network {
	t.Helper()
	n, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// childOf returns the process of a script that runs as a child of this one.
func childOf(n *Network) *command { return n.child.script.(*command) }

// minibatch is the records with these numbers.
func minibatch(numbers ...uint64) *graph.Batch {
	b := &graph.Batch{N: len(numbers)}
	for _, i := range numbers {
		b.Records = append(b.Records, binary.LittleEndian.AppendUint64(nil, i))
	}
	return b
}

func initialState(n *Network) []float32 {
	state := make([]float32, n.StateSize())
	n.Init(state, 3)
	return state
}

func TestAScriptComputesGradientsUpdatesAndEvaluations(t *testing.T) {
	o, _ := counting(t)
	n := start(t, o)
	if n.StateSize() != counted+4 || n.TrainableSize() != counted || n.StatsSize() != 2 || n.Description().Model != "counting" {
		t.Fatalf("%d %d %d %+v", n.StateSize(), n.TrainableSize(), n.StatsSize(), n.Description())
	}
	state := initialState(n)
	if state[counted+2] != 3 {
		t.Errorf("the script did not get the seed: %v", state)
	}
	out := make([]float32, counted+2)
	r, err := n.Gradient(state, minibatch(4, 7, 8), 3, 0, 1, 3, out, nil)
	if err != nil || r.LossSum != 19 || r.Counts[0] != 2 || r.Records != 3 {
		t.Errorf("%+v %v", r, err)
	}
	if want := []float32{0, 0, 0, 0, -1, 0, 0, -1, -1, 0, 1, 1}; !slices.Equal(out, want) {
		t.Errorf("gradient %v", out)
	}
	if err := n.Apply(state, gradient.Sum{Dense: out[:counted]}, [][]float32{out[counted:], out[counted:]}, 0); err != nil {
		t.Fatal(err)
	}
	if want := []float32{0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 2, 2, 3, 1}; !slices.Equal(state, want) {
		t.Errorf("state %v", state)
	}
	if r, err := n.Evaluate(state, minibatch(1, 2)); err != nil || r.LossSum != 3 || r.Counts[0] != 1 || r.Records != 2 {
		t.Errorf("%+v %v", r, err)
	}
	if names := n.Export(state); len(names) != 3 || names[0].Name != "count" || len(n.Snapshot(state)) != 4 {
		t.Errorf("exported %v", names)
	}
}

func TestAnUpdateIsOfTheStateThatItIsGivenWhateverTheScriptHeldBefore(t *testing.T) {
	o, _ := counting(t)
	n := start(t, o)
	first, second := initialState(n), initialState(n)
	ones := slices.Repeat([]float32{-1}, counted)
	for step := range int64(3) {
		if err := n.Apply(first, gradient.Sum{Dense: ones}, nil, step); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Apply(second, gradient.Sum{Dense: ones}, nil, 0); err != nil {
		t.Fatal(err)
	}
	if err := n.Apply(first, gradient.Sum{Dense: ones}, nil, 3); err != nil {
		t.Fatal(err)
	}
	if first[0] != 4 || first[counted+3] != 4 || second[0] != 1 || second[counted+3] != 1 {
		t.Errorf("%v and %v", first, second)
	}
}

func TestAScriptThatDiesIsReportedWithItsExitCodeAndItsLastLines(t *testing.T) {
	o, log := counting(t)
	t.Setenv("COUNTING_PRINTS", "1")
	t.Setenv("COUNTING_DIES_AT", "5")
	n := start(t, o)
	_, err := n.Gradient(initialState(n), minibatch(1), 1, 5, 0, 3, make([]float32, counted+2), nil)
	var died *DiedError
	if !errors.As(err, &died) || !strings.Contains(died.Reason, "counting.py ended with exit code 3") || !strings.Contains(died.Reason, "the last line") {
		t.Errorf("%v", err)
	}
	for _, line := range []string{"counting.py: counting 10 records\n", "counting.py: the last line\n"} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("the log lacks %q:\n%s", line, log)
		}
	}
}

func TestAMastersScriptIsStartedAgainAndNothingIsLost(t *testing.T) {
	o, _ := counting(t)
	o.Restarts = 2
	n := start(t, o)
	state := initialState(n)
	ones := slices.Repeat([]float32{-1}, counted)
	for step := range int64(6) { // more often than Restarts allows in a row
		if err := syscall.Kill(childOf(n).cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := n.Apply(state, gradient.Sum{Dense: ones}, nil, step); err != nil {
			t.Fatal(err)
		}
	}
	if state[0] != 6 || state[counted+3] != 6 {
		t.Errorf("%v", state)
	}
}

func TestAMastersScriptThatDiesEveryTimeIsGivenUp(t *testing.T) {
	o, log := counting(t)
	t.Setenv("COUNTING_DIES_AT", "0")
	o.Restarts = 2
	n := start(t, o)
	_, err := n.Gradient(initialState(n), minibatch(1), 1, 0, 0, 3, make([]float32, counted+2), nil)
	var died *DiedError
	if !errors.As(err, &died) || strings.Count(log.String(), "the last line") != 3 {
		t.Errorf("%v\n%s", err, log)
	}
}

func TestAScriptsErrorIsReportedAndTheScriptContinues(t *testing.T) {
	o, _ := counting(t)
	t.Setenv("COUNTING_DIVERGES_AT", "2")
	n := start(t, o)
	state, out := initialState(n), make([]float32, counted+2)
	_, err := n.Gradient(state, &graph.Batch{N: 1, Records: [][]byte{[]byte("text")}}, 1, 0, 0, 3, out, nil)
	if err == nil || !strings.Contains(err.Error(), "a record of 4 bytes is no number") || errors.Is(err, nn.ErrNotFinite) {
		t.Errorf("%v", err)
	}
	if _, err = n.Gradient(state, minibatch(1), 1, 2, 0, 3, out, nil); !errors.Is(err, nn.ErrNotFinite) {
		t.Errorf("%v", err)
	}
	if _, err = n.Gradient(state, minibatch(1), 1, 3, 0, 3, out, nil); err != nil {
		t.Errorf("%v", err)
	}
}

func TestAScriptThatCannotBeginIsRefusedWithTheReason(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"it raises":          {"import no_such_module", "No module named 'no_such_module'"},
		"it never connects":  {"print('done')", "before it had connected"},
		"it trains nothing":  {"import elastic_training as e\nclass C(e.Computation):\n  initial = load = gradient = apply = None\n  def describe(self, job): return e.Description([])\ne.serve(C())", "nothing to train"},
		"its state is wrong": {"import elastic_training as e\nclass C(e.Computation):\n  load = gradient = apply = None\n  def describe(self, job): return e.Description([e.Tensor('w', (3,))])\n  def initial(self, seed): return bytes(8)\ne.serve(C())", "the initial state of 8 bytes; the description makes it 12"},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := counting(t)
			o.Script = []byte(c.script)
			n, err := Start(t.Context(), o)
			if err == nil {
				n.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; wanted %q", err, c.want)
			}
		})
	}
	o, _ := counting(t)
	o.Command = []string{filepath.Join(t.TempDir(), "no-such-python")}
	if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no-such-python") {
		t.Errorf("%v", err)
	}
	o, _ = counting(t)
	o.Script = []byte("import time\ntime.sleep(3600)")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestTheLastLinesOfAScriptThatEndsAtOnceStandLastAndQuoted(t *testing.T) {
	o, _ := counting(t)
	o.Script = []byte("import sys\nsys.exit('no torch here')")
	_, err := Start(t.Context(), o)
	if err == nil || !strings.HasSuffix(err.Error(), "before it had connected (a script calls init, run or serve of elastic_training); its last lines:\n  > no torch here") {
		t.Errorf("%v", err)
	}
}

func TestATemporaryDirectoryThatIsTooDeepForASocketIsRefusedWithTheRemedy(t *testing.T) {
	o, _ := counting(t)
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	if err := os.Mkdir(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", deep)
	if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "set TMPDIR to a shorter one") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(deep); err != nil || len(left) != 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}

func TestNothingIsLeftOfAScriptThatIsClosed(t *testing.T) {
	o, _ := counting(t)
	n := start(t, o)
	dir, pid := childOf(n).dir.Path, childOf(n).cmd.Process.Pid
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	n.Close()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket's directory is still there: %v", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process is still there: %v", err)
	}
	n.Close()
}

func TestAScriptThatDoesNotEndWithItsConnectionIsKilled(t *testing.T) {
	o, _ := counting(t)
	o.Script = append(o.Script, []byte("\n    import time\n    time.sleep(3600)\n")...)
	n := start(t, o)
	pid := childOf(n).cmd.Process.Pid
	began := time.Now()
	n.Close()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) || time.Since(began) < endTimeout {
		t.Errorf("the process is still there, or was not waited for: %v", err)
	}
}

// TestTheModulesOwnTestsPass runs them with the first Python of the PATH and with the one that may have PyTorch.
func TestTheModulesOwnTestsPass(t *testing.T) {
	found := map[string]bool{}
	for _, name := range []string{"python3", torchtest.Python()} {
		if path, err := exec.LookPath(name); err == nil {
			found[path] = true
		}
	}
	if len(found) == 0 {
		t.Skip("python3 is not installed")
	}
	for python := range found {
		t.Run(python, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), python, "-m", "unittest", "discover", "-v", "-s", "tests", "-t", ".")
			cmd.Dir = "../../../../python"
			cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
			text, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, text)
			}
			if strings.Contains(string(text), "torch is not installed") {
				t.Log("torch is not installed; its adapter was not tested with this Python")
			}
		})
	}
}
