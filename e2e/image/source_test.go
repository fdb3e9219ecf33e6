package image_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/e2e/image"
)

func TestASourceIsItsCommitUnlessTheWorkTreeDiffers(t *testing.T) {
	dir := t.TempDir()
	git := func(arguments ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.com"}, arguments...)...)
		c.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-07-01T12:00:00Z", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", arguments, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	sourceOf := func() image.Source {
		t.Helper()
		s, err := image.SourceOf(t.Context(), dir, "0.1.0")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Setenv("SOURCE_DATE_EPOCH", "")
	if got := sourceOf(); got != (image.Source{Version: "0.1.0"}) {
		t.Errorf("outside of git: %+v", got)
	}

	git("init", "--quiet")
	git("commit", "--quiet", "--allow-empty", "--message", "a commit")
	want := image.Source{Version: "0.1.0", Revision: git("rev-parse", "HEAD"), Created: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
	if got := sourceOf(); got != want {
		t.Errorf("at a commit: %+v, not %+v", got, want)
	}

	if err := os.WriteFile(filepath.Join(dir, "new.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want.Revision = ""
	if got := sourceOf(); got != want {
		t.Errorf("with a new file: %+v, not %+v", got, want)
	}

	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	want.Created = time.Unix(86400, 0).UTC()
	if got := sourceOf(); got != want {
		t.Errorf("at a given time: %+v, not %+v", got, want)
	}

	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := image.SourceOf(t.Context(), dir, "0.1.0"); err == nil || !strings.Contains(err.Error(), `$SOURCE_DATE_EPOCH is "yesterday"`) {
		t.Errorf("error %v", err)
	}
}
