package onkind

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/kind"
	"github.com/elastic-training/terraform-provider-elastic/internal/doccheck"
)

// The cluster is created and deleted by withkind, which would otherwise leave one behind if this process were killed.
var lifeOfACluster = regexp.MustCompile(`(?m)^kind (create|delete) cluster.*$`)

// TestTheCommandsOfTheQuickstartWorkAsPrinted runs the blocks of examples/kind/README.md as one script.
func TestTheCommandsOfTheQuickstartWorkAsPrinted(t *testing.T) {
	cluster, err := kind.Attach(t.Context(), t.Logf)
	if errors.Is(err, kind.ErrNoCluster) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	const example = "examples/kind"
	folder := filepath.Join("../../..", example)
	kubeconfig, err := os.ReadFile(cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"kubeconfig", "terraform.tfstate", "terraform.tfstate.backup"} {
		t.Cleanup(func() { _ = os.Remove(filepath.Join(folder, left)) })
	}
	if err := os.WriteFile(filepath.Join(folder, "kubeconfig"), kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", quickstart(t, example, cluster.Name()))
	c.Dir = folder
	printed, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	if !regexp.MustCompile(`WorkerPreempted .*worker [01] was preempted`).Match(printed) || !regexp.MustCompile(`WorkerJoined .*worker 2 joined`).Match(printed) {
		t.Errorf("no worker was preempted, or none joined then:\n%s", printed)
	}
	rest := string(printed)
	for _, want := range []string{
		"steady will start without evicting", "urgent will preempt", "evicts  default/steady-worker-", "continues with 1 of 2 workers",
		"Apply complete!", "No changes.", "Destroy complete!",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q is missing, or out of order, in\n%s", want, printed)
		}
		rest = after
	}
}

// quickstart is the commands of an example, for the cluster of that name.
func quickstart(t *testing.T, example, name string) string {
	t.Helper()
	d, err := doccheck.Open("../../..", filepath.Join("../../..", example, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, block := range d.Blocks() {
		if block.Language == "sh" {
			script.WriteString(block.Text + "\n")
		}
	}
	const named = "KIND_CLUSTER_NAME=elastic"
	if n := len(lifeOfACluster.FindAllString(script.String(), -1)); n != 2 || strings.Count(script.String(), named) != 1 {
		t.Fatalf("the commands do not create cluster elastic and delete it:\n%s", &script)
	}
	return lifeOfACluster.ReplaceAllString(strings.Replace(script.String(), named, "KIND_CLUSTER_NAME="+name, 1), ":")
}
