package scenario

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog/eventlogtest"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata; look at the difference")

func TestTheStoryIsToldAsInTestdata(t *testing.T) {
	var narrator Narrator
	var told strings.Builder
	for _, event := range eventlogtest.ElasticScheduling() {
		for _, line := range narrator.Tell(event) {
			fmt.Fprintf(&told, "%6.2f %d %s|%s|%s\n", line.At.Seconds(), line.Tone, line.Job, line.Who, line.Text)
		}
	}
	const golden = "testdata/narration.txt"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(told.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), told.String()); diff != "" {
		t.Error(diff)
	}
}
