package underqueue_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// TestTheModuleOfATeamsQueuePassesItsOwnTests runs `terraform test`, as the module's README says, on this cluster. That
// terraform says "Success!" also where it finds no test, and that a queue which never became active is only a warning,
// is why more is read than its exit code.
func TestTheModuleOfATeamsQueuePassesItsOwnTests(t *testing.T) {
	t.Parallel()
	r := providertest.NewTerminalWith(t, map[string]string{"KUBE_CONFIG_PATH": cluster.Kubeconfig})
	if err := os.CopyFS(r.Directory, os.DirFS(filepath.Join("..", "..", "examples", "modules", "team-queue"))); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(r.Directory, "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	wanted := 0
	files, err := filepath.Glob(filepath.Join(r.Directory, "tests", "*.tftest.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		wanted += len(regexp.MustCompile(`(?m)^run "`).FindAll(text, -1))
	}

	printed, code := r.Run(t, string(config), "test")
	if code != 0 || providertest.ErrorText("is not active yet").MatchString(printed) {
		t.Errorf("terraform test exited with %d:\n%s", code, printed)
	}
	if passed := len(regexp.MustCompile(`(?m)^  run ".*pass$`).FindAllString(printed, -1)); passed != wanted || wanted == 0 {
		t.Errorf("%d of %d runs in %d files have passed:\n%s", passed, wanted, len(files), printed)
	}
	left, err := newPlace(t).kueue.ClusterQueues().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, queue := range left.Items {
		if strings.HasPrefix(queue.Name, "tftest-") {
			t.Errorf("ClusterQueue %s is left", queue.Name)
		}
	}
}

// TestTheGateForPullRequestsLetsAJobPassThatFitsAndNoJobThatCannotRun plans examples/ci as its workflow does.
func TestTheGateForPullRequestsLetsAJobPassThatFitsAndNoJobThatCannotRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := providertest.NewTerminalWith(t, map[string]string{"KUBE_CONFIG_PATH": cluster.Kubeconfig})
	r.Environment = []string{"TF_VAR_forecast=error", "TF_VAR_namespace=" + p.ns}
	if err := os.CopyFS(r.Directory, os.DirFS(filepath.Join("..", "..", "examples"))); err != nil { // with the module
		t.Fatal(err)
	}
	r.Directory = filepath.Join(r.Directory, "ci")
	if err := os.Remove(filepath.Join(r.Directory, "backend.tf")); err != nil { // it would make the state's Secret
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.Directory, "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	config := string(text)
	if printed, code := r.Run(t, config, "init"); code != 0 {
		t.Fatalf("init exited with %d:\n%s", code, printed)
	}
	if printed, code := r.Run(t, config, "plan"); code != 0 {
		t.Errorf("plan exited with %d:\n%s", code, printed)
	}
	tooSmall := strings.Replace(config, `cpu = "6"`, `cpu = "1"`, 1)
	if tooSmall == config {
		t.Fatal("the example has no quota of six CPUs")
	}
	printed, code := r.Run(t, tooSmall, "plan")
	if code != 1 {
		t.Errorf("with a quota in which the job can never run plan exited with %d", code)
	}
	providertest.ExpectText(t, printed, "Error:", p.ns+"/nightly", "can never")
}
