package elastictrainer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
)

func TestGang(t *testing.T) {
	t.Run("install puts the running program where it is asked to, so that it can be executed", func(t *testing.T) {
		to := filepath.Join(t.TempDir(), "bin", "elastic-trainer")
		if code := Main("test", []string{"gang", "install", to}); code != 0 {
			t.Fatalf("code %d", code)
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.Stat(self)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.Stat(to)
		if err != nil || got.Size() != want.Size() || got.Mode().Perm()&0o555 != 0o555 {
			t.Errorf("%v, %v", got, err)
		}
		if left, err := filepath.Glob(to + ".*"); err != nil || len(left) > 0 {
			t.Errorf("left behind: %q, %v", left, err)
		}
	})
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
	}{
		"outside of a task's pod run is refused": {nil, []string{"gang", "run", "--task", "x", "--", "true"}},
		"a rank that there is not is refused":    {map[string]string{"SKYPILOT_NODE_RANK": "2", "SKYPILOT_NUM_NODES": "2", "ELASTIC_STOP_SECONDS": "28", "MY_POD_UID": "a", "MY_POD_IP": "10.0.0.1"}, []string{"gang", "run", "--task", "x", "--", "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range c.env {
				t.Setenv(key, value)
			}
			if code := Main("test", c.args); code != cli.Usage {
				t.Errorf("code %d", code)
			}
		})
	}
}
