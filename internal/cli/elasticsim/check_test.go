package elasticsim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckSaysWhereAFileCanRun(t *testing.T) {
	random := filepath.Join(filepath.Dir(tutorial), "random-failures.yaml")
	repeated := filepath.Join(filepath.Dir(tutorial), "research-in-gangs.yaml")
	out, err := call(t, "check", random, repeated)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		random + ": can be simulated, and replayed on a cluster\n", repeated + ": can only be simulated\n  jobs[0].repeat: a replay submits the jobs that the file lists",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestCheckReportsTheMistakesOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte("nodes: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := call(t, "check", path); err == nil || out != "" {
		t.Errorf("%q, %v", out, err)
	}
}
