package modelfile

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestTranslate(t *testing.T) {
	for _, path := range ownFiles(t) {
		t.Run("every token of "+filepath.Base(path)+" that is kept stands where it stood", func(t *testing.T) {
			checkPositions(t, string(readFile(t, path)))
		})
	}

	for name, c := range map[string]struct{ in, want string }{
		"an import becomes pass":                          {"import a.b as c", "pass"},
		"lines of an import stay":                         {"from a import ( # (\n  b,\n  c)\nx", "pass\n\n\nx"},
		"a backslash continues an import":                 {"from a \\\n  import b\nx", "pass\n\nx"},
		"an import in a function stays a statement":       {"def loss(): import a; return 1", "def loss(): pass    ; return 1"},
		"the word import in a string is no import":        {"x = '''\nimport a\n'''", "x = '''\nimport a\n'''"},
		"comments vanish":                                 {"x = 1 # one\n# two\ny = 2", "x = 1\n\ny = 2"},
		"a backslash stays where a line continues":        {"x = 1 + \\\n    2", "x = 1 + \\\n    2"},
		"is None is a comparison":                         {"x is  None; None is not x", "x ==  None; None !=     x"},
		"strings side by side are one":                    {"f('it''s', \"a\"  # c\n  'b\"')", `f("its"  , "ab\""` + "\n      )"},
		"a quote that is escaped stays escaped":           {`x = 'a\'' "b\\"`, `x = "a\'b\\"`},
		"raise becomes an assignment to the marker":       {"raise E(1)", "__r_= E(1)"},
		"assert becomes an assignment to the marker":      {"assert(x), y", "__as_=(x), y"},
		"the prefix u goes":                               {"x = u'a'", "x = 'a'"},
		"a class becomes a function at its place":         {"class A(b.C, D):\n  x = 1\nclass E: pass\ny = A, E", "def   A(      ):\n  x = 1\ndef   E():pass\ny = A, E"},
		"carriage returns are line ends":                  {"x = 1\r\ny = 2\r\n", "x = 1\ny = 2"},
		"a decorator of TensorFlow goes":                  {"@tf.function\ndef loss(): pass", "\ndef loss(): pass"},
		"attributes may have the names of Python's words": {"x.is_none, x.raise_", "x.is_none, x.raise_"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := translate(c.in, nil, &Report{})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSuffix(out.text, "\n"); got != c.want {
				t.Errorf("got\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

// checkPositions translates src and compares the tokens of the result with those of src by line and column.
func checkPositions(t *testing.T, src string) {
	t.Helper()
	out, refused := translate(src, nil, &Report{})
	if refused != nil {
		return
	}
	before, after := positions(t, src), positions(t, out.text)
	for at, text := range after {
		original, kept := before[at]
		replaced := text == "pass" || text == "==" || text == "!=" || text == raiseMarker || text == assertMarker || strings.ContainsAny(text[:1], `"'`)
		assignment := text == "=" // of a marker
		ofClass := before[[2]int{at[0], 1}] == "class" && (text == "def" || text == "(" || text == ")" || text == ":")
		if (!kept || original != text) && !replaced && !assignment && !ofClass {
			t.Errorf("%q stands at %v, where the file has %q", text, at, original)
		}
	}
}

func positions(t *testing.T, src string) map[[2]int]string {
	t.Helper()
	lines, err := tokenize(src)
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	all := map[[2]int]string{}
	for _, line := range lines {
		for _, tok := range line {
			all[[2]int{tok.line, tok.col}] = tok.text
		}
	}
	return all
}
