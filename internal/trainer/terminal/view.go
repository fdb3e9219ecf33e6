package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/history"
)

const (
	frameEvery   = 100 * time.Millisecond
	defaultWidth = 80 // of a terminal that does not say
)

// Suits says whether a view can be drawn on an output: a terminal that knows how to move its cursor.
func Suits(out io.Writer) bool {
	f, isFile := out.(*os.File)
	return isFile && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// View draws a run's frames over one another, below what is printed meanwhile.
type View struct {
	out      *os.File
	recorder *history.Recorder
	colour   bool
	closing  chan struct{}
	drawing  sync.WaitGroup

	mu     sync.Mutex
	shown  []string // the frame that is on the terminal
	cells  []int    // how wide its lines are
	closed bool
}

// Start draws until Close. NO_COLOR in the environment forbids colours.
func Start(out *os.File, r *history.Recorder) *View {
	v := &View{out: out, recorder: r, colour: os.Getenv("NO_COLOR") == "", closing: make(chan struct{})}
	v.drawing.Add(1)
	go v.run()
	return v
}

func (v *View) run() {
	defer v.drawing.Done()
	ticker := time.NewTicker(frameEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			v.mu.Lock()
			v.draw("")
			v.mu.Unlock()
		case <-v.closing:
			return
		}
	}
}

// Print prints a line above the frame.
func (v *View) Print(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		fmt.Fprintln(v.out, clean(line))
		return
	}
	v.draw(clean(line))
}

// Close leaves the last frame, with the cursor below it.
func (v *View) Close() {
	close(v.closing)
	v.drawing.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.draw("")
	v.closed = true
	if len(v.shown) > 0 {
		fmt.Fprintln(v.out)
	}
}

// draw replaces the frame by the newest, with a line above it where there is one. One write does it all: nothing else
// that is written comes between.
func (v *View) draw(above string) {
	width, _, err := term.GetSize(int(v.out.Fd()))
	if err != nil || width < 1 {
		width = defaultWidth
	}
	h := v.recorder.Snapshot()
	frame := Frame(h, max(h.Now, time.Since(h.Began)), width-1, v.colour) // the last column makes some terminals go on to the next line
	if above == "" && same(frame, v.shown) {
		return
	}
	var text strings.Builder
	text.WriteString(erase(v.cells, width))
	if above != "" {
		text.WriteString(above + "\r\n")
	}
	text.WriteString(strings.Join(frame, "\r\n"))
	v.shown, v.cells = frame, nil
	for _, line := range frame {
		v.cells = append(v.cells, cells(unstyled(line)))
	}
	_, _ = io.WriteString(v.out, text.String()) // a terminal that has gone is no reason to stop
}

// erase goes to the beginning of a frame whose last line the cursor is on, and clears what follows. On a terminal that has
// become narrower its lines may take several rows each.
func erase(lines []int, width int) string {
	rows := 0
	for i, n := range lines {
		rows += max(1, (n+width-1)/width)
		if i == len(lines)-1 {
			rows--
		}
	}
	if rows > 0 {
		return fmt.Sprintf("\r\x1b[%dA\x1b[J", rows)
	}
	return "\r\x1b[J"
}

func same(a, b []string) bool {
	return strings.Join(a, "\n") == strings.Join(b, "\n") && len(a) == len(b)
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
