package modelfile

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits keep the recursive parsers behind the tokenizer far from the end of their stacks. CPython's own limits
// on nesting are 200 brackets and 100 blocks; no model file comes near any of them.
const (
	maxSourceBytes = 128 << 10
	maxNesting     = 100
)

type tokenKind int

const (
	nameToken tokenKind = iota
	numberToken
	stringToken
	opToken
)

// token is one token of Python. Comments and line ends are not tokens: a logical line is a list of tokens.
type token struct {
	kind      tokenKind
	text      string
	line, col int    // 1-based; columns count characters
	depth     int    // open brackets before the token
	bracket   string // the innermost open bracket before the token, or ""
}

func (t token) is(text string) bool { return t.kind != stringToken && t.text == text }

// logicalLine is one logical line of Python: brackets, triple quotes and backslashes join physical lines.
type logicalLine []token

func (l logicalLine) indent() int { return l[0].col }

// operators of Python, longest first, so that the first match is the right one.
var operators = []string{
	"**=", "//=", ">>=", "<<=", "...",
	"**", "//", ">>", "<<", "<=", ">=", "==", "!=", "<>", "->", ":=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@=",
	"+", "-", "*", "/", "%", "@", "&", "|", "^", "~", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "=",
}

// tokenize cuts Python source into logical lines.
func tokenize(src string) ([]logicalLine, *Error) {
	if len(src) > maxSourceBytes {
		return nil, &Error{Line: 1, Msg: fmt.Sprintf("the file has %d bytes; a model file has at most %d", len(src), maxSourceBytes)}
	}
	if !utf8.ValidString(src) {
		return nil, &Error{Line: 1, Msg: "the file is not UTF-8 text"}
	}
	s := scanner{src: lineEnds.Replace(strings.TrimPrefix(src, "\ufeff")), line: 1, col: 1}
	for !s.done() {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	if n := len(s.open); n > 0 {
		return nil, &Error{Line: s.open[n-1].line, Column: s.open[n-1].col, Msg: fmt.Sprintf("%q is never closed", s.open[n-1].text)}
	}
	s.endLine()
	return s.lines, nil
}

// lineEnds makes all line ends of Python one, inside of strings too, as Python does when it reads a file.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

type scanner struct {
	src       string
	pos       int
	line, col int
	open      []token // brackets
	current   logicalLine
	lines     []logicalLine
	tabs      byte // the character that indents this file: ' ', '\t', or 0 when none has been seen
}

func (s *scanner) done() bool { return s.pos >= len(s.src) }

func (s *scanner) rest() string { return s.src[s.pos:] }

// advance consumes n bytes, which hold whole characters.
func (s *scanner) advance(n int) string {
	text := s.src[s.pos : s.pos+n]
	for _, r := range text {
		if r == '\n' {
			s.line, s.col = s.line+1, 1
		} else {
			s.col++
		}
	}
	s.pos += n
	return text
}

func (s *scanner) fail(format string, args ...any) *Error {
	return &Error{Line: s.line, Column: s.col, Msg: fmt.Sprintf(format, args...)}
}

func (s *scanner) endLine() {
	if len(s.current) > 0 {
		s.lines = append(s.lines, s.current)
		s.current = nil
	}
}

func (s *scanner) next() *Error {
	rest := s.rest()
	switch c := rest[0]; c {
	case '\n':
		s.advance(1)
		if len(s.open) == 0 {
			s.endLine()
		}
	case ' ', '\t', '\f':
		if err := s.indentation(c); err != nil {
			return err
		}
		s.advance(1)
	case '#':
		n := strings.IndexByte(rest, '\n')
		if n < 0 {
			n = len(rest)
		}
		s.advance(n)
	case '\\':
		if !strings.HasPrefix(rest, "\\\n") {
			return s.fail(`a backslash that does not end its line`)
		}
		s.advance(2)
	default:
		return s.token(rest)
	}
	return nil
}

// indentation refuses a file that indents with tabs here and with blanks there: Python does, and columns would lie.
func (s *scanner) indentation(c byte) *Error {
	if len(s.current) > 0 || len(s.open) > 0 || (c != ' ' && c != '\t') {
		return nil
	}
	if blank := strings.TrimLeft(s.rest(), " \t\f"); blank == "" || blank[0] == '\n' || blank[0] == '#' {
		return nil
	}
	if s.tabs != 0 && s.tabs != c {
		return s.fail("tabs and blanks are mixed in the indentation of this file; use blanks")
	}
	s.tabs = c
	return nil
}

func (s *scanner) token(rest string) *Error {
	t := token{line: s.line, col: s.col, depth: len(s.open)}
	if n := len(s.open); n > 0 {
		t.bracket = s.open[n-1].text
	}
	n := 0
	if prefix, quote := stringStart(rest); quote != "" {
		t.kind = stringToken
		end := stringEnd(rest[prefix+len(quote):], quote)
		if end < 0 {
			return s.fail("a string is never closed")
		}
		n = prefix + len(quote) + end
	} else if r, _ := utf8.DecodeRuneInString(rest); r == '_' || unicode.IsLetter(r) {
		t.kind = nameToken
		n = len(rest) - len(strings.TrimLeftFunc(rest, isNameRune))
	} else if isDigit(rest[0]) || rest[0] == '.' && len(rest) > 1 && isDigit(rest[1]) {
		t.kind = numberToken
		n = numberEnd(rest)
	} else {
		t.kind = opToken
		for _, op := range operators {
			if strings.HasPrefix(rest, op) {
				n = len(op)
				break
			}
		}
		if n == 0 {
			return s.fail("unexpected character %q", r)
		}
	}
	t.text = s.advance(n)
	s.current = append(s.current, t)
	if t.kind == opToken {
		return s.bracket(t)
	}
	return nil
}

var closes = map[string]string{")": "(", "]": "[", "}": "{"}

func (s *scanner) bracket(t token) *Error {
	switch t.text {
	case "(", "[", "{":
		if len(s.open) == maxNesting {
			return &Error{Line: t.line, Column: t.col, Msg: fmt.Sprintf("brackets are nested deeper than %d", maxNesting)}
		}
		s.open = append(s.open, t)
	case ")", "]", "}":
		n := len(s.open)
		if n == 0 || s.open[n-1].text != closes[t.text] {
			return &Error{Line: t.line, Column: t.col, Msg: fmt.Sprintf("%q closes nothing", t.text)}
		}
		s.open = s.open[:n-1]
	}
	return nil
}

// stringStart gives the length of a string literal's prefix and its opening quote, or "" when none starts here.
func stringStart(rest string) (int, string) {
	prefix := 0
	for prefix < len(rest) && prefix < 2 && strings.IndexByte("rRbBuUfF", rest[prefix]) >= 0 {
		prefix++
	}
	for _, quote := range []string{`"""`, `'''`, `"`, `'`} {
		if strings.HasPrefix(rest[prefix:], quote) {
			return prefix, quote
		}
	}
	return 0, ""
}

// stringEnd gives the offset behind the closing quote, or -1.
func stringEnd(body, quote string) int {
	for i := 0; i < len(body); i++ {
		switch {
		case body[i] == '\\':
			i++
		case strings.HasPrefix(body[i:], quote):
			return i + len(quote)
		case body[i] == '\n' && len(quote) == 1:
			return -1
		}
	}
	return -1
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNameRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// numberEnd is generous: what is no number in Starlark, its parser refuses with the position.
func numberEnd(rest string) int {
	hex := len(rest) > 1 && rest[0] == '0' && (rest[1] == 'x' || rest[1] == 'X')
	for i := 1; i < len(rest); i++ {
		c := rest[i]
		exponentSign := !hex && (c == '+' || c == '-') && (rest[i-1] == 'e' || rest[i-1] == 'E')
		if c != '.' && c != '_' && !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && !exponentSign {
			return i
		}
	}
	return len(rest)
}
