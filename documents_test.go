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

	"github.com/elastic-training/terraform-provider-elastic/internal/doccheck"
)

// read returns the repository's documents.
func read(t *testing.T) []doccheck.Document {
	t.Helper()
	documents, err := doccheck.Read(".")
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// A path in backquotes below one of these folders is one of the repository's; * stands for any name.
var ours = regexp.MustCompile(
	"`((?:cmd|docs|e2e|examples|internal|python|simcluster|templates|tools|\\.changes|\\.ci|\\.github)/[\\w./*-]+)`")

// What CONTRIBUTING.md and ARCHITECTURE.md shorten: paths without `internal`, guides without their folder, and files below
// a folder that was named before.
var (
	ofInternal = regexp.MustCompile("^(?:api|cli|cluster|migrate|provider|report|scheduler|trainer)/")
	ofGuides   = regexp.MustCompile(`^[a-z-]+\.md$`)
	inFolder   = regexp.MustCompile(`^[\w*][\w./*-]*\.(?:go|py|proto)$`)
)

// readWhole returns the documents with whole paths. In those two a file is below the folder that was named last with a slash
// at its end, since the heading or in the row of a table.
func readWhole(t *testing.T) []doccheck.Document {
	t.Helper()
	documents, code := read(t), regexp.MustCompile("`[^`]+`")
	for i := range documents {
		d := &documents[i]
		if d.Path != "CONTRIBUTING.md" && d.Path != "ARCHITECTURE.md" {
			continue
		}
		var whole strings.Builder
		folder := ""
		for line := range strings.Lines(d.Text) {
			if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|") {
				folder = ""
			}
			whole.WriteString(code.ReplaceAllStringFunc(line, func(span string) string {
				path := strings.Trim(span, "`")
				switch {
				case ofInternal.MatchString(path):
					path = "internal/" + path
				case ofGuides.MatchString(path):
					path = "templates/guides/" + path
				case !ours.MatchString(span) && inFolder.MatchString(path):
					path = folder + path
					if _, err := os.Stat(path); folder == "" && err != nil {
						t.Errorf("%s names %s without its folder", d.Path, path)
					}
				}
				if strings.HasSuffix(path, "/") {
					folder = path
				}
				return "`" + path + "`"
			}))
		}
		d.Text = whole.String()
	}
	return documents
}

// What is built or left behind, and is nobody's to commit.
var made = regexp.MustCompile(`^e2e/out\b`)

func TestEveryPathThatADocumentNamesIsThere(t *testing.T) {
	seen := 0
	for _, d := range readWhole(t) {
		for _, m := range ours.FindAllStringSubmatch(d.Text, -1) {
			if made.MatchString(m[1]) {
				continue
			}
			seen++
			if found, err := filepath.Glob(m[1]); err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which is not there", d.Path, m[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no document names a path")
	}
}

// ARCHITECTURE.md and CONTRIBUTING.md name functions and types behind their file: `file.go`, `name`, `name` and `name`.
func TestEveryNameBehindAFileIsInThatFile(t *testing.T) {
	file := regexp.MustCompile("`([\\w./-]+\\.go)`((?:(?:,|\\s+and)\\s+`\\w+`)+)")
	seen := 0
	for _, d := range readWhole(t) {
		for _, m := range file.FindAllStringSubmatch(d.Text, -1) {
			source, err := os.ReadFile(m[1])
			if err != nil {
				t.Errorf("%s: %v", d.Path, err)
				continue
			}
			for _, word := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[2], -1) {
				seen++
				if !regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |var |const |\t)` + word[1] + `\b`).Match(source) {
					t.Errorf("%s: there is no %s in %s", d.Path, word[1], m[1])
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no document names anything in a file")
	}
}

// A Go test, or a scenario of the coordinator's tests.
var cited = regexp.MustCompile("`((?:Test|Fuzz)\\w+|[\\w-]+_[\\w-]+\\.txt)`")

// Guides name the test of each guarantee.
func TestEveryTestThatADocumentCitesIsThere(t *testing.T) {
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, root := range []string{"e2e", "internal", "simcluster"} {
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
	for _, d := range read(t) {
		for _, m := range cited.FindAllStringSubmatch(d.Text, -1) {
			seen++
			if !tests[m[1]] {
				t.Errorf("%s cites %s, which is not there", d.Path, m[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no document cites a test")
	}
}

// The guide lists faults; the page for developers lists the same faults in the same order, each with its tests.
func TestEveryFaultOfTheGuideIsShownByATest(t *testing.T) {
	const guide, page = "templates/guides/what-survives-what.md", "docs/development/testing.md"
	faults := rowsOf(t, guide, "")
	tested := rowsOf(t, page, "## Faults and their tests")
	if len(faults) == 0 || len(faults) != len(tested) {
		t.Fatalf("%s has %d faults, %s has %d", guide, len(faults), page, len(tested))
	}
	for i, fault := range faults {
		if row := tested[i]; row[0] != fault[0] {
			t.Errorf("%s has the fault %q where %s has %q", guide, fault[0], page, row[0])
		} else if !cited.MatchString(row[len(row)-1]) {
			t.Errorf("%s: no test shows this: %s", page, row[0])
		}
	}
}

// rowsOf are the cells of the rows of all tables of a document, or of those below a heading; without header rows.
func rowsOf(t *testing.T, path, heading string) [][]string {
	t.Helper()
	d, err := doccheck.Open(".", path)
	if err != nil {
		t.Fatal(err)
	}
	text := d.Text
	if heading != "" {
		var found bool
		if _, text, found = strings.Cut(text, heading+"\n"); !found {
			t.Fatalf("%s has no heading %q", path, heading)
		}
		text, _, _ = strings.Cut(text, "\n## ")
	}
	var rows [][]string
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "|---"):
			rows = rows[:len(rows)-1] // the row before it is the header
		case strings.HasPrefix(line, "| "):
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

// The folders of the registry's reference have one example for each page, which shows it.
var ofTheReference = []string{"actions", "data-sources", "functions", "list-resources", "provider", "resources"}

func TestEveryExampleHasAReadmeThatSaysWhatItNeedsAndHowToRunIt(t *testing.T) {
	folders, err := filepath.Glob("examples/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, parent := range []string{"modules", "tutorials"} {
		nested, err := filepath.Glob("examples/" + parent + "/*")
		if err != nil {
			t.Fatal(err)
		}
		folders = append(slices.DeleteFunc(folders, func(folder string) bool { return folder == "examples/"+parent }), nested...)
	}
	list, err := os.ReadFile("examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		name := strings.TrimPrefix(folder, "examples/")
		if name == "README.md" || slices.Contains(ofTheReference, name) {
			continue
		}
		if !strings.Contains(string(list), "]("+name+")") {
			t.Errorf("examples/README.md does not list %s", name)
		}
		text, err := os.ReadFile(filepath.Join(folder, "README.md"))
		if err != nil {
			t.Error(err)
			continue
		}
		if !regexp.MustCompile(`(?ms)\A# .*^## What you need$.*^## (Run it|Set it up|Use it)$`).Match(text) {
			t.Errorf("%s/README.md does not say what the example needs, and then how to run it", folder)
		}
	}
}

func TestTheDrawingsDifferInTheirColoursOnly(t *testing.T) {
	for _, name := range []string{"forecast", "parts", "session"} {
		var texts []string
		for _, theme := range []string{"light", "dark"} {
			text, err := os.ReadFile("docs/images/" + name + "-" + theme + ".svg")
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, regexp.MustCompile(`(?m)^ *svg \{ --page.*$`).ReplaceAllString(string(text), ""))
		}
		if texts[0] != texts[1] {
			t.Errorf("docs/images/%s-light.svg and -dark.svg differ in more than the line with their colours", name)
		}
	}
}

// The README shows a part of the script, without its blank lines.
func TestTheReadmesLoopIsThatOfTheExample(t *testing.T) {
	d, err := doccheck.Open(".", "README.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("examples/pytorch/loop.py")
	if err != nil {
		t.Fatal(err)
	}
	shown, dense := 0, regexp.MustCompile(`\n+`).ReplaceAllString(string(script), "\n")
	for _, block := range d.Blocks() {
		if block.Language != "python" {
			continue
		}
		shown++
		if !strings.Contains(dense, block.Text) {
			t.Errorf("README.md:%d: examples/pytorch/loop.py has no such part", block.Line)
		}
	}
	if shown != 1 {
		t.Errorf("the README has %d blocks of Python", shown)
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

// A link to a file of this repository, as documents that are read elsewhere write it.
var online = regexp.MustCompile(`^https://github\.com/elastic-training/terraform-provider-elastic/(?:blob|tree)/main/(.+)$`)

func TestEveryLinkOfADocumentLeadsSomewhere(t *testing.T) {
	links, anchors := 0, 0
	for _, d := range read(t) {
		for _, link := range d.Links() {
			path, anchor, _ := strings.Cut(link.Text, "#")
			switch m := online.FindStringSubmatch(path); {
			case m != nil:
				path = m[1]
			case strings.Contains(path, ":"):
				continue // another site's, or a mail address
			case path == "":
				path = d.Rendered()
			default:
				path = filepath.Join(filepath.Dir(d.Rendered()), path)
			}
			links++
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s:%d links to %s: %v; what is in docs/ is made by make docs", d.Path, link.Line, link.Text, err)
				continue
			}
			if anchor == "" {
				continue
			}
			anchors++
			target, err := doccheck.Open(".", path)
			if err != nil {
				t.Errorf("%s:%d links to %s: %v", d.Path, link.Line, link.Text, err)
				continue
			}
			if there := target.Anchors(); !slices.Contains(there, anchor) {
				t.Errorf("%s:%d links to %s, but the headings there are %s", d.Path, link.Line, link.Text, strings.Join(there, ", "))
			}
		}
	}
	if links == 0 || anchors == 0 {
		t.Errorf("%d links and %d anchors were found in all documents", links, anchors)
	}
}

// The first column of the table of Events in the guide "Troubleshooting" has reasons that the trainer gives, in quotes.
func TestEveryEventOfTheTroubleshootingGuideIsOneThatATrainerReports(t *testing.T) {
	d, err := doccheck.Open(".", "templates/guides/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for _, folder := range []string{"internal/trainer/protocol/coordinator", "internal/trainer/runtime", "internal/cli/elastictrainer"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			sources.Write(source)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, table, found := strings.Cut(d.Text, "| Event |")
	if !found {
		t.Fatal("the guide has no table of Events")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			if !strings.Contains(sources.String(), `"`+m[1]+`"`) {
				t.Errorf("%s: no trainer reports %s", d.Path, m[1])
			}
		}
	}
}

// A row of the table names packages by their paths below its folders. A package that is in a row of another folder, or
// nowhere, is an error, and so is the name of a package that does not exist.
func TestTheTableOfFoldersHasEveryPackage(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## The folders")
	table, _, _ = strings.Cut(table, "\n## ")
	code, name := regexp.MustCompile("`([^`]+)`"), regexp.MustCompile(`^[a-z][a-z0-9]*(/[a-z0-9]+)*$`)
	named := map[string]bool{}
	for row := range strings.Lines(table) {
		cells := strings.SplitN(row, "|", 3)
		if len(cells) < 3 {
			continue
		}
		folders := code.FindAllStringSubmatch(cells[1], -1)
		for _, folder := range folders {
			named[folder[1]] = true
		}
		for _, package_ := range code.FindAllStringSubmatch(cells[2], -1) {
			if len(folders) != 1 || !name.MatchString(package_[1]) {
				continue
			}
			at := package_[1]
			if _, err := os.Stat(at); err == nil && strings.Contains(at, "/") { // a path from the root
				named[at] = named[at] || strings.HasPrefix(at, folders[0][1]+"/")
				continue
			}
			at = filepath.Join(folders[0][1], at)
			if info, err := os.Stat(at); err != nil || !info.IsDir() {
				t.Errorf("ARCHITECTURE.md's row of %s names %s, and %s is no folder", folders[0][1], package_[1], at)
			}
			named[at] = true
		}
	}
	for _, root := range []string{"cmd", "internal", "simcluster", "e2e", "tools"} {
		err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			if entry.Name() == "testdata" || entry.Name() == "standins" { // the latter take the place of other modules' packages
				return fs.SkipDir
			}
			if files, _ := filepath.Glob(filepath.Join(path, "*.go")); len(files) > 0 && !named[path] {
				t.Errorf("ARCHITECTURE.md does not name %s in its table of folders", path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
