package modelfile

import (
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// Error is a refusal: what was found, where, and what to do about it.
type Error struct {
	File   string
	Line   int // 1-based; 0 when the refusal is about the file as a whole
	Column int // 1-based, in characters; 0 when unknown
	Msg    string
}

// Error formats as file:line:column: message, as compilers do.
func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	case e.Column == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Msg)
}

// Message is something that the reader of a model file should know about it.
type Message struct {
	At   graph.Place // without a line when it is about the file as a whole
	Text string
}

// String formats as "line 12: text", or "shop/blocks.py, line 12: text".
func (m Message) String() string {
	if m.At.Line == 0 {
		return m.Text
	}
	line := fmt.Sprintf("line %d: %s", m.At.Line, m.Text)
	if m.At.Module != "" {
		line = m.At.Module + ", " + line
	}
	return line
}

// Report is what Load has to say about a file that it accepted.
type Report struct {
	// Notices are differences from the original that decide nothing a user would mind: a shuffle that the schedule
	// does instead, a class that was not read.
	Notices []Message
	// Warnings say that the file most likely does not do what its author meant.
	Warnings []Message
}

// maxMessages is more than anybody reads; a loop that gives rise to a message each time makes no more of them.
const maxMessages = 1000

// add appends a message unless the same one is there: a probe runs code more than once.
func add(list *[]Message, at graph.Place, format string, args ...any) {
	if len(*list) == maxMessages {
		return
	}
	m := Message{At: at, Text: fmt.Sprintf(format, args...)}
	for _, have := range *list {
		if have == m {
			return
		}
	}
	*list = append(*list, m)
}
