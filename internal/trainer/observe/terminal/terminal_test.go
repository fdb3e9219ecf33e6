package terminal

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history/historytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var rewrite = flag.Bool("rewrite", false, "rewrite the golden frames; review the diff")

func TestFramesAreAsInTheGoldenFile(t *testing.T) {
	var got strings.Builder
	waiting := historytest.Begin("job", 2)
	waiting.Beat()
	for _, c := range []struct {
		what  string
		h     *history.History
		width int
	}{
		{"before anything", historytest.Begin("job", 2).History, 100},
		{"waiting for the first worker", waiting.History, 100},
		{"two workers", historytest.NewRun(2, 30*time.Second).History, 120},
		{"one was just preempted", historytest.NewRun(2, 41*time.Second).History, 120},
		{"a narrow terminal", historytest.NewRun(2, 41*time.Second).History, 60},
		{"a very narrow one", historytest.NewRun(2, 41*time.Second).History, 24},
		{"forty workers", historytest.NewRun(40, 65*time.Second).History, 120},
		{"the end", historytest.NewRun(2, 2*time.Minute).Succeed(), 120},
	} {
		fmt.Fprintf(&got, "# %s, %d columns\n%s\n\n", c.what, c.width, strings.Join(Frame(c.h, c.h.Now, c.width, false), "\n"))
	}
	golden := filepath.Join("testdata", "frames.txt")
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the frames differ (rewrite with -rewrite and review):\n%s", diff)
	}
}

func TestAFrameNeverIsWiderThanItsTerminalAndHoldsNoForeignCommands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		foreign := rapid.SampledFrom([]string{"accuracy", "\x1b[2J\x07evil\r\n", "精度の指標", strings.Repeat("long ", 60)}).Draw(t, "text")
		s := historytest.NewRun(rapid.IntRange(1, 30).Draw(t, "workers"), time.Duration(rapid.IntRange(0, 60).Draw(t, "seconds"))*time.Second)
		status := s.History.Status
		status.Message, status.Phase = foreign, rapid.SampledFrom([]trainingjob.Phase{trainingjob.PhaseWaiting, trainingjob.PhaseRunning, trainingjob.PhaseCannotSave}).Draw(t, "phase")
		status.Metrics = map[string]float64{foreign: 1}
		s.History.OnStatus(historytest.Began.Add(time.Hour), status)
		width := rapid.IntRange(1, 200).Draw(t, "width")
		plainFrame, coloured := Frame(s.History, s.History.Now, width, false), Frame(s.History, s.History.Now, width, true)
		for i, line := range plainFrame {
			if strings.ContainsAny(line, "\x1b\x07\r\n") {
				t.Fatalf("%q holds a command", line)
			}
			if n := cells(line); n > width {
				t.Fatalf("%q is %d cells wide on %d", line, n, width)
			}
			if bare := unstyled(coloured[i]); bare != line {
				t.Fatalf("in colour it says %q, and %q without", bare, line)
			}
		}
	})
}

// unstyled is a line of a frame without its escape sequences, all of which end in m.
func unstyled(line string) string {
	var text strings.Builder
	for {
		before, rest, found := strings.Cut(line, "\x1b[")
		text.WriteString(before)
		if !found {
			return text.String()
		}
		_, line, _ = strings.Cut(rest, "m")
	}
}

// screen is as much of a terminal as the view uses: it interprets what was written, and fails on anything else.
type screen struct {
	rows     [][]rune
	row, col int
}

func (s *screen) write(t *testing.T, text string) {
	t.Helper()
	at := func() *[]rune {
		for len(s.rows) <= s.row {
			s.rows = append(s.rows, nil)
		}
		return &s.rows[s.row]
	}
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; r {
		case '\r':
			s.col = 0
		case '\n':
			s.row++
			at()
		case '\x1b':
			end := i + 2
			for end < len(runes) && (runes[end] >= '0' && runes[end] <= '9' || runes[end] == ';') {
				end++
			}
			if end >= len(runes) || runes[i+1] != '[' {
				t.Fatalf("unfinished command in %q", text)
			}
			n := 1
			_, _ = fmt.Sscan(string(runes[i+2:end]), &n)
			switch runes[end] {
			case 'A':
				s.row -= n
				if s.row < 0 {
					t.Fatalf("above the screen after %q", text)
				}
			case 'J':
				at()
				s.rows = s.rows[:s.row+1]
				s.rows[s.row] = s.rows[s.row][:min(s.col, len(s.rows[s.row]))]
			case 'm':
			default:
				t.Fatalf("command %q", string(runes[i:end+1]))
			}
			i = end
		default:
			line := at()
			for len(*line) <= s.col {
				*line = append(*line, ' ')
			}
			(*line)[s.col] = r
			s.col++
		}
	}
}

func (s *screen) String() string {
	var lines []string
	for _, row := range s.rows {
		lines = append(lines, strings.TrimRight(string(row), " "))
	}
	return strings.Join(lines, "\n")
}

func TestAViewIsDrawnInPlaceBelowWhatIsPrinted(t *testing.T) {
	for name, env := range map[string]string{"in colour": "", "without colours": "1"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", env)
			t.Setenv("TERM", "xterm-256color")
			master, terminal, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = master.Close() }()
			if err := pty.Setsize(master, &pty.Winsize{Rows: 40, Cols: 100}); err != nil {
				t.Fatal(err)
			}
			if !IsSupported(terminal) {
				t.Fatal("a pseudo-terminal is taken for none")
			}
			var sent eventually.Text
			read := make(chan struct{})
			go func() {
				defer close(read)
				_, _ = io.Copy(&sent, master) // until it is closed
			}()

			r := history.NewRecorder(history.Job{Name: "job", Epochs: 1})
			report := func(step int64) {
				r.OnStatus(trainingjob.Status{Phase: trainingjob.PhaseRunning, StepsDone: step, StepsTotal: 100, Workers: []trainingjob.WorkerStatus{{ID: 0, State: "ready"}, {ID: 1, State: "joining"}}})
			}
			view := Start(terminal, r)
			report(10)
			sent.Await(t, "step 10/100")
			view.Print("worker 1 failed: \x1b[31mout of memory")
			if _, err := io.WriteString(view, "half a line"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(view, " and its end\n"); err != nil {
				t.Fatal(err)
			}
			if err := pty.Setsize(master, &pty.Winsize{Rows: 40, Cols: 40}); err != nil {
				t.Fatal(err)
			}
			report(77)
			sent.Await(t, "step 77/100")
			view.Close()
			if _, err := io.WriteString(terminal, "the end\n"); err != nil {
				t.Fatal(err)
			}
			text := sent.Await(t, "the end")
			_ = terminal.Close()
			_ = master.Close()
			<-read
			if strings.Contains(text, "\x1b[?") {
				t.Errorf("a mode of the terminal is switched: %q", text)
			}
			if coloured := strings.Contains(text, string(bold)); coloured == (env != "") {
				t.Errorf("NO_COLOR=%q, and colours: %v", env, coloured)
			}
			var s screen
			s.write(t, text)
			lines := strings.Split(s.String(), "\n")
			if len(lines) < 4 || lines[0] != "worker 1 failed:  [31mout of memory" || lines[1] != "half a line and its end" || !strings.Contains(lines[2], "step 77/100") {
				t.Errorf("on the screen:\n%s", s.String())
			}
			if strings.Count(s.String(), "step ") != 1 || strings.Contains(s.String(), "step 10") {
				t.Errorf("an older frame is left on the screen:\n%s", s.String())
			}
			if last := lines[len(lines)-2:]; last[0] != "the end" || last[1] != "" {
				t.Errorf("what follows is not on a line of its own:\n%s", s.String())
			}
		})
	}
}

func TestWhatIsNoTerminalIsNotDrawnOn(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if IsSupported(f) || IsSupported(&bytes.Buffer{}) {
		t.Error("a file is taken for a terminal")
	}
	_, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	t.Setenv("TERM", "dumb")
	if IsSupported(terminal) {
		t.Error("a terminal that cannot move its cursor is drawn on")
	}
}
