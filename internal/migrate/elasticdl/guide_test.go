package elasticdl

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The guide's table names, for each of the original's behaviours, the tests that hold this project to it. That they are
// there is checked for all documents at once, by documents_test.go in the repository's root.
func TestTheGuideNamesATestOrAReasonForEveryBehaviour(t *testing.T) {
	text, err := os.ReadFile("../../../templates/guides/moving-from-elasticdl.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| (\d+) \|[^|]+\|([^|]+)\|$`)
	cited := regexp.MustCompile("`(Test\\w+|[\\w-]+\\.txt)`")
	var numbers []int
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
		if !cited.MatchString(m[2]) && !strings.Contains(m[2], "Differs") {
			t.Errorf("behaviour %d has neither a test nor a reason", n)
		}
	}
	want := make([]int, 36)
	for i := range want {
		want[i] = i + 1
	}
	if !slices.Equal(numbers, want) {
		t.Errorf("the table has the behaviours %v, ElasticDL's list has 1 to 36", numbers)
	}
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
