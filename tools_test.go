package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine is a directory for PATH with what every machine has, and with tools that answer as these scripts do.
func machine(t *testing.T, tools map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"bash", "sh", "make", "sed", "awk", "sort", "head", "dirname", "cat", "uname", "grep", "mktemp", "mkfifo", "mkdir", "wc", "rm", "basename", "ln"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("%s is not here", name)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range tools {
		path := filepath.Join(dir, name)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Scripts that answer as tools do; any other call is a build that should not have begun.
const (
	newGo        = `test "$*" = "env GOVERSION" && echo go1.99.0 || { echo "a build began: go $*" >&2; exit 1; }`
	oldGo        = `echo go1.22.1`
	refusingGo   = `echo "go: go.mod requires go >= 1.26 (running go 1.22.1; GOTOOLCHAIN=local)" >&2; exit 1`
	newTerraform = `echo "Terraform v1.99.0"`
	oldTerraform = `echo "Terraform v1.5.7"`
	newTofu      = `echo "OpenTofu v1.99.0"`
	oldTofu      = `echo "OpenTofu v1.6.2"`
	darwin       = `echo Darwin`
	anything     = `exit 0`
)

func TestWhatIsMissingIsNamedBeforeAnythingIsBuilt(t *testing.T) {
	for name, c := range map[string]struct {
		target string
		tools  map[string]string
		want   []string
	}{
		"demo without go":                   {"demo", map[string]string{"terraform": newTerraform}, []string{"go is not on PATH", "https://go.dev/dl", "1.26"}},
		"demo with an old go":               {"demo", map[string]string{"go": oldGo, "terraform": newTerraform}, []string{"too old", "1.22.1", "https://go.dev/dl"}},
		"demo with a go that fetches none":  {"demo", map[string]string{"go": refusingGo, "terraform": newTerraform}, []string{"too old", "GOTOOLCHAIN", "https://go.dev/dl"}},
		"demo with an old terraform":        {"demo", map[string]string{"go": newGo, "terraform": oldTerraform}, []string{"too old", "1.5.7", "1.8.0", "hashicorp.com/terraform/install"}},
		"demo on another system":            {"demo", map[string]string{"go": newGo, "terraform": newTerraform, "uname": darwin}, []string{"Linux only", "Darwin", "make e2e-kind"}},
		"demo with an old tofu":             {"demo", map[string]string{"go": newGo, "tofu": oldTofu}, []string{"tofu is too old", "1.6.2", "1.8.0"}},
		"demo-queues with an old terraform": {"demo-queues", map[string]string{"go": newGo, "terraform": oldTerraform}, []string{"too old", "1.5.7"}},
		"test with an old terraform":        {"test", map[string]string{"go": newGo, "terraform": oldTerraform}, []string{"too old", "1.5.7"}},
		"test-clis without terraform":       {"test-clis", map[string]string{"go": newGo}, []string{"terraform is not on PATH", "1.8.0", "hashicorp.com/terraform/install"}},
		"test with races without gcc":       {"test RACE=1", map[string]string{"go": newGo, "terraform": newTerraform}, []string{"gcc is not on PATH", "apt-get install gcc"}},
		"lint without git":                  {"lint", map[string]string{"go": newGo}, []string{"git is not on PATH", "apt-get install git"}},
		"generate without git":              {"generate", map[string]string{"go": newGo, "terraform": newTerraform}, []string{"git is not on PATH"}},
		"generate without protoc":           {"generate", map[string]string{"go": newGo, "terraform": newTerraform, "git": anything}, []string{"protoc", "apt-get install protobuf-compiler"}},
		"release-check without git":         {"release-check", map[string]string{"go": newGo}, []string{"git is not on PATH"}},
		"docs without go":                   {"docs", nil, []string{"go is not on PATH"}},
		"recording without go":              {"recording", nil, []string{"go is not on PATH"}},
		"recording on another system":       {"recording", map[string]string{"go": newGo, "terraform": newTerraform, "uname": darwin}, []string{"Linux only"}},
		"image without go":                  {"image", nil, []string{"go is not on PATH"}},
		"e2e-kind without go":               {"e2e-kind", map[string]string{"terraform": newTerraform}, []string{"go is not on PATH"}},
		"e2e-kind with an old terraform":    {"e2e-kind", map[string]string{"go": newGo, "terraform": oldTerraform}, []string{"too old", "1.5.7"}},
		"try without go":                    {"try", nil, []string{"go is not on PATH"}},
		"a go that is there is used (make)": {"build", map[string]string{"go": newGo}, []string{"a build began"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := runMake(t, machine(t, c.tools), c.target)
			if err == nil {
				t.Error("it went on")
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing in\n%s", want, out)
				}
			}
			if c.target != "build" && strings.Contains(out, "a build began") {
				t.Errorf("only after a build:\n%s", out)
			}
		})
	}
}

func TestTheCommandLineIsWhatIsOnPathOrElseAnOpenTofuThatIsBuilt(t *testing.T) {
	const neither, builds = "Neither terraform nor tofu is on PATH. OpenTofu is built from its Go module, once", "a build began: go -C tools/clis/opentofu"
	for name, c := range map[string]struct {
		tools   map[string]string
		choice  string
		want    []string
		without []string
	}{
		"neither is there":            {nil, "", []string{neither, builds}, nil},
		"terraform is there":          {map[string]string{"terraform": newTerraform}, "", nil, []string{"OpenTofu", "tools/clis"}},
		"tofu is there":               {map[string]string{"tofu": newTofu}, "", nil, []string{"OpenTofu", "tools/clis"}},
		"OpenTofu is chosen":          {map[string]string{"terraform": newTerraform}, "CLI=opentofu-1.12", []string{"OpenTofu is built", builds}, []string{neither}},
		"Terraform is chosen":         {nil, "CLI=terraform-1.16", []string{"a build began: go -C tools/clis/terraform"}, []string{neither}},
		"what is not there is chosen": {nil, "CLI=installed", []string{"terraform is not on PATH"}, []string{neither, "a build began"}},
	} {
		t.Run(name, func(t *testing.T) {
			tools := map[string]string{"go": newGo}
			maps.Copy(tools, c.tools)
			out, _ := runMake(t, machine(t, tools), "use-cli "+c.choice+" BIN="+t.TempDir())
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing in\n%s", want, out)
				}
			}
			for _, wrong := range c.without {
				if strings.Contains(out, wrong) {
					t.Errorf("%q is in\n%s", wrong, out)
				}
			}
		})
	}
}

func TestWithoutAContainerEngineTheStoriesOnKindAreSkippedAtOnce(t *testing.T) {
	without := map[string]string{"go": newGo, "terraform": newTerraform}
	if out, err := runMake(t, machine(t, without), "e2e-kind"); err != nil || !strings.Contains(out, "Skipped") || !strings.Contains(out, "docker, nerdctl or podman") || strings.Contains(out, "a build began") {
		t.Errorf("%v\n%s", err, out)
	}
	with := map[string]string{"go": newGo, "terraform": newTerraform, "podman": anything}
	if out, err := runMake(t, machine(t, with), "e2e-kind"); err == nil || !strings.Contains(out, "a build began") {
		t.Errorf("%v\n%s", err, out)
	}
}

// An e2e/kube-VERSION.mod that was copied from e2e/go.mod before the change keeps the earlier version for the
// comparison.
func TestMakeKubernetesKeepsTheVersionOfAFileThatWasJustCopied(t *testing.T) {
	script, err := os.ReadFile("tools/kubernetes.sh")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	module := "require (\n\tk8s.io/client-go v0.37.1\n\tk8s.io/kubernetes v1.37.1\n)\n\nreplace (\n\tk8s.io/api => k8s.io/api v0.37.1\n)\n"
	for name, text := range map[string]string{
		"tools/kubernetes.sh": string(script), "simcluster/kubeversion/version.txt": "v1.38.2\n", "go.mod": module, "simcluster/go.mod": module,
		"e2e/go.mod": module, "e2e/go.sum": "", "e2e/kube-1.37.mod": module,
		"e2e/kube-1.36.mod": strings.Replace(module, "\tk8s.io/api", "\tk8s.io/kubernetes => k8s.io/kubernetes v1.36.1\n\tk8s.io/api", 1),
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := machine(t, map[string]string{"go": anything, "git": anything})
	c := exec.CommandContext(t.Context(), filepath.Join(path, "bash"), filepath.Join(root, "tools/kubernetes.sh"))
	c.Env = []string{"PATH=" + path}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, want := range map[string]string{
		"go.mod":            "k8s.io/kubernetes v1.38.2\n",
		"e2e/go.mod":        "k8s.io/api v0.38.2\n",
		"e2e/kube-1.37.mod": "k8s.io/kubernetes => k8s.io/kubernetes v1.37.1\n",
		"e2e/kube-1.36.mod": "k8s.io/kubernetes => k8s.io/kubernetes v1.36.1\n",
	} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q (%v):\n%s", name, want, err, text)
		}
	}
}

// runMake runs make with nothing of this process's environment but what tools need.
func runMake(t *testing.T, path, target string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(path, "make"), strings.Fields(target)...)
	c.Env = []string{"PATH=" + path, "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir()}
	out, err := c.CombinedOutput()
	return string(out), err
}
