package doccheck_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/doccheck"
)

const text = "# A page: *its* `name` & more\n" + // line 1
	"\n" +
	"See [there](other.md#part) and `[no](link.md)`, or\n" + // 3
	"run `make\n" + // 4
	"demo` and [`make`](GNUmakefile).\n" +
	"\n" +
	"1. In a list:\n" +
	"\n" +
	"   ```sh\n" + // 9
	"   # no heading [no](link.md)\n" +
	"     indented\n" +
	"   ```\n" +
	"\n" +
	"````text\n" + // 14
	"```\n" +
	"````\n" +
	"\n" +
	"## See [there](there.md)\n" + // 18
	"## See there\n" +
	"<a id=\"nested--part\"></a>\n"

var page = doccheck.Document{Path: "templates/guides/page.md", Text: text}

func TestCodeIsPartedFromProse(t *testing.T) {
	for name, test := range map[string]struct {
		got, want []doccheck.Piece
	}{
		"blocks": {page.Blocks(), []doccheck.Piece{
			{Line: 10, Language: "sh", Text: "# no heading [no](link.md)\n  indented\n"},
			{Line: 15, Language: "text", Text: "```\n"},
		}},
		"spans": {page.Spans(), []doccheck.Piece{
			{Line: 1, Text: "name"},
			{Line: 3, Text: "[no](link.md)"},
			{Line: 4, Text: "make demo"},
			{Line: 5, Text: "make"},
		}},
		"links": {page.Links(), []doccheck.Piece{
			{Line: 3, Text: "other.md#part"},
			{Line: 5, Text: "GNUmakefile"},
			{Line: 18, Text: "there.md"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnchorsAreNamedAsGitHubDoes(t *testing.T) {
	want := []string{"a-page-its-name--more", "see-there", "see-there-1", "nested--part"}
	if diff := cmp.Diff(want, page.Anchors()); diff != "" {
		t.Error(diff)
	}
}

func TestATemplateIsReadBelowDocs(t *testing.T) {
	for path, want := range map[string]string{
		"templates/guides/page.md":  "docs/guides/page.md",
		"templates/index.md.tmpl":   "docs/index.md",
		"examples/rbac/README.md":   "examples/rbac/README.md",
		"templates.md":              "templates.md",
		"examples/templates/README": "examples/templates/README",
	} {
		if got := (doccheck.Document{Path: path}).Rendered(); got != want {
			t.Errorf("%s is read at %s, not %s", path, got, want)
		}
	}
}

func TestEveryDocumentOfARepositoryIsRead(t *testing.T) {
	root := t.TempDir()
	want := []string{"README.md", "templates/index.md.tmpl", "templates/guides/a.md", "examples/README.md", "examples/a/b/c/README.md"}
	for _, path := range append([]string{"docs/index.md", "examples/a/main.tf"}, want...) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("text of "+filepath.Base(path)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	documents, err := doccheck.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range documents {
		got = append(got, d.Path)
		if d.Text != "text of "+filepath.Base(d.Path) {
			t.Errorf("%s: %s", d.Path, d.Text)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
