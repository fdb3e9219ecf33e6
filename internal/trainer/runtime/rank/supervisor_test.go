package rank

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/child"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rank is one supervisor of two under test.
type rank struct {
	t      *testing.T
	dir    string // where its command writes
	stop   context.CancelFunc
	result chan int
}

// script is the command of every rank: it appends its run's addresses to "runs" and then waits for the file
// "end", which holds the exit code to end with.
const script = `
trap 'echo stopped >> stops; exit 143' TERM
echo "$SKYPILOT_NODE_IPS" | tr '\n' ' ' >> runs; echo >> runs
while [ ! -f end ]; do sleep 0.01; done
code=$(cat end); rm end; exit $code
`

func startRank(t *testing.T, s *server, number int, pod string, change ...func(*Config)) *rank {
	t.Helper()
	r := &rank{t: t, dir: t.TempDir(), result: make(chan int, 1)}
	ended := make(chan struct{})
	uid := s.addPod(pod)
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	config := Config{
		Gang: s.gang(pod), Pod: uid, Address: fmt.Sprintf("10.0.0.%d", number), Rank: number, Nodes: 2,
		Command: []string{"/bin/sh", "-c", "cd " + r.dir + "; " + script}, Env: os.Environ(), Patience: patience.Medium,
		Log: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&config)
	}
	go func() {
		code, err := Run(ctx, config)
		if err != nil {
			t.Error(err)
		}
		r.result <- code
		close(ended)
	}()
	t.Cleanup(func() { // its command writes into the directory, which is removed after this
		cancel()
		<-ended
	})
	return r
}

func (r *rank) runs() []string { return r.lines("runs") }

func (r *rank) lines(name string) []string {
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil && !os.IsNotExist(err) {
		r.t.Error(err)
	}
	return strings.FieldsFunc(string(text), func(c rune) bool { return c == '\n' })
}

// awaitRuns waits until the rank's command has been started so many times.
func (r *rank) awaitRuns(n int) {
	r.t.Helper()
	eventually.True(r.t, fmt.Sprintf("%d runs", n), func() bool { return len(r.runs()) >= n })
	if got := r.runs(); len(got) != n {
		r.t.Fatalf("runs: %q", got)
	}
}

// end makes the running command end with a code.
func (r *rank) end(code int) {
	r.t.Helper()
	part := filepath.Join(r.dir, "end.part")
	if err := os.WriteFile(part, fmt.Append(nil, code), 0o644); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(part, filepath.Join(r.dir, "end")); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rank) awaitExit(code int) {
	r.t.Helper()
	select {
	case got := <-r.result:
		if got != code {
			r.t.Fatalf("the supervisor ended with %d, not %d", got, code)
		}
	case <-time.After(patience.Medium):
		r.t.Fatal("the supervisor does not end")
	}
}

func TestRun(t *testing.T) {
	t.Run("the ranks start when all are there, with all addresses, and end together", func(t *testing.T) {
		s := newServer(t)
		a := startRank(t, s, 0, "a")
		eventually.True(t, "rank 0's word", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.board.Data["rank-0"] != "" })
		if got := a.runs(); len(got) != 0 {
			t.Fatalf("rank 0 runs alone: %q", got)
		}
		b := startRank(t, s, 1, "b")
		for _, r := range []*rank{a, b} {
			r.awaitRuns(1)
			if got := r.runs()[0]; got != "10.0.0.0 10.0.0.1 " {
				t.Errorf("addresses %q", got)
			}
		}
		a.end(0)
		b.end(0)
		a.awaitExit(0)
		b.awaitExit(0)
	})
	t.Run("a failure ends one rank with its code, and the other runs again in its place with the new pod", func(t *testing.T) {
		s := newServer(t)
		a, b := startRank(t, s, 0, "a"), startRank(t, s, 1, "b")
		a.awaitRuns(1)
		b.awaitRuns(1)
		b.end(7)
		b.awaitExit(7)
		eventually.True(t, "rank 0's command to be stopped", func() bool { return len(a.lines("stops")) == 1 })
		s.removePod("b")
		c := startRank(t, s, 1, "c")
		a.awaitRuns(2)
		c.awaitRuns(1)
		a.end(0)
		c.end(0)
		a.awaitExit(0)
		c.awaitExit(0)
	})
	t.Run("a command that can rejoin continues while another rank is replaced", func(t *testing.T) {
		s := newServer(t)
		rejoins := func(c *Config) { c.Rejoin = true }
		a, b := startRank(t, s, 0, "a", rejoins), startRank(t, s, 1, "b", rejoins)
		a.awaitRuns(1)
		b.awaitRuns(1)
		b.end(7)
		b.awaitExit(7)
		s.removePod("b")
		c := startRank(t, s, 1, "c", rejoins)
		c.awaitRuns(1)
		a.end(0)
		c.end(0)
		a.awaitExit(0)
		c.awaitExit(0)
		if len(a.runs()) != 1 || len(a.lines("stops")) != 0 {
			t.Errorf("runs %q, stops %q", a.runs(), a.lines("stops"))
		}
	})
	t.Run("a pod that is gone ends the run", func(t *testing.T) {
		s := newServer(t)
		a, b := startRank(t, s, 0, "a"), startRank(t, s, 1, "b")
		a.awaitRuns(1)
		b.awaitRuns(1)
		s.removePod("b")
		eventually.True(t, "rank 0's command to be stopped", func() bool { return len(a.lines("stops")) == 1 })
	})
	t.Run("asked to stop, it stops its command and ends with 143", func(t *testing.T) {
		s := newServer(t)
		a, b := startRank(t, s, 0, "a"), startRank(t, s, 1, "b")
		a.awaitRuns(1)
		b.awaitRuns(1)
		a.stop()
		a.awaitExit(ExitStopped)
		if got := a.lines("stops"); len(got) != 1 {
			t.Errorf("the command was not asked: %q", got)
		}
	})
	t.Run("the commands continue while the API server is unreachable, and their end is reported afterwards", func(t *testing.T) {
		s := newServer(t)
		a, b := startRank(t, s, 0, "a"), startRank(t, s, 1, "b")
		a.awaitRuns(1)
		b.awaitRuns(1)
		s.setDown(true)
		a.end(0)
		b.end(0)
		eventually.True(t, "both commands to end", func() bool {
			for _, r := range []*rank{a, b} {
				if _, err := os.Stat(filepath.Join(r.dir, "end")); err == nil {
					return false
				}
			}
			return true
		})
		s.setDown(false)
		a.awaitExit(0)
		b.awaitExit(0)
		if len(a.runs()) != 1 || len(a.lines("stops")) != 0 {
			t.Errorf("runs %q, stops %q", a.runs(), a.lines("stops"))
		}
	})
	t.Run("a command that cannot be started is an error", func(t *testing.T) {
		s := newServer(t)
		config := Config{
			Gang: s.gang("a"), Pod: s.addPod("a"), Address: "10.0.0.0", Nodes: 1, Command: []string{"/does/not/exist"},
			Log: slog.New(slog.DiscardHandler),
		}
		if _, err := Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
			t.Errorf("got %v", err)
		}
	})
}

func TestExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		code    int
	}{
		"a code is kept":                 {"exit 42", 42},
		"success is 0":                   {"true", 0},
		"a signal is 128 and its number": {"kill -KILL $$", 137},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := child.Start([]string{"/bin/sh", "-c", c.command}, nil, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			<-p.Done()
			if code, ended := p.Ended(); code != c.code || !ended {
				t.Errorf("code %d, ended %t", code, ended)
			}
		})
	}
	t.Run("what will not stop is killed, with what it started", func(t *testing.T) {
		dir := t.TempDir()
		p, err := child.Start([]string{"/bin/sh", "-c", "cd " + dir + "; trap '' TERM; sleep 1000 & echo $! > child; touch ready; wait; sleep 1000"}, os.Environ(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "the command", func() bool { _, err := os.Stat(filepath.Join(dir, "ready")); return err == nil })
		p.Stop(0)
		if code, _ := p.Ended(); code != 137 {
			t.Errorf("code %d", code)
		}
		child, err := os.ReadFile(filepath.Join(dir, "child"))
		if err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "its child to end", func() bool {
			stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(child)) + "/stat")
			return err != nil || strings.Contains(string(stat), ") Z ")
		})
	})
}

func TestACommandThatEndsWhileTheSupervisorLooksElsewhereWakesIt(t *testing.T) {
	srv := newServer(t)
	s := &supervisor{Config: Config{Pod: srv.addPod("a"), Gang: srv.gang("a"), Nodes: 2, Log: slog.New(slog.DiscardHandler)}}
	end := filepath.Join(t.TempDir(), "end")
	var err error
	if s.process, err = child.Start([]string{"/bin/sh", "-c", "while [ ! -f " + end + " ]; do sleep 0.01; done"}, os.Environ(), os.Stdout, os.Stderr); err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	if v, _, err := s.view(); err != nil || !v.Command.Running {
		t.Fatalf("%+v, %v", v.Command, err)
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-s.process.Done()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Medium)
	defer cancel()
	for range 10 { // the start of the watches may have woken the first of them
		s.wait(ctx)
	}
	if ctx.Err() != nil {
		t.Fatal("the supervisor waits for something else")
	}
}
