package modelfile

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
	starlarkjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"
)

// askPython runs a program that reads JSON from its input and prints JSON.
func askPython(t *testing.T, program string, input, output any) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here to compare with")
	}
	in, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-W", "ignore", "-c", program)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, output); err != nil {
		t.Fatal(err)
	}
}

// pythonToken is a token as Python's own tokenizer sees it.
type pythonToken struct {
	Text      string
	Line, Col int
}

func TestTokensArePythons(t *testing.T) {
	const program = `
import io, json, sys, tokenize
keep = {tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP}
out = []
for text in json.load(sys.stdin):
    out.append([dict(Text=t.string, Line=t.start[0], Col=t.start[1] + 1)
                for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type in keep])
print(json.dumps(out))
`
	texts := []string{
		"x = '''a\n\"b\"\n''' + \"\\\"\" 'c\\\\'\n", "x = 1e-06 + .5 + 5. + 0x1F + 1_000\n", "a//=b**c<<d!=e->f:=g@h...\n",
		"f(a, # )\n  b)\nx = [\n\n1]\n", "x = 1 + \\\n  2\n", "ü = rb'x' + u\"y\" + F'z'\n", "if x:\n\ty = 1\n\tz = 2\n", "x = a.b .c\n", "x = {'a':1,'b':lambda:2}[k]\n",
	}
	for _, path := range ownFiles(t) {
		texts = append(texts, string(readFile(t, path)))
	}
	var want [][]pythonToken
	askPython(t, program, texts, &want)
	for i, text := range texts {
		lines, err := tokenize(text)
		if err != nil {
			t.Errorf("%v in\n%s", err, text)
			continue
		}
		var got []pythonToken
		for _, line := range lines {
			for _, tok := range line {
				got = append(got, pythonToken{tok.text, tok.line, tok.col})
			}
		}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("tokens of\n%s\n(-Python +ours)\n%s", text, diff)
		}
	}
}

// TestStatementsArePythons runs statements here and in Python and compares x.
func TestStatementsArePythons(t *testing.T) {
	snippets := []string{
		"x = ['a' in 'abc', 'abc' in 'a', 1 in [1, 2], 3 not in (1, 2), 'k' in {'k': 1}]",
		"x = [True == 1, 1.0 == 1, 0 == False, '1' == 1, None == 0, None is None, 1 is not None, [1] == [1], (1,) != (1,)]",
		"y = [1]; z = y; z += [2]; x = [y, z]",
		"y = [1]; z = y; z = z + [2]; x = [y, z]",
		"y = 3; y += 4; y -= 1; y *= 2; x = y",
		"x = 7 // 2; x += -7 // 2; x += 7 % -3",
		"x = [7 / 2, 6 / 3, 1e-06, .5]",
		"x = 'a' 'b' \"'\" '\"' 'c\\'d\\n' + 'e'",
		"x = ('long '\n     \"text\"\n     ' here')",
		"x = ['%s-%d' % ('a', 3), '{} {}'.format(1, 'b'), 'a,b'.split(',')]",
		"fs = []\nfor i in range(3):\n    fs.append(lambda j=i: j)\nx = [f() for f in fs]",
		"fs = []\nfor i in range(3):\n    fs.append(lambda: i)\nx = [f() for f in fs]",
		"def loss(a, *args, b=2, **kwargs):\n    return [a, list(args), b, kwargs]\nx = loss(1, 2, 3, b=4, c=5)",
		"def loss(n):\n    total = 0\n    while n > 0:\n        n -= 1\n        if n % 2 == 0: continue\n        total += n\n    return total\nx = loss(10)",
		"def loss(v):\n    return v if v is not None and not v == 3 else 'none'\nx = [loss(None), loss(3), loss(4)]",
		"def loss(v=None):\n    if v is None:\n        return 'nothing'\n    elif v:\n        return 'true'\n    else:\n        return 'false'\nx = [loss(), loss(1), loss(0), loss([]), loss([0]), loss('')]",
		"x = [0 or 'a', 1 and 'b', [] or None, not [], not 3, 1 < 2 or 1 / 0]",
		"x = [i * j for i in range(3) if i for j in [1, 10] if not j == i]",
		"x = {k: v for k, v in [('b', 1), ('a', 2)]}",
		"a, (b, c) = 1, (2, 3); a, b = b, a; x = [a, b, c]",
		"x = [-3, +3, ~3, 6 & 3, 6 | 3, 6 ^ 3, 1 << 4, -(-2)]",
		"x = [len([1, 2]), sum([1, 2.5]), max(1, 3), min([4, 2]), sorted([3, 1]), abs(-2), int('12'), float('1.5'), str(3), bool([]), any([0, 1]), all([])]",
		"x = [list(range(5))[1:4], 'hello'[1:-1], [1, 2, 3][-1], [1, 2, 3][::-1], list(zip([1, 2], [3, 4]))[1][0], [i for i, _ in enumerate('a b'.split())]]",
		"y = {'a': 1}; y['b'] = 2; y['a'] += 5; x = [y, y.get('c'), y.pop('a')]",
		"x = [isinstance(1, int), isinstance(True, int), isinstance(1, bool), isinstance(1.0, float), isinstance([], (list, tuple)), isinstance('s', str), isinstance(None, int)]",
		"x = 0\nfor i in [1, 2, 3]:\n    if i == 3: break\n    x += i",
		"assert 1 < 2, 'no'; assert (1, 2); x = 1",
		"x = 1 if 2 > 1 else 0; pass",
		"x = [2 <= 2, 'a' < 'b', [1, 2] < [1, 3], (1, 2) >= (1, 2)]",
	}
	const program = `
import json, sys
out = []
for text in json.load(sys.stdin):
    names = {}
    exec(text, names)
    out.append(names["x"])
print(json.dumps(out))
`
	var want []any
	askPython(t, program, snippets, &want)
	for i, text := range snippets {
		g, err := run(t, text)
		if err != nil {
			t.Errorf("%v in\n%s", err, text)
			continue
		}
		encoded, err := starlark.Call(&starlark.Thread{}, starlarkjson.Module.Members["encode"], starlark.Tuple{g["x"]}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal([]byte(encoded.(starlark.String)), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("x of\n%s\n(-Python +ours)\n%s", text, diff)
		}
	}
}

// TestExamplesArePython compiles the model files of this repository with Python, for which they are written.
func TestExamplesArePython(t *testing.T) {
	var texts []string
	for _, path := range ownFiles(t) {
		texts = append(texts, string(readFile(t, path)))
	}
	var compiled int
	askPython(t, "import json, sys\nprint(sum(bool(compile(s, 'm', 'exec')) for s in json.load(sys.stdin)))", texts, &compiled)
	if compiled != len(texts) {
		t.Errorf("%d of %d files are Python", compiled, len(texts))
	}
}
