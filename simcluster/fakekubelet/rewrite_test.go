package fakekubelet

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRewritePaths(t *testing.T) {
	mounts := []string{"/data", "/data/deep", "/etc/elastic", "/output/"}
	for name, c := range map[string]struct{ text, want string }{
		"a mount path":                        {"/data", "/R/data"},
		"a path below one":                    {"/data/train/x", "/R/data/train/x"},
		"behind a flag":                       {"--data=/data/x", "--data=/R/data/x"},
		"in a shell command":                  {"cp /data/a '/output/b'; ls /data", "cp /R/data/a '/R/output/b'; ls /R/data"},
		"in a list of paths":                  {"/data/a:/etc/elastic/b", "/R/data/a:/R/etc/elastic/b"},
		"a nested mount":                      {"/data/deep/x", "/R/data/deep/x"},
		"a longer name is another path":       {"/database /data-2 /data.txt", "/database /data-2 /data.txt"},
		"within another path":                 {"/mnt/data x/data ./data", "/mnt/data x/data ./data"},
		"a URL is no path":                    {"file:///data/x", "file:///data/x"},
		"a path that was replaced stays so":   {"/R/data/x", "/R/data/x"},
		"the parent of a mount is the host's": {"/etc", "/etc"},
		"text without paths":                  {"hello", "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rewritePaths(c.text, "/R", mounts); got != c.want {
				t.Errorf("rewritePaths(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestLinksStandForMountsAlsoForOneInsideOfAnother(t *testing.T) {
	dir := t.TempDir()
	volume, nested := filepath.Join(dir, "v"), filepath.Join(dir, "n")
	for _, d := range []string{volume, nested} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(nested, "seen"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "root")
	for range 2 { // a restart of the container does it again
		if err := linkBinds(root, []bind{{Target: "/data/deep", Source: nested}, {Target: "/data", Source: volume}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "data/deep/seen")); err != nil {
		t.Errorf("a volume mounted inside of another: %v", err)
	}
}
