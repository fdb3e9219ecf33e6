package elasticsim

import (
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/doccheck"
)

func TestTheForecastsOnTheSnapshotAreThoseThatItsReadmePrints(t *testing.T) {
	t.Chdir("../../..")
	documents, err := doccheck.Read(".")
	at := slices.IndexFunc(documents, func(d doccheck.Document) bool { return d.Path == "examples/snapshots/README.md" })
	if err != nil || at < 0 {
		t.Fatalf("there is no README: %v", err)
	}
	t.Chdir("examples/snapshots")
	codes := map[string]int{"fits": 0, "evicts": 10, "waits": 11}
	for _, block := range documents[at].Blocks() {
		command, printed, _ := strings.Cut(block.Text, "\n")
		if block.Language != "console" {
			continue
		}
		arguments := strings.Fields(command)[2:] // after $ and the program
		job := strings.TrimSuffix(arguments[len(arguments)-1], ".yaml")
		want, expected := codes[job]
		delete(codes, job)
		out, err := call(t, arguments...)
		if !expected || out != printed || cli.Code(err) != want {
			t.Errorf("%s exits with %d (%v) instead of %d, and prints\n%s\nwhich in the README is\n%s", job, cli.Code(err), err, want, out, printed)
		}
	}
	if len(codes) > 0 {
		t.Errorf("the README has no forecast of %v", codes)
	}
}
