package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents are what people read of the repository, but for docs/, which is made of templates/.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.md", "templates/guides/*.md", "examples/*/README.md", "examples/*/*/README.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = string(text)
		}
	}
	return texts
}

// A path in backquotes below one of these folders is one of the repository's; * stands for any name.
var ours = regexp.MustCompile("`((?:cmd|docs|e2e|examples|internal|python|templates|tools|\\.changes|\\.ci|\\.github)/[\\w./*-]+)`")

// What is built or left behind, and is nobody's to commit.
var made = regexp.MustCompile(`^e2e/out/`)

func TestEveryPathThatADocumentNamesIsThere(t *testing.T) {
	seen := 0
	for name, text := range documents(t) {
		for _, m := range ours.FindAllStringSubmatch(text, -1) {
			if made.MatchString(m[1]) {
				continue
			}
			seen++
			if found, err := filepath.Glob(m[1]); err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which is not there", name, m[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no document names a path")
	}
}

// ARCHITECTURE.md and CONTRIBUTING.md name functions and types behind their file: `file.go`, `name` and `name`.
func TestEveryNameBehindAFileIsInThatFile(t *testing.T) {
	file := regexp.MustCompile("`([\\w./-]+\\.go)`,\\s+`(\\w+)`(?:\\s+and\\s+`(\\w+)`)?")
	seen := 0
	for name, text := range documents(t) {
		for _, m := range file.FindAllStringSubmatch(text, -1) {
			source, err := os.ReadFile(m[1])
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, word := range slices.DeleteFunc(m[2:], func(word string) bool { return word == "" }) {
				seen++
				if !regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |var |const |\t)` + word + `\b`).Match(source) {
					t.Errorf("%s: there is no %s in %s", name, word, m[1])
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no document names anything in a file")
	}
}

// A Go test, or a story that the coordinator's tests play.
var cited = regexp.MustCompile("`((?:Test|Fuzz)\\w+|[\\w-]+_[\\w-]+\\.txt)`")

// Guides say which test holds the project to what they promise.
func TestEveryTestThatADocumentCitesIsThere(t *testing.T) {
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, root := range []string{"e2e", "internal"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
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
	}
	seen := 0
	for name, text := range documents(t) {
		for _, m := range cited.FindAllStringSubmatch(text, -1) {
			seen++
			if !tests[m[1]] {
				t.Errorf("%s cites %s, which is not there", name, m[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no document cites a test")
	}
}

func TestEveryFaultOfTheGuideIsShownByATest(t *testing.T) {
	const guide = "templates/guides/what-survives-what.md"
	rows := 0
	for _, line := range strings.Split(documents(t)[guide], "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "| ") || strings.TrimSpace(cells[len(cells)-1]) == "test" {
			continue
		}
		rows++
		if !cited.MatchString(cells[len(cells)-1]) {
			t.Errorf("%s: no test shows this: %s", guide, line)
		}
	}
	if rows == 0 {
		t.Errorf("%s has no table", guide)
	}
}

func TestEveryScriptOfTheExamplesIsOneForTheShellThatItNames(t *testing.T) {
	scripts, err := filepath.Glob("examples/*/*.sh")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	for _, script := range scripts {
		if printed, err := exec.CommandContext(t.Context(), "sh", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, printed)
		}
		text, err := os.ReadFile(script)
		if err != nil || !strings.HasPrefix(string(text), "#!/bin/sh\n") {
			t.Errorf("%s does not begin as a script for sh: %v", script, err)
		}
		if info, err := os.Stat(script); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be executed: %v", script, err)
		}
	}
}
