package elasticdl

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The guide's table names, for each of the original's behaviours, the tests that hold this project to it.
func TestTheGuideNamesATestThatIsThereOrAReasonForEveryBehaviour(t *testing.T) {
	text, err := os.ReadFile("../../templates/guides/moving-from-elasticdl.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if strings.HasSuffix(path, ".txt") {
			tests[filepath.Base(path)] = true
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
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
		names := cited.FindAllStringSubmatch(m[2], -1)
		if len(names) == 0 && !strings.Contains(m[2], "Differs") {
			t.Errorf("behaviour %d has neither a test nor a reason", n)
		}
		for _, name := range names {
			if !tests[name[1]] {
				t.Errorf("behaviour %d: there is no test %s", n, name[1])
			}
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
	text, err := os.ReadFile("../../templates/guides/moving-from-elasticdl.md")
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
