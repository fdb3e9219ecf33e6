package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clitest"
)

func TestManners(t *testing.T) {
	clitest.Manners(t, newRoot)
}

func TestTheSessionOfTheReadmeIsRecordedOnACluster(t *testing.T) {
	folder := t.TempDir()
	if err := record(t.Context(), "../../..", folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"session.cast", "session-light.svg", "session-dark.svg"} {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
		} else if info.Size() > 200_000 {
			t.Errorf("%s has %d bytes, which is much for a README", name, info.Size())
		}
	}
}
