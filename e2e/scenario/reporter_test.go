package scenario

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata; look at the difference")

func TestReporterWritesTheLinesInTestdata(t *testing.T) {
	var reporter Reporter
	var got strings.Builder
	for _, event := range goodLog(t, "elastic-scheduling") {
		for _, line := range reporter.Lines(event) {
			fmt.Fprintf(&got, "%6.2f %d %s|%s|%s\n", line.At.Seconds(), line.Tone, line.Job, line.Object, line.Text)
		}
	}
	const golden = "testdata/report.txt"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Error(diff)
	}
}
