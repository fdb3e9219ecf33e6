package elasticdl

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestACommandLineIsSplitAsAShellDoes(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want []string
	}{
		"blanks of all kinds":                 {" a\tb  c\n", []string{"a", "b", "c"}},
		"an empty line":                       {" \n", nil},
		"a line that continues":               {"--a=1 \\\n    --b=2 \\\n", []string{"--a=1", "--b=2"}},
		"a line that continues, from Windows": {"--a=1 \\\r\n --b=2", []string{"--a=1", "--b=2"}},
		"a word that continues":               {"--a=\\\n1", []string{"--a=1"}},
		"quotes in a word":                    {`--a='x y'"z  w"`, []string{"--a=x yz  w"}},
		"an empty word":                       {`a '' ""`, []string{"a", "", ""}},
		"a backslash":                         {`a\ b \"c\" \$d`, []string{"a b", `"c"`, "$d"}},
		"a backslash in single quotes":        {`'a\b'`, []string{`a\b`}},
		"backslashes in double quotes":        {`"a\b\"\\\$"`, []string{`a\b"\$`}},
		"what is protected by quotes":         {`'$x;*' "a|b*~"`, []string{"$x;*", "a|b*~"}},
		"a comment":                           {"a # b 'c\nd#e", []string{"a", "d#e"}},
		"letters of all languages":            {"--name=größe", []string{"--name=größe"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Words(c.line)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
	for name, c := range map[string]struct{ line, wantText string }{
		"a single quote without end": {"a 'b c", `a single quote in the command line does not end, at "'b c"`},
		"a double quote without end": {`a "b \" c`, "a double quote in the command line does not end"},
		"a backslash at the end":     {`a \`, "ends with a backslash"},
		"a variable":                 {"--image_base=gcr.io/${project_name}/elasticdl:dev", `there is a '$' in the command line, at "${project_name}/elas"…`},
		"a variable in quotes":       {`"$x"`, `'$'`},
		"a command":                  {"a `b`", "'`'"},
		"two commands":               {"a; b", "';'"},
		"a home directory":           {"~/a", "'~'"},
		"a pattern":                  {"a*", "'*'"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			if got, err := Words(c.line); err == nil || !strings.Contains(err.Error(), c.wantText) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// What is accepted holds nothing that a shell would act on, so that it is safe to give it to one.
func TestWordsAreTheShells(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringOfN(rapid.SampledFrom([]rune(`ab-= '"\#$ `)), 1, 16, -1).Draw(t, "line")
		words, err := Words(line)
		if err != nil {
			return
		}
		printed, err := exec.Command(shell, "-c", "set -- "+line+"\n"+`for word in "$@"; do printf '%s\0' "$word"; done`).Output()
		if err != nil {
			t.Fatalf("sh refuses %q, which gave %q: %v", line, words, err)
		}
		var want []string
		if len(printed) > 0 {
			want = strings.Split(strings.TrimSuffix(string(printed), "\x00"), "\x00")
		}
		if !slices.Equal(words, want) {
			t.Fatalf("%q: got %q, the shell %q", line, words, want)
		}
	})
}

func FuzzWords(f *testing.F) {
	for _, seed := range []string{"", tutorialLow, "a 'b", `"\`, "\\\n", "#", "'a'\"b\"\\c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, err := Words(line)
		if err != nil {
			return
		}
		quoted := make([]string, len(words))
		for i, word := range words {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		again, err := Words(strings.Join(quoted, " "))
		if err != nil || !slices.Equal(words, again) {
			t.Errorf("%q, quoted and split again: %q, %v", words, again, err)
		}
	})
}

// FuzzParse: a command line that is refused is refused in words, and one that is accepted names a job that can be written.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", tutorialLow, tutorialLow + " --unknown=1", "elasticdl train --job_name", "--envs=a=b,c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if _, err := Parse(line); err != nil && err.Error() == "" {
			t.Errorf("%q is refused without a word", line)
		}
	})
}
