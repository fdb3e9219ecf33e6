package modelfile

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.starlark.net/starlark"
)

// The guide "Supported Keras API" is generated: its tables are what the facade knows, and its introduction is in
// testdata.
func TestTheGuideToTheKerasAPIIsUpToDate(t *testing.T) {
	const guide = "../../../../templates/guides/supported-keras-api.md"
	text, err := os.ReadFile("testdata/supported-keras-api.md")
	if err != nil {
		t.Fatal(err)
	}
	want := string(text) + kerasTables(t)
	if rewriting() {
		if err := os.WriteFile(guide, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(guide); err != nil || string(have) != want {
		t.Errorf("%s is out of date (%v); run: go test ./internal/trainer/ml/modelfile -rewrite && make docs", guide, err)
	}
}

// guideSection is one table of the guide: the paths that begin with one of its prefixes and are in no section before
// it.
type guideSection struct {
	title    string
	prefixes []string
}

var guideSections = []guideSection{
	{"Models and inputs", []string{"tensorflow.keras.Input", "tensorflow.keras.layers.Input", "tensorflow.keras.Model", "tensorflow.keras.models.", "tensorflow.keras.Sequential", "tensorflow.keras.layers.Layer"}},
	{"Layers", []string{"tensorflow.keras.layers.", "elasticdl.python.elasticdl.layers."}},
	{"Preprocessing layers of ElasticDL", []string{"elasticdl_preprocessing.layers."}},
	{"Feature columns", []string{"tensorflow.feature_column.", "elasticdl.python.elasticdl.feature_column.", "elasticdl_preprocessing.feature_column."}},
	{"Optimizers", []string{"tensorflow.optimizers.", "tensorflow.keras.optimizers.", "tensorflow.train."}},
	{"Metrics", []string{"tensorflow.keras.metrics."}},
	{"Functions of losses", []string{"tensorflow.nn.sparse", "tensorflow.nn.softmax_", "tensorflow.nn.sigmoid_", "tensorflow.keras.losses.", "tensorflow.math.squared_difference", "tensorflow.one_hot"}},
	{"Activation functions", []string{"tensorflow.keras.activations.", "tensorflow.nn.", "tensorflow.sigmoid", "tensorflow.tanh"}},
	{"Records and data sets", []string{"tensorflow.io.", "tensorflow.data.", "tensorflow.parse_single_example", "tensorflow.FixedLenFeature", "tensorflow.decode", "elasticdl.python.data.", "elasticdl.python.common.constants."}},
	{"Other functions of TensorFlow", []string{"tensorflow."}},
	{"NumPy", []string{"numpy."}},
	{"Other modules", []string{""}},
}

func kerasTables(t *testing.T) string {
	t.Helper()
	rows, refused := map[string]map[string][]string{}, map[string][]string{}
	facade, names := newFacade(), argumentNames(t)
	for _, path := range slices.Sorted(maps.Keys(facade.values)) {
		value := facade.values[path]
		if u, is := value.(unknown); is {
			refused[u.reason] = append(refused[u.reason], "`"+display(path)+"`")
			continue
		}
		at := slices.IndexFunc(guideSections, func(s guideSection) bool {
			return slices.ContainsFunc(s.prefixes, func(p string) bool { return strings.HasPrefix(path, p) })
		})
		title := guideSections[at].title
		if rows[title] == nil {
			rows[title] = map[string][]string{}
		}
		// Aliases share a row: paths with the same last name and the same arguments.
		key := path[strings.LastIndexByte(path, '.')+1:] + " | " + argumentsOf(t, value, names)
		rows[title][key] = append(rows[title][key], "`"+display(path)+"`")
	}
	var out strings.Builder
	for _, section := range guideSections {
		fmt.Fprintf(&out, "\n## %s\n\n| name | arguments | arguments with a fixed value |\n|---|---|---|\n", section.title)
		for _, key := range slices.Sorted(maps.Keys(rows[section.title])) {
			_, arguments, _ := strings.Cut(key, " | ")
			fmt.Fprintf(&out, "| %s | %s |\n", strings.Join(rows[section.title][key], ", "), arguments)
		}
	}
	out.WriteString("\n## Built-in functions and exceptions of Python\n\n")
	fmt.Fprintf(&out, "%s.\n", code(slices.Sorted(maps.Keys(builtins()))))
	out.WriteString("\n## Not implemented, with an alternative\n\nAll names that are not on this page are refused. For these the error also names an alternative:\n\n| name | error |\n|---|---|\n")
	for _, reason := range slices.Sorted(maps.Keys(refused)) {
		fmt.Fprintf(&out, "| %s | %s |\n", strings.Join(refused[reason], ", "), strings.ReplaceAll(reason, "|", `\|`))
	}
	return out.String()
}

func code(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

// argumentNames are all words that may be the name of an argument: every string literal of the package that looks like
// one.
func argumentNames(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"([a-z][a-z0-9_]*)"`).FindAllSubmatch(source, -1) {
			found[string(m[1])] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

var (
	refusedArgument = regexp.MustCompile(`argument "no such argument" is not implemented \((.*)\)$`)
	fixedArgument   = regexp.MustCompile(`=.* is not implemented; only (.*) is$`)
)

// argumentsOf finds out which arguments a function binds, from how it refuses others, and never runs it: a name that is
// bound is followed by one that is refused. The result is the last two cells of a row.
func argumentsOf(t *testing.T, value starlark.Value, names []string) string {
	t.Helper()
	callable, is := value.(*starlark.Builtin)
	if !is {
		return " | "
	}
	refuses := func(name string) string {
		thread := (&session{limits: defaultLimits, report: &Report{}}).thread("guide")
		other := starlark.String("no such value")
		_, err := callable.CallInternal(thread, nil, []starlark.Tuple{{starlark.String(name), other}, {starlark.String("no such argument"), other}})
		if err == nil {
			return ""
		}
		return err.Error()
	}
	bound := refusedArgument.FindStringSubmatch(refuses("no such argument"))
	if bound == nil {
		return " | "
	}
	var free, fixed []string
	for _, name := range names {
		if m := fixedArgument.FindStringSubmatch(refuses(name)); m != nil && strings.Contains(refuses(name), ": "+name+"=") {
			fixed = append(fixed, "`"+name+"="+m[1]+"`")
		}
	}
	isFixed := func(name string) bool {
		return slices.ContainsFunc(fixed, func(f string) bool { return strings.HasPrefix(f, "`"+name+"=") })
	}
	for name := range strings.SplitSeq(bound[1], ", ") {
		if name != "" && !isFixed(name) {
			free = append(free, name)
		}
	}
	return code(free) + " | " + strings.Join(fixed, ", ")
}
