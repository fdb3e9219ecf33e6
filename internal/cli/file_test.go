package cli_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
)

func TestAFileIsReplacedWhenItIsWholeAndHasItsPermissions(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil { //nolint:gosec // others may read it
		t.Fatal(err)
	}
	half := errors.New("half")
	err := cli.WriteFile(path, 0o600, func(out io.Writer) error {
		_, err := io.WriteString(out, "ne")
		return errors.Join(err, half)
	})
	if text, _ := os.ReadFile(path); !errors.Is(err, half) || string(text) != "old" {
		t.Errorf("%v: %q", err, text)
	}
	err = cli.WriteFile(path, 0o600, func(out io.Writer) error {
		_, err := io.WriteString(out, "new")
		return err
	})
	info, statErr := os.Stat(path)
	if text, _ := os.ReadFile(path); errors.Join(err, statErr) != nil || string(text) != "new" || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: %q, %v", err, text, info)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v: %v are left", err, entries)
	}
}

func TestWhatIsNoFileIsWrittenTo(t *testing.T) {
	if err := cli.WriteFile(os.DevNull, 0o600, func(out io.Writer) error {
		_, err := io.WriteString(out, "text")
		return err
	}); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%v: %v", err, info)
	}
}
