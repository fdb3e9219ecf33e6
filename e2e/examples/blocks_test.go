package examples_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/doccheck"
)

// block is a block of HCL in a document. The table of blocks knows it by key: its document and its first line of code,
// and where several of a document begin alike, which of them it is.
type block struct{ key, text string }

// blocks are all blocks of HCL of the repository's documents.
func blocks(t *testing.T) []block {
	t.Helper()
	read, err := doccheck.Read(root)
	noError(t, err)
	var all []block
	alike := map[string]int{}
	for _, d := range read {
		for _, piece := range d.Blocks() {
			if piece.Language != "hcl" && piece.Language != "terraform" {
				continue
			}
			key := d.Path + ": " + firstCode(piece.Text)
			if alike[key]++; alike[key] > 1 {
				key += fmt.Sprintf(" (%d)", alike[key])
			}
			all = append(all, block{key, piece.Text})
		}
	}
	return all
}

// firstCode is the first line that is no comment, without the brace that it opens.
func firstCode(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return strings.TrimSpace(strings.TrimSuffix(line, "{"))
		}
	}
	return ""
}

func TestEveryBlockOfADocumentIsInTheTable(t *testing.T) {
	found := map[string]bool{}
	for _, b := range blocks(t) {
		found[b.key] = true
		if _, there := blockTable[b.key]; !there {
			t.Errorf("%q is not in the table of blocks, and so is never applied", b.key)
		}
	}
	for key, e := range blockTable {
		if !found[key] {
			t.Errorf("no document has the block %q", key)
		}
		if (e.beside == "") != (e.besideBecause == "") || (e.before == "") != (e.beforeBecause == "") {
			t.Errorf("%s: what is there besides has no reason, or the reason is of nothing", key)
		}
	}
}

func TestEveryBlockOfADocumentIsAppliedPlansNothingMoreAndLeavesNothing(t *testing.T) {
	makeNamespaces(t)
	before := providertest.ListObjects(t, admin(t))
	applied, texts := map[string]example{}, map[string]string{}
	for _, b := range blocks(t) {
		applied[b.key], texts[b.key] = blockTable[b.key].example, b.text
	}
	underEachStandard(t, applied, func(t *testing.T, key string, e example) {
		t.Helper()
		r := terminal(t)
		r.Directory = t.TempDir()
		for file, from := range e.files {
			text, err := os.ReadFile(filepath.Join(root, from))
			noError(t, err)
			noError(t, os.WriteFile(filepath.Join(r.Directory, file), text, 0o600))
		}
		for name, value := range e.variables {
			if name == "config_path" {
				value = cluster.Kubeconfig
			}
			r.Environment = append(r.Environment, "TF_VAR_"+name+"="+value)
		}
		config := blockTable[key].beside + "\n" + texts[key]
		if !strings.Contains(texts[key], "required_providers") {
			config = requiredProvider + config
		}
		noError(t, os.WriteFile(filepath.Join(r.Directory, "main.tf"), []byte(config), 0o600))
		applyAndDestroy(t, r, e)
	})
	before.ExpectNoOthers(t, admin(t))
}
