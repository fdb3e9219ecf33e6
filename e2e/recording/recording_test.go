package recording

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "draw the pictures of docs/images from their recording anew; look at them")

const images = "../../docs/images/"

func TestThePicturesAreThoseOfTheirRecording(t *testing.T) {
	lines, err := os.ReadFile(images + "session.cast")
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := decode(lines)
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := recorded.Write(images); err != nil {
			t.Fatal(err)
		}
	}
	for name, colours := range themes {
		want, err := draw(recorded, colours)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(images + "session-" + name + ".svg"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("session-%s.svg is not the picture of session.cast (%v): draw it with -rewrite", name, err)
		}
	}
	if !bytes.Equal(recorded.encode(), lines) {
		t.Error("session.cast does not read as it was written")
	}
	for _, s := range session {
		if err := holds(recorded.text(), s.want); err != nil || !strings.Contains(recorded.text(), s.line) {
			t.Errorf("the recording is of another session (%s: %v): run make recording", s.line, err)
		}
	}
}

func TestATerminalRecordsWhatItsCommandsPrint(t *testing.T) {
	in := terminal{folder: t.TempDir(), environment: os.Environ()}
	recorded, err := in.record(t.Context(), []step{
		{"# a comment", nil},
		{`test -t 1 && printf '\033[31m%s\033[0m\n' "$(stty size)"`, []string{fmt.Sprintf("%d %d", rows, columns)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, frames, err := replay(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.text(), "$ # a comment\n$ test -t 1 && printf '\\033[31m%s\\033[0m\\n' \"$(stty size)\"\n26 100\n$ "; got != want {
		t.Errorf("%q instead of %q", got, want)
	}
	if last := frames[len(frames)-1]; last.row != 3 || last.column != 2 || last.at < reading {
		t.Errorf("the last frame is %+v", last)
	}
	for line, want := range map[string]string{"exit 3": "exit status 3", "echo other": `"wanted" is missing`} {
		if _, err := in.record(t.Context(), []step{{line, []string{"wanted"}}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestACharacterThatArrivesInPartsIsRecordedWhole(t *testing.T) {
	r := &recorder{began: time.Now()}
	for _, part := range []string{"a\xe2", "\x94", "\x82b", "\xc3\xbc"} {
		if n, err := r.Write([]byte(part)); n != len(part) || err != nil {
			t.Error(n, err)
		}
	}
	var texts []string
	for _, e := range r.events {
		texts = append(texts, e.text)
	}
	if got := fmt.Sprintf("%q", texts); got != `["a" "│b" "ü"]` {
		t.Error(got)
	}
}

func TestALineIsWrappedAndPausesAreShortened(t *testing.T) {
	recorded := Cast{header{Width: 4, IdleTimeLimit: 2}, []event{{0, "abcd"}, {time.Second, "ef\x1b"}, {time.Minute, "[1mg\r"}, {2 * time.Minute, "\nh"}}}
	s, frames, err := replay(recorded)
	if err != nil {
		t.Fatal(err)
	}
	want := []frame{{0, 0, 4}, {time.Second, 1, 2}, {3 * time.Second, 1, 3}, {5 * time.Second, 2, 1}}
	if s.text() != "abcd\nefg\nh" || !s.lines[1][2].style.bold || fmt.Sprint(frames) != fmt.Sprint(want) {
		t.Errorf("%q %v instead of %v", s.text(), frames, want)
	}
}

func TestWhatAPictureCannotShowIsRefused(t *testing.T) {
	for _, text := range []string{"50 %\r60 %", "\x1b[2J", "\x1b[38;5;9mred", "\x1b]0;title\x07", "\ttab", "\x1b[?25l"} {
		if _, _, err := replay(Cast{header{Width: 80}, []event{{0, text}}}); err == nil {
			t.Errorf("%q is drawn", text)
		}
	}
}

func TestAPictureIsXMLAndEscapesWhatWasPrinted(t *testing.T) {
	recorded := Cast{header{Width: 80, Height: 2, Title: `<"a">`}, []event{{0, "1 < 2 && \x1b[1;4;90m<b>\x1b[0m\r\n\r\nend"}}}
	picture, err := draw(recorded, themes["light"])
	if err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(bytes.NewReader(picture)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if text := string(picture); strings.Contains(text, "1 &lt; 2") || !strings.Contains(text, ">end</text>") {
		t.Errorf("it shows a line that is above the terminal in each frame:\n%s", text)
	}
}

func TestColoursHaveEnoughContrastWithTheirGround(t *testing.T) {
	for name, colours := range themes {
		for n, colour := range colours.colours {
			if ratio := contrast(t, colour, colours.page); ratio < 4.5 { // WCAG 2.2, level AA
				t.Errorf("%s: %d has a contrast of %.1f", name, n, ratio)
			}
		}
		if ratio := contrast(t, colours.text, colours.page); ratio < 7 {
			t.Errorf("%s: text has a contrast of %.1f", name, ratio)
		}
	}
}

// contrast is the contrast ratio of WCAG 2.2.
func contrast(t *testing.T, a, b string) float64 {
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(t *testing.T, colour string) float64 {
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		part := float64(n) / 255
		if part <= 0.04045 {
			part /= 12.92
		} else {
			part = math.Pow((part+0.055)/1.055, 2.4)
		}
		sum += weight * part
	}
	return sum
}

// text is what the screen shows, without colours.
func (s *screen) text() string {
	var lines []string
	for _, line := range s.lines {
		text := ""
		for _, c := range line {
			text += string(c.char)
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}
