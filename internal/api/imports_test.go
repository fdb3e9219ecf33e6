package api_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The packages below internal/api define the objects that users, the provider and the trainer exchange. They depend on
// nothing else of this project, so that a reader understands them alone, and every other package may import them.
func TestTheAPIImportsNothingElseOfTheProject(t *testing.T) {
	const module = "github.com/elastic-training/terraform-provider-elastic/"
	files := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		files++
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if strings.HasPrefix(imported, module) && !strings.HasPrefix(imported, module+"internal/api/") {
				t.Errorf("%s imports %s", path, imported)
			}
		}
		return nil
	})
	if err != nil || files < 50 {
		t.Errorf("%d files read: %v", files, err)
	}
}
