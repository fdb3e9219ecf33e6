package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The sentences of SECURITY.md under Guarantees are a list; each ends with what demonstrates it.
func TestEverySentenceOfTheSecurityPolicyNamesWhatShowsIt(t *testing.T) {
	text, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, claims, found := strings.Cut(string(text), "\n## Guarantees\n")
	claims, _, ended := strings.Cut(claims, "\n## ")
	if !found || !ended {
		t.Fatal("there is no section \"Guarantees\" with another one after it")
	}
	listed, err := exec.CommandContext(t.Context(), "git", "grep", "--untracked", "-hoE", `^func (Test|Fuzz)[A-Za-z0-9_]+`, "--", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for name := range strings.Lines(string(listed)) {
		tests[strings.TrimPrefix(strings.TrimSpace(name), "func ")] = true
	}
	makefile, err := os.ReadFile("GNUmakefile")
	if err != nil {
		t.Fatal(err)
	}
	item, shown := regexp.MustCompile(`(?s)^(.*?[.])\s+\(([^()]*)\)\s*$`), regexp.MustCompile("`((?:Test|Fuzz)\\w+|make [\\w-]+)[^`]*`")
	items := regexp.MustCompile(`(?m)^- `).Split(claims, -1)[1:]
	for _, claim := range items {
		claim, _, _ = strings.Cut(claim, "\n\n")
		parts := item.FindStringSubmatch(claim)
		if parts == nil || strings.Contains(parts[1], ". ") {
			t.Errorf("this is no sentence with what demonstrates it in parentheses behind it: %s", claim)
			continue
		}
		names := shown.FindAllStringSubmatch(parts[2], -1)
		if len(names) == 0 {
			t.Errorf("this names neither a test nor a command of make: %s", claim)
		}
		for _, name := range names {
			target, isTarget := strings.CutPrefix(name[1], "make ")
			if isTarget && !strings.Contains(string(makefile), "\n"+target+":") || !isTarget && !tests[name[1]] {
				t.Errorf("there is no %s: %s", name[1], claim)
			}
		}
	}
	if len(items) < 20 {
		t.Errorf("%d sentences", len(items))
	}
}
