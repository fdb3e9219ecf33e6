package elasticdl

import (
	"os"
	"regexp"
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
	for name := range later {
		if prefix, _, _ := strings.Cut(name, "_resource_"); !strings.Contains(string(text), "`--"+name+"`") && !strings.Contains(string(text), "`--"+prefix+"_resource_") {
			t.Errorf("--%s, of later versions, is missing", name)
		}
	}
}
