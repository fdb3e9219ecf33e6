package elasticsim

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/audit"
)

func TestAuditOfALogPrintsEachDisruptionAndTheSums(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log.jsonl")
	if out, err := call(t, "run", queues, "--log", log); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := call(t, "audit", log)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"InClusterQueue  workload job-high (high-priority)", "By priority class", "preempted  high-priority      low-priority"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	text, err := call(t, "audit", "--json", log)
	if err != nil {
		t.Fatal(err)
	}
	var r audit.Report
	if err := json.Unmarshal([]byte(text), &r); err != nil || len(r.Disruptions) != 1 || len(r.Sums) != 1 || r.Sums[0].LostSeconds <= 0 {
		t.Errorf("%v: %s", err, text)
	}
}

func TestAnAuditWithoutALogOrAClusterFails(t *testing.T) {
	if _, err := call(t, "audit", "nowhere.jsonl"); cli.Code(err) != cli.Failed {
		t.Errorf("%v", err)
	}
	if _, err := call(t, "audit", "--kubeconfig", "nowhere"); cli.Code(err) != cli.Failed || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("%v", err)
	}
}
