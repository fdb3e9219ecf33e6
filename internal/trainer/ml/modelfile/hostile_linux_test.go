package modelfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// hostile are model files that a few lines make cost as much memory or time as they like, unless what they make is
// counted: the section of the base file that each replaces, and its text.
var hostile = []struct{ name, section, text string }{
	{"a string replaced into a longer one", "rest", "s = 'a'\nfor i in range(40):\n    s = s.replace('a', 'aa')"},
	{"strings that double", "rest", "s = 'a'\nfor i in range(60):\n    s = s + s"},
	{"strings that double in place", "rest", "s = 'a'\nfor i in range(60):\n    s += s"},
	{"strings that are kept", "rest", "s = 'a' * 1000000\nl = [s + str(i) for i in range(1000000)]"},
	{"strings that are joined", "rest", "l = ['a' * 100000] * 100000\ns = 'b'.join(l)"},
	{"a separator that is repeated", "rest", "s = ('a' * 1000000).join(['b'] * 100000)"},
	{"strings that are formatted", "rest", "s = ('{0}' * 10000).format('a' * 1000000)"},
	{"strings that are interpolated", "rest", "s = ('%s' * 10000) % tuple(['a' * 1000000] * 10000)"},
	{"strings interpolated by name", "rest", "s = ('%(a)s' * 10000) % {'a': 'a' * 1000000}"},
	{"upper case that is kept", "rest", "s = 'a' * 1000000\nl = [s.upper() for i in range(1000000)]"},
	{"words that are kept", "rest", "s = 'a ' * 500000\nl = [s.split() for i in range(10000)]"},
	{"letters that are listed", "rest", "s = 'a' * 1000000\nl = [list(s.elems()) for i in range(10000)]"},
	{"code points that are listed", "rest", "s = 'a' * 1000000\nl = [list(s.codepoints()) for i in range(10000)]"},
	{"a zip of ranges", "rest", "l = list(zip(range(1000000000), range(1000000000)))"},
	{"many zips", "rest", "l = [zip(range(1000000), range(1000000)) for i in range(1000000)]"},
	{"an enumerated range", "rest", "l = enumerate(range(1000000000))"},
	{"a list of a range", "rest", "l = list(range(1000000000))"},
	{"many lists of ranges", "rest", "l = [list(range(1000000)) for i in range(1000000)]"},
	{"many tuples of ranges", "rest", "l = [tuple(range(1000000)) for i in range(1000000)]"},
	{"many sorted ranges", "rest", "l = [sorted(range(1000000)) for i in range(1000000)]"},
	{"many reversed ranges", "rest", "l = [reversed(range(1000000)) for i in range(1000000)]"},
	{"many sets", "rest", "l = [set(range(1000000)) for i in range(1000000)]"},
	{"many dicts", "rest", "r = [(i, i) for i in range(100000)]\nl = [dict(r) for i in range(1000000)]"},
	{"a spread range", "rest", "def f(*a):\n    return a\nx = f(*range(1000000000))"},
	{"spread ranges that are kept", "rest", "def f(*a):\n    return a\nr = range(1000000)\nx = [f(*r) for i in range(1000000)]"},
	{"spread dicts that are kept", "rest", "def f(**k):\n    return k\nd = {str(i): i for i in range(1000)}\nx = [f(**d) for i in range(1000000)]"},
	{"keyword dicts that are kept", "rest", "def f(**k):\n    return k\nx = [f(a=1) for i in range(100000000)]"},
	{"keyword dicts of a lambda", "rest", "f = lambda **k: k\nx = [f(a=1) for i in range(100000000)]"},
	{"a list that doubles", "rest", "l = [1]\nfor i in range(60):\n    l = l + l"},
	{"a list that doubles in place", "rest", "l = [1]\nfor i in range(60):\n    l += l"},
	{"a list that is extended by itself", "rest", "l = [1]\nfor i in range(60):\n    l.extend(l)"},
	{"a list that is extended by a range", "rest", "l = []\nl.extend(range(1000000000))"},
	{"a list that is multiplied", "rest", "l = [[0] * 1000000 for i in range(1000000)]"},
	{"slices that are kept", "rest", "l = [0] * 1000000\nm = [l[:] for i in range(1000000)]"},
	{"reversed slices of strings", "rest", "s = 'a' * 1000000\nm = [s[::-1] for i in range(1000000)]"},
	{"a list that is appended to", "rest", "l = []\nfor i in range(100000000):\n    l.append(i)"},
	{"a list that is inserted into", "rest", "l = []\nfor i in range(100000000):\n    l.insert(0, i)"},
	{"empty dicts", "rest", "l = [{} for i in range(100000000)]"},
	{"empty lists", "rest", "l = [[] for i in range(100000000)]"},
	{"functions", "rest", "def g():\n    l = []\n    for i in range(100000000):\n        def f(a=i):\n            return a\n        l.append(f)\n    return l\nx = g()"},
	{"lambdas", "rest", "l = [lambda a=i: a for i in range(100000000)]"},
	{"a dict comprehension", "rest", "d = {i: i for i in range(100000000)}"},
	{"a dict that is filled", "rest", "d = {}\nfor i in range(100000000):\n    d[i] = i"},
	{"a dict that is filled by setdefault", "rest", "d = {}\nfor i in range(100000000):\n    d.setdefault(i, i)"},
	{"a dict that is updated", "rest", "l = []\nfor i in range(10000):\n    d = {}\n    d.update([(j, j) for j in range(10000)])\n    l.append(d)"},
	{"united dicts", "rest", "a = {i: i for i in range(10000)}\nl = [a | a for i in range(100000)]"},
	{"united sets", "rest", "a = set(range(10000))\nl = [a | a for i in range(100000)]\nm = [a.union(a) for i in range(100000)]"},
	{"items that are kept", "rest", "d = {i: i for i in range(10000)}\nl = [d.items() for i in range(100000)]"},
	{"a set that is added to", "rest", "d = set()\nfor i in range(100000000):\n    d.add(i)"},
	{"bound methods", "rest", "a = []\nl = [a.append for i in range(100000000)]"},
	{"unknown names", "rest", "l = [tf.nothing for i in range(100000000)]"},
	{"unknown names that grow", "rest", "x = tf.nothing\nl = []\nfor i in range(1000000):\n    x = x.a\n    l.append(x)"},
	{"names that are asked for", "rest", "l = [getattr(tf, 'x' + str(i)) for i in range(100000000)]"},
	{"methods that are asked for", "rest", "s = 'a'\nfor i in range(40):\n    s = getattr(s, 'replace')('a', 'aa')"},
	{"large integers", "rest", "x = 1 << 500\nfor i in range(1000000):\n    x = x << 500"},
	{"integers that are squared", "rest", "x = 3\nfor i in range(60):\n    x *= x"},
	{"integers that are kept", "rest", "x = 1 << 500\nl = [x + i for i in range(100000000)]"},
	{"integers of text", "rest", "s = '9' * 1000000\nl = [int(s) for i in range(1000000)]"},
	{"floats that are kept", "rest", "l = [i / 3 for i in range(100000000)]"},
	{"bytes that are kept", "rest", "b = bytes('a' * 1000000)\nl = [b + b for i in range(1000000)]"},
	{"bytes of a range", "rest", "b = bytes([1] * 1000000)\nl = [bytes([1] * 1000000) for i in range(1000000)]"},

	{"shared tuples that are printed", "rest", "t = (1, 2)\nfor i in range(60):\n    t = (t, t)\ns = str(t)"},
	{"shared tuples that are interpolated", "rest", "t = (1, 2)\nfor i in range(60):\n    t = (t, t)\ns = '%s' % (t,)"},
	{"shared tuples that are formatted", "rest", "t = (1, 2)\nfor i in range(60):\n    t = (t, t)\ns = '{}'.format(t)"},
	{"shared tuples that are hashed", "rest", "t = (1, 2)\nfor i in range(60):\n    t = (t, t)\nd = {t: 1}"},
	{"shared tuples that are looked up", "rest", "t = (1, 2)\nfor i in range(60):\n    t = (t, t)\nd = {1: 1}\nx = d[t]"},
	{"shared tuples that are got", "rest", "t = (1, 2)\nfor i in range(60):\n    t = (t, t)\nd = {1: 1}\nx = d.get(t)"},
	{"shared tuples that are added", "rest", "t = (1, 2)\nfor i in range(60):\n    t = (t, t)\nd = set()\nd.add(t)"},
	{"shared tuples of a set", "rest", "t = (1, 2)\nfor i in range(60):\n    t = (t, t)\nd = set([t])"},
	{"shared tuples that are compared", "rest", "t = (1, 2)\nu = (1, 2)\nfor i in range(60):\n    t = (t, t)\n    u = (u, u)\ns = t == u"},
	{"wide tuples that are compared", "rest", "t = (1,)\nu = (1,)\nfor i in range(8):\n    t = (t,) * 1000\n    u = (u,) * 1000\ns = t == u"},
	{"wide lists that are sorted", "rest", "t = [1]\nfor i in range(8):\n    t = [t] * 1000\ns = sorted([t, t, t])"},
	{"wide lists that are searched", "rest", "t = [1]\nu = [1]\nfor i in range(8):\n    t = [t] * 1000\n    u = [u] * 1000\ns = t in [u]"},
	{"wide lists that are indexed", "rest", "t = [1]\nu = [1]\nfor i in range(8):\n    t = [t] * 1000\n    u = [u] * 1000\ns = [u].index(t)"},
	{"shared lists that are printed", "rest", "t = [1]\nfor i in range(60):\n    t = [t, t]\ns = str(t)"},
	{"shared tuples that stay", "rest", "t = (1, 2)\nfor i in range(60):\n    t = (t, t)"},
	{"shared tuples of zip that stay", "rest", "t = (1, 2)\nfor i in range(60):\n    t = zip([t], [t])[0]"},
	{"shared defaults that stay", "rest", "f = lambda: 0\nfor i in range(60):\n    f = lambda a=f, b=f: 0"},
	{"nested lists that stay", "rest", "t = []\nfor i in range(10000000):\n    t = [t]"},
	{"nested tuples that stay", "rest", "t = ()\nfor i in range(10000000):\n    t = (t,)"},
	{"nested dicts that stay", "rest", "t = {}\nfor i in range(10000000):\n    t = {1: t}"},
	{"a function that holds itself", "rest", "def g():\n    def f():\n        return f\n    return f\nx = g()"},
	{"methods bound to each other", "rest", "l = []\nfor i in range(10000000):\n    l = [l.append]"},
	{"shared tuples in an exception", "rest", "t = (1, 2)\nfor i in range(60):\n    t = (t, t)\nraise ValueError({1: t})"},
	{"shared tuples in fail", "rest", "t = (1, 2)\nfor i in range(60):\n    t = (t, t)\nfail(t)"},
	{"shared tuples in print", "rest", "t = (1, 2)\nfor i in range(60):\n    t = (t, t)\nprint(t)"},
	{"shared tuples as a key that is missing", "rest", "d = {}\nt = (1, 2)\nfor i in range(60):\n    t = (t, t)\nd.pop(t)"},
	{"shared tuples as an argument", "body", "t = (1, 2)\nfor i in range(60):\n    t = (t, t)\nx = tf.keras.layers.Dense(t)(x)"},
	{"shared tuples as a dict argument", "body", "t = (1, 2)\nfor i in range(60):\n    t = (t, t)\nx = tf.keras.layers.Dense({1: t})(x)"},
	{"shared dicts that are returned", "metrics", "def eval_metrics_fn():\n    t = {}\n    for i in range(60):\n        t = {1: t, 2: t}\n    return {1: t}"},
	{"a key of shared tuples", "metrics", "def eval_metrics_fn():\n    t = (1, 2)\n    for i in range(60):\n        t = (t, t)\n    return t"},

	{"a search in a list", "rest", "l = [0] * 1000000\nwhile True:\n    1 in l"},
	{"a search in a string", "rest", "s = 'a' * 1000000\nwhile True:\n    s.count('b')"},
	{"a sum", "rest", "l = [0] * 1000000\nwhile True:\n    sum(l)"},
	{"a maximum", "rest", "l = range(1000000)\nwhile True:\n    max(l)"},
	{"all", "rest", "l = [1] * 1000000\nwhile True:\n    all(l)"},
	{"an endless loop", "rest", "while True:\n    pass"},
	{"a list compared with itself", "rest", "l = [0] * 1000000\nm = [0] * 1000000\nwhile True:\n    l == m"},
	{"tuples that are hashed", "rest", "t = tuple(range(100000))\nd = {t: 1}\nwhile True:\n    d[t]"},

	{"arrays", "rest", "import numpy as np\nl = [np.resize(np.array([1.0]), (1000000,)) for i in range(1000)]"},
	{"arrays of lists", "rest", "import numpy as np\nl = np.array([[0] * 1000] * 1000)"},
	{"arrays of one element", "rest", "import numpy as np\na = np.array([1])\nl = [a[0] for i in range(100000000)]"},
	{"large features", "feed", "def input_fn(records):\n    l = []\n    for r in records:\n        for i in range(100):\n            l.append(tf.io.parse_single_example(r, {'a': tf.io.FixedLenFeature([16000000], tf.float32), 'b': tf.io.FixedLenFeature([1], tf.int64)}))\n    return l, l"},

	{"layers", "body", "for i in range(1000000):\n    x = tf.keras.layers.Dense(1)(x)"},
	{"layers that are not called", "body", "l = [tf.keras.layers.Dense(1) for i in range(100000000)]"},
	{"sums of layers", "body", "for i in range(1000000):\n    x = x + x"},
	{"optimizers", "optimizer", "def optimizer(lr=0.1):\n    l = [tf.optimizers.SGD(lr) for i in range(100000000)]\n    return l[0]"},
	{"traced values", "loss", "def loss(labels, output):\n    for i in range(100000000):\n        output = output + 1\n    return output"},
	{"a traced tree", "loss", "def loss(labels, output):\n    for i in range(60):\n        output = output + output\n    return output"},
	{"notices", "feed", "def feed(dataset, mode, _):\n    for i in range(1000000):\n        dataset = dataset.shuffle(i)\n    return dataset"},
	{"features", "feed", "def feed(dataset, mode, _):\n    def parse(r):\n        for i in range(1000000):\n            tf.io.parse_single_example(r, {str(i): tf.io.FixedLenFeature([1], tf.int64)})\n        return r\n    return dataset.map(parse)"},

	{"minus signs", "file", "x = " + strings.Repeat("-", 120000) + "1"},
	{"not", "file", "x = " + strings.Repeat("not ", 30000) + "1"},
	{"lambdas in lambdas", "file", "x = " + strings.Repeat("lambda:", 18000) + "1"},
	{"conditions in conditions", "file", "x = " + strings.Repeat("1 if 1 else ", 10000) + "1"},
	{"attributes of attributes", "file", "x = a" + strings.Repeat(".a", 60000)},
	{"calls of calls", "file", "x = a" + strings.Repeat("()", 60000)},
	{"elements of elements", "file", "x = a" + strings.Repeat("[0]", 40000)},
	{"a long sum", "file", "x = 1" + strings.Repeat("+1", 60000)},
	{"a long disjunction", "file", "x = 1" + strings.Repeat(" or 1", 25000)},
	{"else if", "file", "if 1:\n pass\n" + strings.Repeat("elif 1:\n pass\n", 9000)},
	{"blocks in blocks", "file", lines(480, func(i int) string { return strings.Repeat(" ", i) + "if 1:\n" }) + strings.Repeat(" ", 480) + "pass"},
	{"names that follow each other", "feed", "def input_fn(records):\n    return a0\n" +
		lines(5000, func(i int) string { return fmt.Sprintf("a%d = lambda: a%d\n", i, i+1) }) + "a5000 = 1"},
	{"many names", "file", lines(14000, func(i int) string { return fmt.Sprintf("a%d=%d\n", i, i) })},
}

// lines joins n lines. Every process of the test makes them, so that it has to be quick.
func lines(n int, line func(i int) string) string {
	var text strings.Builder
	for i := range n {
		text.WriteString(line(i))
	}
	return text.String()
}

const (
	hostileVariable = "MODEL_FILE_HOSTILE"
	hostileMiB      = 320 // of the resident set of a process that loads one: 50 are its own code; on a busy machine the collector lags behind
)

// hostileLimits are a third of the default in memory and a tenth in time, so that all files take seconds.
var hostileLimits = limits{steps: 1e7, memory: 64 << 20, sequenceSize: 1 << 20, integerBits: 4096}

// TestHostileFilesCostLittle loads each hostile file in a process of its own, so that one that takes all memory is a
// failure and not the end of the machine.
func TestHostileFilesCostLittle(t *testing.T) {
	if name := os.Getenv(hostileVariable); name != "" {
		loadHostile(t, name)
		return
	}
	for i, h := range hostile {
		if testing.Short() && i%8 > 0 {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHostileFilesCostLittle$", "-test.timeout=5m")
			cmd.Env = append(os.Environ(), hostileVariable+"="+h.name)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %.3000s", err, out)
			}
			usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			said, _, _ := strings.Cut(string(out), "\n")
			t.Logf("%d MiB, %.1f s: %s", usage.Maxrss>>10, cmd.ProcessState.UserTime().Seconds(), said)
			if usage.Maxrss>>10 > hostileMiB {
				t.Errorf("the process took %d MiB; %d are allowed", usage.Maxrss>>10, hostileMiB)
			}
		})
	}
}

func loadHostile(t *testing.T, name string) {
	const most = 1 << 30 // the machine's memory is not the test's to take
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
		t.Fatal(err)
	}
	for _, h := range hostile {
		if h.name != name {
			continue
		}
		_, _, err := Load("m.py", []byte(assemble(h.section, h.text)), Options{limits: hostileLimits})
		var refused *Error
		if err != nil && (!errors.As(err, &refused) || len(refused.Msg) > 2000) {
			t.Fatalf("%.3000s", err.Error())
		}
		fmt.Println(err)
		return
	}
	t.Fatalf("no hostile file %q", name)
}
