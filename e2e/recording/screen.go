package recording

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A screen is what a terminal has printed, from the first line on. It knows lines and colours. Programs that move the
// cursor are refused, since the picture would differ from the terminal.
type screen struct {
	width   int
	lines   [][]cell
	style   style
	pending string // the beginning of an escape sequence
}

type cell struct {
	char  rune
	style style
}

// A style is how a character looks; colour is an SGR parameter such as 32, or 0.
type style struct {
	colour          int
	bold, underline bool
}

// A frame is where a recording's cursor stands from a time on.
type frame struct {
	at          time.Duration
	row, column int
}

// replay prints a recording, with its pauses shortened, and returns the screen and the frames. Outputs that follow each
// other within a blink are one frame.
func replay(c Cast) (*screen, []frame, error) {
	const blink = 35 * time.Millisecond
	s := &screen{width: c.header.Width, lines: [][]cell{nil}}
	idle := time.Duration(c.header.IdleTimeLimit * float64(time.Second))
	var frames []frame
	before, at := c.events[0].at, time.Duration(0)
	for _, e := range c.events {
		at += min(e.at-before, idle)
		before = e.at
		if err := s.print(e.text); err != nil {
			return nil, nil, err
		}
		now := frame{at, len(s.lines) - 1, len(s.lines[len(s.lines)-1])}
		if last := len(frames) - 1; last >= 0 && at-frames[last].at < blink {
			now.at = frames[last].at
			frames = frames[:last]
		}
		frames = append(frames, now)
	}
	return s, frames, nil
}

var (
	sequence = regexp.MustCompile(`^\x1b\[([0-9;]*)([@-~])`)
	unended  = regexp.MustCompile(`^\x1b(\[[0-9;?]*)?$`)
)

func (s *screen) print(text string) error {
	rest := s.pending + text
	s.pending = ""
	for rest != "" {
		if unended.MatchString(rest) {
			s.pending = rest
			return nil
		}
		switch found := sequence.FindStringSubmatch(rest); {
		case found != nil && found[2] == "m":
			if err := s.render(found[1]); err != nil {
				return err
			}
			rest = rest[len(found[0]):]
		case strings.HasPrefix(rest, "\r\n"):
			s.lines = append(s.lines, nil)
			rest = rest[2:]
		case rest == "\r":
			s.pending = rest
			return nil
		case rest[0] < ' ':
			return fmt.Errorf("the picture has lines and colours only, and the session printed %.20q", rest)
		default:
			end := strings.IndexFunc(rest, func(r rune) bool { return r < ' ' })
			if end < 0 {
				end = len(rest)
			}
			s.write(rest[:end])
			rest = rest[end:]
		}
	}
	return nil
}

// write prints characters, and wraps as terminals do: when a character follows a full line.
func (s *screen) write(text string) {
	for _, char := range text {
		last := len(s.lines) - 1
		if len(s.lines[last]) == s.width {
			s.lines = append(s.lines, nil)
			last++
		}
		s.lines[last] = append(s.lines[last], cell{char, s.style})
	}
}

// render takes over the parameters of a sequence "select graphic rendition".
func (s *screen) render(parameters string) error {
	for parameter := range strings.SplitSeq(parameters, ";") {
		n, _ := strconv.Atoi(parameter) // an empty one is 0
		switch {
		case n == 0:
			s.style = style{}
		case n == 1:
			s.style.bold = true
		case n == 4:
			s.style.underline = true
		case n == 22:
			s.style.bold = false
		case n == 24:
			s.style.underline = false
		case n == 39:
			s.style.colour = 0
		case slices.Contains(colourNumbers, n):
			s.style.colour = n
		default:
			return fmt.Errorf("the picture has no rendition %d", n)
		}
	}
	return nil
}
