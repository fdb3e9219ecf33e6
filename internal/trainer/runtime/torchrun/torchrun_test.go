package torchrun

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/torchtest"
)

// output is what processes print, in any order.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(strings.SplitSeq(strings.TrimSpace(o.text.String()), "\n"))
}

func started(t *testing.T, c Command, p Place) *Run {
	t.Helper()
	r, err := Start(c, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Stop()
		<-r.Done()
	})
	return r
}

func shell(processes int, line string, out *output) Command {
	return Command{Line: []string{"/bin/sh", "-c", line}, Processes: processes, Job: "job", Grace: patience.Medium, Output: out}
}

func TestEachProcessHasTheEnvironmentThatTorchrunGivesIt(t *testing.T) {
	t.Setenv("RANK", "99")
	t.Setenv("OMP_NUM_THREADS", "3")
	out := &output{}
	r := started(t, shell(2, `echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE $ROLE_RANK/$ROLE_WORLD_SIZE \
		$MASTER_ADDR $MASTER_PORT $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_RUN_ID $TORCHELASTIC_USE_AGENT_STORE $OMP_NUM_THREADS`, out), Place{Rank: 1, World: 3, Master: "10.0.0.7:29500", Restarts: 4})
	<-r.Done()
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"rank 2: 2/6 0/2 1/3 2/6 10.0.0.7 29500 4 job False 3",
		"rank 3: 3/6 1/2 1/3 3/6 10.0.0.7 29500 4 job False 3",
	}
	if got := out.lines(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestAProcessThatFailsStopsTheOthersAndIsTheReason(t *testing.T) {
	out := &output{}
	r := started(t, shell(3, `if [ $LOCAL_RANK = 1 ]; then echo out of luck; exit 7; fi; trap 'echo asked; exit 0' TERM; while :; do sleep 0.05; done`, out), Place{World: 1, Master: "127.0.0.1:1"})
	<-r.Done()
	failed := (*FailedError)(nil)
	if !errors.As(r.Err(), &failed) || failed.Rank != 1 || failed.Code != 7 || !strings.Contains(r.Err().Error(), "out of luck") {
		t.Errorf("the run ended with %v", r.Err())
	}
}

func TestAStoppedRunHasNoErrorAndWhatDoesNotStopIsKilled(t *testing.T) {
	for name, c := range map[string]struct {
		line  string
		grace time.Duration
		asked bool // it has the time to say so
	}{
		"a process that ends when asked": {
			line:  `trap 'touch "$DIR/asked$RANK"; exit 3' TERM; touch "$DIR/ready$RANK"; while :; do sleep 0.05; done`,
			grace: patience.Medium, asked: true,
		},
		"a process that ignores requests": {
			line: `trap '' TERM; touch "$DIR/ready$RANK"; while :; do sleep 0.05; done`, grace: time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("DIR", dir)
			command := shell(2, c.line, &output{})
			command.Grace = c.grace
			r := started(t, command, Place{World: 1, Master: "127.0.0.1:1"})
			both := func(what string) func() bool {
				return func() bool { found, _ := filepath.Glob(filepath.Join(dir, what+"*")); return len(found) == 2 }
			}
			eventually.True(t, "two processes", both("ready"))
			r.Stop()
			<-r.Done()
			if err := r.Err(); err != nil {
				t.Errorf("stopped with %v", err)
			}
			if both("asked")() != c.asked {
				t.Error("a process was killed that had not been asked to end")
			}
		})
	}
}

func TestAProgramThatIsNotThereIsNamedAndNothingIsLeft(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := Start(Command{Line: []string{"no-such-program"}, Name: "train.py", Script: []byte("x"), Processes: 2}, Place{World: 1, Master: "127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), `"no-such-program"`) {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestAScriptIsTheLastArgumentAndGoneAtTheEnd(t *testing.T) {
	out := &output{}
	c := Command{Line: []string{"/bin/sh"}, Name: "train.sh", Script: []byte("echo $0\n"), Processes: 1, Output: out}
	r := started(t, c, Place{World: 1, Master: "127.0.0.1:1"})
	<-r.Done()
	script := strings.TrimPrefix(out.lines()[0], "rank 0: ")
	if filepath.Base(script) != "train.sh" {
		t.Errorf("printed %q", script)
	}
	if _, err := os.Stat(script); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the script is still there: %v", err)
	}
}

// TestTheEnvironmentHasEachVariableThatTheInstalledTorchSets reads the names in torch's own agent. It cannot run torchrun:
// that of torch 1.13 does not start under Python 3.11.
func TestTheEnvironmentHasEachVariableThatTheInstalledTorchSets(t *testing.T) {
	python := torchtest.Find(t)
	source, err := exec.CommandContext(t.Context(), python, "-c", "import torch.distributed.elastic.agent.server.local_elastic_agent as a; print(open(a.__file__).read())").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(source), "worker_env = {")
	block, _, ends := strings.Cut(block, "\n            }\n")
	if !found || !ends {
		t.Fatal("torch's agent sets the environment elsewhere")
	}
	env, err := environment(nil, Command{Processes: 1}, Place{World: 1, Master: "127.0.0.1:1"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`"([A-Z_]+)": `).FindAllStringSubmatch(block, -1)
	if len(names) < 15 {
		t.Fatalf("only %d variables in %s", len(names), block)
	}
	for _, name := range names {
		set := slices.ContainsFunc(env, func(v string) bool {
			return strings.HasPrefix(v, name[1]+"=") || strings.HasPrefix(v, "TORCH_"+name[1]+"=") // NCCL's have another prefix since torch 2.2
		})
		if !set {
			t.Errorf("torchrun sets %s", name[1])
		}
	}
}
