// Package recording records a session in a terminal, in the format asciicast v2, and draws it as an animated picture.
package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

// A Cast is a recording in the format asciicast v2: a header and events, each a line of JSON
// (https://docs.asciinema.org/manual/asciicast/v2).
type Cast struct {
	header header
	events []event
}

type header struct {
	Version       int               `json:"version"`
	Width         int               `json:"width"`
	Height        int               `json:"height"`
	IdleTimeLimit float64           `json:"idle_time_limit"` // in seconds: whoever replays the recording shortens longer pauses to it
	Title         string            `json:"title"`
	Env           map[string]string `json:"env"`
}

// An event is what was printed at a time after the start.
type event struct {
	at   time.Duration
	text string
}

const output = "o" // an event's kind

// Write writes the recording to a folder, as session.cast, and its pictures, as session-light.svg and session-dark.svg.
func (c Cast) Write(folder string) error {
	files := map[string][]byte{"session.cast": c.encode()}
	for name, colours := range themes {
		picture, err := draw(c, colours)
		if err != nil {
			return err
		}
		files["session-"+name+".svg"] = picture
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return fmt.Errorf("write the recording: %w", err)
		}
	}
	return nil
}

func (c Cast) encode() []byte {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	// Neither a header nor an event has a value that JSON lacks.
	_ = encoder.Encode(c.header)
	for _, e := range c.events {
		_ = encoder.Encode([]any{json.Number(fmt.Sprintf("%.3f", e.at.Seconds())), output, e.text})
	}
	return lines.Bytes()
}

func decode(lines []byte) (Cast, error) {
	var c Cast
	decoder := json.NewDecoder(bytes.NewReader(lines))
	if err := decoder.Decode(&c.header); err != nil {
		return Cast{}, fmt.Errorf("the recording's header: %w", err)
	}
	for decoder.More() {
		var seconds float64
		var kind string
		var e event
		if err := decoder.Decode(&[]any{&seconds, &kind, &e.text}); err != nil {
			return Cast{}, fmt.Errorf("event %d of the recording: %w", len(c.events)+1, err)
		}
		e.at = time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
		c.events = append(c.events, e)
	}
	return c, nil
}

// text is all that was printed.
func (c Cast) text() string {
	var all strings.Builder
	for _, e := range c.events {
		all.WriteString(e.text)
	}
	return all.String()
}

// A recorder collects what is written to it. Its time is that of a clock, with what was added for somebody who reads
// or types.
type recorder struct {
	began   time.Time
	added   time.Duration
	events  []event
	pending []byte // the beginning of a character
}

// Write records whole characters: a read from a terminal may end within one.
func (r *recorder) Write(printed []byte) (int, error) {
	r.pending = append(r.pending, printed...)
	whole := len(r.pending)
	for back := 1; back < utf8.UTFMax && back <= whole; back++ {
		if start := whole - back; utf8.RuneStart(r.pending[start]) {
			if !utf8.FullRune(r.pending[start:]) {
				whole = start
			}
			break
		}
	}
	if whole > 0 {
		at := (time.Since(r.began) + r.added).Round(time.Millisecond) // as precise as what is written
		r.events = append(r.events, event{at, string(r.pending[:whole])})
		r.pending = bytes.Clone(r.pending[whole:])
	}
	return len(printed), nil
}

// wait adds time.
func (r *recorder) wait(pause time.Duration) { r.added += pause }
