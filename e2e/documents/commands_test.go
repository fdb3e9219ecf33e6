package documents

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/internal/doccheck"
)

// comment is what stands behind a command.
var comment = regexp.MustCompile(`\s+# .*$`)

// rowOf is a block's key in the table.
func rowOf(d doccheck.Document, block doccheck.Piece) string {
	first, _, _ := strings.Cut(block.Text, "\n")
	first = strings.TrimSpace(strings.TrimSuffix(comment.ReplaceAllString(strings.TrimSpace(first), ""), `\`))
	return d.Path + ": " + strings.TrimSpace(first[:min(len(first), 60)])
}

// forUsers are the documents whose commands users type.
var forUsers = regexp.MustCompile(`^(README\.md$|templates/|examples/|simcluster/)`)

// shell calls f with every block of commands of the documents for users.
func shell(t *testing.T, f func(d doccheck.Document, block doccheck.Piece)) {
	t.Helper()
	for _, d := range documentsOf(t) {
		for _, block := range d.Blocks() {
			if forUsers.MatchString(d.Path) && (block.Language == "sh" || block.Language == "console") {
				f(d, block)
			}
		}
	}
}

func TestEveryBlockOfCommandsIsRunByATestOrHasAReason(t *testing.T) {
	seen := map[string]bool{}
	shell(t, func(d doccheck.Document, block doccheck.Piece) {
		row := rowOf(d, block)
		seen[row] = true
		if _, listed := shellBlocks[row]; !listed {
			t.Errorf("%s:%d: the table does not have `%s`", d.Path, block.Line, row)
		}
	})
	tests := testsOf(t)
	for row, behind := range shellBlocks {
		if !seen[row] {
			t.Errorf("no document has the block `%s`", row)
		}
		for _, name := range regexp.MustCompile(`\bTest\w+`).FindAllString(behind, -1) {
			if !tests[name] {
				t.Errorf("%s: there is no %s", row, name)
			}
		}
	}
}

// testsOf are the names of all tests.
func testsOf(t *testing.T) map[string]bool {
	t.Helper()
	tests, declared := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, folder := range []string{"e2e", "internal", "simcluster"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, name := range declared.FindAllSubmatch(source, -1) {
				tests[string(name[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return tests
}

func TestTheCommandsThatNeedNoClusterRunAsPrinted(t *testing.T) {
	if testing.Short() {
		t.Skip("it trains the tutorial's network twice")
	}
	copied := t.TempDir()
	if err := os.CopyFS(filepath.Join(copied, "examples"), os.DirFS(filepath.Join(root, "examples"))); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(copied, "bin")
	trainer, err := program.Trainer(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := program.Simulator(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	if at := filepath.Join(bin, "elastic-trainer"); at != trainer {
		if err := os.Symlink(trainer, at); err != nil {
			t.Fatal(err)
		}
	}
	shell(t, func(d doccheck.Document, block doccheck.Piece) {
		if behind, listed := shellBlocks[rowOf(d, block)]; !listed || behind != runs {
			return
		}
		folder := copied
		if strings.HasPrefix(d.Path, "examples/") {
			folder = filepath.Join(copied, filepath.Dir(d.Path))
		}
		if err := runBlock(t, folder, block); err != nil {
			t.Errorf("%s:%d: %v", d.Path, block.Line, err)
		}
	})
}

// runBlock runs a block of commands; one with outputs is one command and what that prints. Such a command may end with
// an exit code that tells something.
func runBlock(t *testing.T, folder string, block doccheck.Piece) error {
	t.Helper()
	script, output, _ := strings.Cut(strings.TrimPrefix(block.Text, "$ "), "\n")
	if block.Language == "sh" {
		script = block.Text
	}
	c := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	c.Dir = folder
	printed, err := c.Output()
	if block.Language == "console" {
		if strings.TrimSpace(string(printed)) != strings.TrimSpace(output) {
			return fmt.Errorf("%s prints\n%s\ninstead of\n%s", script, printed, output)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", script, err, printed)
	}
	return nil
}
