package task_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
)

// TestAWrittenSecretIsInTheClusterAlone looks for the value in everything that terraform leaves behind: state, its
// backup, a saved plan, and a log at the highest level, of terraform and of the provider.
func TestAWrittenSecretIsInTheClusterAlone(t *testing.T) {
	t.Parallel()
	providertest.Need(t, providertest.WriteOnly)
	const first, second = "s3cr3t-of-the-first-kind", "s3cr3t-of-the-second-kind"
	ns, r := namespace(t), providertest.NewTerminal(t)
	log := filepath.Join(t.TempDir(), "terraform.log")
	r.Environment = append(r.Environment, "TF_LOG=TRACE", "TF_LOG_PATH="+log)
	config := func(value string, version int) string {
		// The value comes from outside of the configuration, as recommended.
		r.Environment = append(r.Environment, "TF_VAR_token="+value)
		return "variable \"token\" {\n  type = string\n  ephemeral = true\n}\n" + block(ns, "secret", fmt.Sprintf(`
			yaml = <<-EOT
			secrets:
			  TOKEN:
			run: |
			  test "$(printf %%s "$TOKEN" | sha256sum | cut -d' ' -f1)" = "$EXPECTED" && echo the same && sleep 600
			EOT
			env               = { EXPECTED = %q }
			secrets_wo         = { TOKEN = var.token }
			secrets_wo_version = %d
			image              = "debian"
			wait_for           = "running"`, fmt.Sprintf("%x", sha256.Sum256([]byte(value))), version))
	}
	of := func(value string) {
		t.Helper()
		live, err := client(t).CoreV1().Secrets(ns).Get(t.Context(), task.SecretName("secret"), metav1.GetOptions{})
		if err != nil || string(live.Data["TOKEN"]) != value || len(live.OwnerReferences) != 1 {
			t.Fatalf("the Secret: %+v %v", live, err)
		}
		found := pods(t.Context(), t, ns, "secret")
		await(t, "the task's own comparison", func(context.Context) (string, bool) {
			printed := logOf(t, &found[0])
			return printed, strings.Contains(printed, "the same\n")
		})
		nowhereIn(t, value, r.Directory, log)
	}
	now := config(first, 1)
	t.Cleanup(func() {
		if printed, code := r.Run(t, now, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
		nowhereIn(t, first, r.Directory, log)
		nowhereIn(t, second, r.Directory, log)
	})
	if printed, code := r.Run(t, now, "plan", "-out=saved"); code != 0 {
		t.Fatalf("plan exited with %d:\n%s", code, printed)
	}
	if printed, code := r.Run(t, now, "apply", "-auto-approve"); code != 0 || strings.Contains(printed, first) {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	of(first)
	r.ExpectNoChanges(t, now)
	// Another value of the same version is none of Terraform's business; a new version replaces the task.
	now = config(second, 2)
	if printed, code := r.Run(t, now, "apply", "-auto-approve"); code != 0 || !strings.Contains(printed, "1 destroyed") {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	of(second)

	// Imported, the task has the version that it was made with, and is not replaced.
	importing := providertest.NewTerminal(t)
	importing.Environment = []string{"TF_VAR_token=" + second}
	printed, code := importing.Run(t, now+fmt.Sprintf("import {\n  to = elastic_task.test\n  id = %q\n}\n", ns+"/secret"), "plan")
	if code != 0 {
		t.Fatalf("plan exited with %d:\n%s", code, printed)
	}
	providertest.ExpectText(t, printed, "1 to import, 0 to add", "0 to destroy")
}

// nowhereIn checks that no file holds the secret.
func nowhereIn(t *testing.T, secret string, roots ...string) {
	t.Helper()
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			if err == nil && bytes.Contains(content, []byte(secret)) {
				t.Errorf("%s holds the secret", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestASecretThatExistsIsOnlyReferredTo(t *testing.T) {
	t.Parallel()
	ns, r := namespace(t), providertest.NewTerminal(t)
	makeSecret(t, ns, "tokens", "hub", "from-the-cluster")
	config := block(ns, "referred", `
		run      = "test \"$TOKEN\" = from-the-cluster"
		secrets  = { TOKEN = { secret_name = "tokens", key = "hub" } }
		wait_for = "succeeded"
		fail_on_error = true`)
	t.Cleanup(func() {
		if printed, code := r.Run(t, config, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
	})
	if printed, code := r.Run(t, config, "apply", "-auto-approve"); code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	r.ExpectNoChanges(t, config)
}
