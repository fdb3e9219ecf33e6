package elasticdl

import (
	"fmt"
	"strings"
)

// What a shell does with these outside of quotes is none of a parser's business, so that they are refused.
const (
	acting    = "$`|&;<>()*?[" // anywhere in a word
	expanding = "$`"           // also within double quotes
	escapable = "$`\"\\\n"     // what a backslash protects within double quotes
)

// Words splits a command line as a POSIX shell does: single and double quotes, backslashes, lines continued by a
// backslash, comments. A line break that is not continued parts words like a blank. What a shell would replace or act
// on ($, `, |, &, ;, <, >, parentheses, patterns, ~) is an error unless quoted, and so is a quote that does not end.
func Words(line string) ([]string, error) {
	var words []string
	s := &splitter{rest: line}
	for s.skipBlanks() {
		word, err := s.word()
		if err != nil {
			return nil, err
		}
		words = append(words, word)
	}
	return words, nil
}

// splitter consumes a command line byte by byte: everything with a meaning is ASCII, and all else is copied.
type splitter struct {
	rest string
}

// skipBlanks goes to the next word; false at the end.
func (s *splitter) skipBlanks() bool {
	for s.rest != "" {
		switch {
		case strings.ContainsRune(" \t\r\n", rune(s.rest[0])):
			s.rest = s.rest[1:]
		case continues(s.rest):
			s.rest = afterBreak(s.rest)
		case s.rest[0] == '#':
			_, s.rest, _ = strings.Cut(s.rest, "\n")
		default:
			return true
		}
	}
	return false
}

// continues reports whether the text begins with a line break that a backslash takes away.
func continues(text string) bool {
	return strings.HasPrefix(text, "\\\n") || strings.HasPrefix(text, "\\\r\n")
}

func afterBreak(text string) string { return text[strings.IndexByte(text, '\n')+1:] }

func (s *splitter) word() (string, error) {
	if s.rest[0] == '~' {
		return "", s.acts('~')
	}
	var b strings.Builder
	for s.rest != "" && !strings.ContainsRune(" \t\r\n", rune(s.rest[0])) {
		c := s.rest[0]
		switch {
		case c == '\'':
			text, after, ended := strings.Cut(s.rest[1:], "'")
			if !ended {
				return "", s.unended("single quote")
			}
			b.WriteString(text)
			s.rest = after
		case c == '"':
			if err := s.doubleQuoted(&b); err != nil {
				return "", err
			}
		case continues(s.rest):
			s.rest = afterBreak(s.rest)
		case c == '\\' && len(s.rest) == 1:
			return "", fmt.Errorf("the command line ends with a backslash; is the rest of it missing?")
		case c == '\\':
			b.WriteByte(s.rest[1])
			s.rest = s.rest[2:]
		case strings.IndexByte(acting, c) >= 0:
			return "", s.acts(c)
		default:
			b.WriteByte(c)
			s.rest = s.rest[1:]
		}
	}
	return b.String(), nil
}

func (s *splitter) doubleQuoted(b *strings.Builder) error {
	begin := s.rest
	for s.rest = s.rest[1:]; s.rest != ""; {
		c := s.rest[0]
		switch {
		case c == '"':
			s.rest = s.rest[1:]
			return nil
		case continues(s.rest):
			s.rest = afterBreak(s.rest)
		case c == '\\' && len(s.rest) > 1 && strings.IndexByte(escapable, s.rest[1]) >= 0:
			b.WriteByte(s.rest[1])
			s.rest = s.rest[2:]
		case strings.IndexByte(expanding, c) >= 0:
			return s.acts(c)
		default:
			b.WriteByte(c)
			s.rest = s.rest[1:]
		}
	}
	s.rest = begin
	return s.unended("double quote")
}

func (s *splitter) acts(c byte) error {
	return fmt.Errorf("there is a %q in the command line, at %s: a shell would replace it or act on it, and no shell runs here; write what it stands for, or put it between single quotes", c, s.here())
}

func (s *splitter) unended(quote string) error {
	return fmt.Errorf("a %s in the command line does not end, at %s", quote, s.here())
}

// here is the beginning of what is left, to find the place.
func (s *splitter) here() string {
	const enough = 20
	text := []rune(s.rest)
	if len(text) > enough {
		return fmt.Sprintf("%q…", string(text[:enough]))
	}
	return fmt.Sprintf("%q", string(text))
}
