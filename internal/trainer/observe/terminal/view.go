package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
)

const (
	frameEvery   = 100 * time.Millisecond
	defaultWidth = 80 // of a terminal that does not say
)

// IsSupported reports whether a view can be drawn on an output: a terminal that knows how to move its cursor.
func IsSupported(out io.Writer) bool {
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

	mu      sync.Mutex
	shown   []string // the frame that is on the terminal
	closed  bool
	partial string // the beginning of a line that was written
}

// Start draws until Close. NO_COLOR in the environment forbids colours.
func Start(out *os.File, r *history.Recorder) *View {
	v := &View{out: out, recorder: r, colour: os.Getenv("NO_COLOR") == "", closing: make(chan struct{})}
	v.drawing.Go(v.run)
	return v
}

func (v *View) run() {
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

// Write prints whole lines above the frame; the beginning of one waits for its end, or for Close.
func (v *View) Write(b []byte) (int, error) {
	v.mu.Lock()
	v.partial += string(b)
	whole, rest, _ := cutLast(v.partial, "\n")
	v.partial = rest
	v.mu.Unlock()
	for line := range strings.Lines(whole) {
		v.Print(strings.TrimRight(line, "\r\n"))
	}
	return len(b), nil
}

// cutLast cuts a text behind the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i+len(separator)], text[i+len(separator):], true
	}
	return "", text, false
}

// Close leaves the last frame, with the cursor below it.
func (v *View) Close() {
	close(v.closing)
	v.drawing.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.draw(clean(v.partial))
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
	frame := Frame(h, max(h.Now, time.Since(h.Began)), width-1, v.colour) // the last column makes some terminals wrap to the next line
	if above == "" && same(frame, v.shown) {
		return
	}
	var text strings.Builder
	text.WriteString(erase(len(v.shown)))
	if above != "" {
		text.WriteString(above + "\r\n")
	}
	text.WriteString(strings.Join(frame, "\r\n"))
	v.shown = frame
	_, _ = io.WriteString(v.out, text.String()) // a terminal that has gone is no reason to stop
}

// erase goes to the beginning of a frame of so many lines, on whose last line the cursor is, and clears what follows.
// Where a terminal that has become narrower breaks lines anew, a part of the frame stays: what was printed above is
// worth more.
func erase(lines int) string {
	if lines > 1 {
		return fmt.Sprintf("\r\x1b[%dA\x1b[J", lines-1)
	}
	return "\r\x1b[J"
}

func same(a, b []string) bool {
	return strings.Join(a, "\n") == strings.Join(b, "\n") && len(a) == len(b)
}
