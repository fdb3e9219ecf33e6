package elasticsim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

var recordings = filepath.Join("..", "..", "scheduler", "conformance", "testdata")

// call runs a command line and returns what it printed and its error.
func call(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := NewRoot("test")
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	return out.String(), err
}

func TestConformCountsWhatIsEqual(t *testing.T) {
	out, err := call(t, "conformance", recordings)
	if err != nil || !strings.Contains(out, "scenarios match") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestConformNamesWhatDiffersAndFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tampered.json")
	text := `{"format":1,"name":"tampered","flavors":[{"name":"f"}],"priorityClasses":[{"name":"low","value":1}],
		"clusterQueues":[{"name":"a","spec":{"resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"f","resources":[{"name":"cpu","nominalQuota":"1"}]}]}]}}],
		"localQueues":[{"name":"lq","clusterQueue":"a"}],
		"steps":[{"op":"submit","workload":{"name":"w","queue":"lq","priorityClass":"low","count":1,"requests":{"cpu":"1"}}}],
		"outcomes":[{"events":[],"workloads":{"w":{"state":"Pending","priority":1}},"clusterQueues":{}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := call(t, "conformance", path)
	if cli.Code(err) != cli.Failed || !strings.Contains(out, `tampered: step 0 (submit w): got "Admitted w"`) || !strings.Contains(out, "0 of 1") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestOutcomesAreOneLineForEachScenario(t *testing.T) {
	out, err := call(t, "conformance", "--outcomes", recordings)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	at := 0
	for s, err := range conformance.Read(recordings) {
		if err != nil {
			t.Fatal(err)
		}
		var a answer
		if err := json.Unmarshal([]byte(lines[at]), &a); err != nil {
			t.Fatal(err)
		}
		if a.Name != s.Name || len(a.Outcomes) != len(s.Steps) {
			t.Errorf("line %d is about %s with %d outcomes, not %s with %d", at+1, a.Name, len(a.Outcomes), s.Name, len(s.Steps))
		}
		at++
	}
}

func TestBadCommandLinesAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no path":            {[]string{"conformance"}, cli.Usage, "--help"},
		"an unknown command": {[]string{"conformanse"}, cli.Usage, `unknown command "conformanse"; did you mean conformance? See ` + "`elastic-sim --help`"},
		"an unknown flag":    {[]string{"conformance", "--fast", "x"}, cli.Usage, "unknown flag: --fast; see"},
		"a flag with a slip": {[]string{"conformance", "--quite", "x"}, cli.Usage, "unknown flag: --quite; did you mean --quiet? See `elastic-sim conformance --help`"},
		"nothing there":      {[]string{"conformance", "nowhere"}, cli.Failed, "nowhere"},
		"nothing to answer":  {[]string{"conformance", "--outcomes", "nowhere"}, cli.Failed, "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := call(t, test.args...)
			var exit *cli.ExitError
			if cli.Code(err) != test.code || !strings.Contains(err.Error(), test.want) || errors.As(err, &exit) != (test.code == cli.Usage) {
				t.Errorf("%v", err)
			}
		})
	}
}
