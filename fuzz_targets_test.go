package main

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestEveryFuzzTargetIsInTheList compares the list that `make fuzz` runs with the fuzz targets of the code.
func TestEveryFuzzTargetIsInTheList(t *testing.T) {
	text, err := os.ReadFile("tools/fuzz-targets.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 3 {
			t.Errorf("a line is a package, a target, and what it reads: %s", line)
			continue
		}
		listed[fields[0]+" "+fields[1]] = true
	}
	found, err := exec.CommandContext(t.Context(), "git", "grep", "--untracked", "-oE", `^func Fuzz[A-Za-z0-9_]+`, "--", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`(?m)^(.*):func (Fuzz\w+)$`).FindAllStringSubmatch(string(found), -1) {
		target := path.Dir(match[1]) + " " + match[2]
		if !listed[target] {
			t.Errorf("tools/fuzz-targets.txt does not have %s", target)
		}
		delete(listed, target)
	}
	for target := range listed {
		t.Errorf("tools/fuzz-targets.txt has %s, which is not there", target)
	}
}
