package child

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// tailLines is how many of a script's last lines are reported when it dies: enough for a traceback.
const tailLines = 12

// Lines passes output on line by line, each with a prefix, and keeps the last ones.
type Lines struct {
	To     io.Writer // nil discards
	Prefix string

	mu   sync.Mutex
	open []byte
	tail []string
}

// maxLine is the length at which a line without an end is broken: progress bars write such lines.
const maxLine = 8 << 10

func (l *Lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, b...)
	for {
		end := bytes.IndexByte(l.open, '\n')
		if end < 0 && len(l.open) < maxLine {
			return len(b), nil
		}
		if end < 0 {
			l.line(l.open[:maxLine])
			l.open = l.open[maxLine:]
			continue
		}
		l.line(l.open[:end])
		l.open = l.open[end+1:]
	}
}

func (l *Lines) line(b []byte) {
	text := string(bytes.TrimRight(b, "\r"))
	if len(l.tail) == tailLines {
		l.tail = slices.Delete(l.tail, 0, 1)
	}
	l.tail = append(l.tail, text)
	if l.To != nil {
		_, _ = fmt.Fprintln(l.To, l.Prefix+text) // an error of the log cannot be logged
	}
}

// Flush ends a line that has no end.
func (l *Lines) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) > 0 {
		l.line(l.open)
		l.open = nil
	}
}

// LastLines are the last lines, quoted, for the end of a message.
func (l *Lines) LastLines() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tail) == 0 {
		return ", without output"
	}
	return "; its last lines:\n  > " + strings.Join(l.tail, "\n  > ")
}
