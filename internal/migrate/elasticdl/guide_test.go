package elasticdl

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The guide's table compares the behaviour with ElasticDL's; the page for developers names the tests of each row. That
// the tests are there is checked for all documents at once, by documents_test.go in the repository's root.
func TestTheGuideNamesATestOrAReasonForEveryBehaviour(t *testing.T) {
	compared := behaviours(t, "../../../templates/guides/moving-from-elasticdl.md")
	tested := behaviours(t, "../../../docs/development/testing.md")
	cited := regexp.MustCompile("`(Test\\w+|[\\w-]+\\.txt)`")
	for n := 1; n <= 36; n++ {
		guide, page := compared[n], tested[n]
		if guide[0] == "" || guide[0] != page[0] {
			t.Errorf("behaviour %d is %q in the guide and %q on the page of tests", n, guide[0], page[0])
		}
		if !cited.MatchString(page[1]) && !strings.HasPrefix(guide[1], "differs") {
			t.Errorf("behaviour %d has neither a test nor a reason", n)
		}
	}
	if len(compared) != 36 || len(tested) != 36 {
		t.Errorf("the guide has %d behaviours, the page of tests %d, and ElasticDL's list 36", len(compared), len(tested))
	}
}

// behaviours are the second and the third cell of a document's rows that begin with a number.
func behaviours(t *testing.T, path string) map[int][2]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[int][2]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		rows[n] = [2]string{m[2], m[3]}
	}
	return rows
}

func TestTheGuideHasEveryFlagOfTheClient(t *testing.T) {
	text, err := os.ReadFile("../../../templates/guides/moving-from-elasticdl.md")
	if err != nil {
		t.Fatal(err)
	}
	var a Arguments
	for name := range flagsOf(&a) {
		if !strings.Contains(string(text), "`--"+name+"`") {
			t.Errorf("--%s is missing", name)
		}
	}
}

// TestTheFlagsOfLaterVersionsAreThoseOfTheGuide has every flag of the guide's table: it is read as the first client's, or
// refused with an attribute that the guide names.
func TestTheFlagsOfLaterVersionsAreThoseOfTheGuide(t *testing.T) {
	text, err := os.ReadFile("../../../templates/guides/moving-from-elasticdl.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "## Flags of later versions")
	table, _, _ := strings.Cut(after, "\n## ")
	flags := 0
	for _, row := range regexp.MustCompile(`(?m)^\| (`+"`--"+`[^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(table, -1) {
		for _, m := range regexp.MustCompile("`--(\\w+)\\*?(=[^`]+)?`").FindAllStringSubmatch(row[1], -1) {
			flags++
			if isRenamed := renamed[m[1]] != ""; isRenamed || strings.HasPrefix(row[2], "as ") {
				if isRenamed != strings.HasPrefix(row[2], "as ") {
					t.Errorf("--%s: renamed is %t, and the guide says: %s", m[1], isRenamed, row[2])
				}
				continue
			}
			_, err := Parse(smallest + " --" + m[1] + cmp.Or(m[2], "=x"))
			named := func(word []string) bool { return strings.Contains(err.Error(), word[1]) }
			words := regexp.MustCompile("`([\\w.]+)`").FindAllStringSubmatch(row[2], -1)
			if err == nil || !strings.Contains(err.Error(), "of a later version") || len(words) > 0 && !strings.Contains(err.Error(), "leave it out") && !slices.ContainsFunc(words, named) {
				t.Errorf("--%s: %v, and the guide says: %s", m[1], err, row[2])
			}
		}
	}
	if flags < 40 {
		t.Errorf("%d flags in the table", flags)
	}
}
