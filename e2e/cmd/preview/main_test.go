package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clitest"
)

func TestManners(t *testing.T) { clitest.Manners(t, newRoot) }

func TestPreviewDrawsTheScenarioOfTheDemo(t *testing.T) {
	page := filepath.Join(t.TempDir(), "simulated", "page.html")
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetArgs([]string{"../../../examples/scenarios/elastic-scheduling.yaml", page})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(out.String()) {
		if name, picture, is := strings.Cut(strings.TrimSpace(line), "  "); is {
			rows[name] = picture
		}
	}
	for pod, want := range map[string]string{
		"low-prio-job-worker-0":  runs + runs,
		"low-prio-job-worker-1":  runs + preempted,
		"high-prio-job-worker-0": runs + runs,
	} {
		if !strings.Contains(rows[pod], want) {
			t.Errorf("the row of %s is %q, without %q, in:\n%s", pod, rows[pod], want, &out)
		}
	}
	if strings.Contains(rows["low-prio-job-worker-0"], preempted) {
		t.Errorf("worker 0 is drawn as preempted:\n%s", &out)
	}
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte("<svg")) {
		t.Errorf("the page has no drawing (%v)", err)
	}
}

// The preview is of use only while it compiles sooner than what it bridges.
func TestPreviewNeedsNoClientOfACluster(t *testing.T) {
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, forbidden := range []string{"k8s.io/client-go/kubernetes\n", "k8s.io/apiserver/", "hashicorp/"} {
		if strings.Contains(string(list), forbidden) {
			t.Errorf("it imports %s", forbidden)
		}
	}
}
