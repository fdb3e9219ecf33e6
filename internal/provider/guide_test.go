package provider

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheGuidesConfigurationsAreExamples checks that the configurations of guides occur in the examples, which are
// validated. A line "# …" matches any lines, and indentation does not matter.
func TestTheGuidesConfigurationsAreExamples(t *testing.T) {
	guides, err := filepath.Glob("../../docs/guides/*.md")
	if err != nil || len(guides) == 0 {
		t.Fatalf("%v, %v", guides, err)
	}
	lines := func(text string) string {
		var all strings.Builder
		for line := range strings.Lines(text) {
			all.WriteString(strings.TrimSpace(line) + "\n")
		}
		return all.String()
	}
	var examples strings.Builder
	err = filepath.WalkDir("../../examples", func(path string, entry os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".tf" || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		examples.WriteString(lines(string(text)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, guide := range guides {
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(string(text), "```hcl\n")[1:] {
			shown, _, _ := strings.Cut(block, "\n```")
			for part := range strings.SplitSeq(lines(shown), "# …\n") {
				if !strings.Contains(examples.String(), part) {
					t.Errorf("%s: configuration %d is in no example:\n%s", guide, i+1, part)
				}
			}
		}
	}
}

// TestTheFirstPageLeadsSomewhere follows its links to other pages of the documentation.
func TestTheFirstPageLeadsSomewhere(t *testing.T) {
	text, err := os.ReadFile("../../docs/index.md")
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`\]\(([a-z-]+/[^)#]+\.md)`).FindAllStringSubmatch(string(text), -1)
	if len(links) == 0 {
		t.Error("it has no links")
	}
	for _, link := range links {
		if _, err := os.Stat(filepath.Join("../../docs", link[1])); err != nil {
			t.Errorf("a link leads nowhere: %v", err)
		}
	}
}
