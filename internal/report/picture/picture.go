// Package picture contains what the HTML pages of this project share: the colours and marks for jobs, waits and
// preemptions, for light and dark mode; round ticks of axes; and Markup, which writes HTML and SVG and escapes text.
//
// It does not use html/template, whose reflection would keep every method of every type in the trainer's binary: six
// megabytes.
package picture

import (
	_ "embed"
	"fmt"
	"html"
	"math"
	"reflect"
	"strings"
)

// Style is the style sheet of every page.
//
//go:embed style.css
var Style string

// Markup is HTML or SVG being written.
type Markup struct{ text strings.Builder }

// Raw is markup that has been made here, and is not escaped again.
type Raw string

// Put writes a format, which is trusted, and a newline. Its arguments are not: strings of any kind are escaped, for
// text and for quoted attributes alike. Numbers are written as they are, with infinities and NaN as 0.
func (m *Markup) Put(format string, args ...any) {
	escaped := make([]any, len(args))
	for i, a := range args {
		escaped[i] = escape(a)
	}
	fmt.Fprintf(&m.text, format, escaped...)
	m.text.WriteByte('\n')
}

// Markup is what has been written.
func (m *Markup) Markup() Raw { return Raw(m.text.String()) }

func escape(a any) any {
	switch a := a.(type) {
	case Raw:
		return string(a)
	case string:
		return html.EscapeString(a)
	case error:
		return html.EscapeString(a.Error())
	case fmt.Stringer:
		return html.EscapeString(a.String())
	case float64:
		if math.IsNaN(a) || math.IsInf(a, 0) {
			return 0.0
		}
		return a
	}
	switch v := reflect.ValueOf(a); v.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return a
	default:
		return html.EscapeString(fmt.Sprint(a))
	}
}
