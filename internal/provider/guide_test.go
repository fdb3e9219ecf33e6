package provider

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheGuidesConfigurationsAreExamples keeps what a guide shows among the examples, which are validated.
func TestTheGuidesConfigurationsAreExamples(t *testing.T) {
	guides, err := filepath.Glob("../../docs/guides/*.md")
	if err != nil || len(guides) == 0 {
		t.Fatalf("%v, %v", guides, err)
	}
	var examples strings.Builder
	err = filepath.WalkDir("../../examples", func(path string, entry os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".tf" || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		examples.Write(text)
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
			if !strings.Contains(examples.String(), shown) {
				t.Errorf("%s: configuration %d is in no example:\n%s", guide, i+1, shown)
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
