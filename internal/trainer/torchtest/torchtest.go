// Package torchtest finds PyTorch for tests that compare with it or train with it.
package torchtest

import (
	"cmp"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const (
	// required names the environment variable with which a missing PyTorch fails a test instead of skipping it, so that a
	// machine that has to run these tests cannot skip them unnoticed.
	required = "ELASTIC_REQUIRE_PYTORCH"
	// interpreter names the environment variable with another interpreter than Debian's, as of `make test-pytorch`.
	interpreter = "ELASTIC_PYTHON"
)

// Python is the interpreter that has PyTorch: by default Debian's, which finds the modules of Debian's python3-torch;
// another python3 on PATH does not.
func Python() string {
	return cmp.Or(os.Getenv(interpreter), "/usr/bin/python3")
}

// Has reports whether the interpreter can run a statement: the import of what not each version of PyTorch comes with.
func Has(t *testing.T, statement string) bool {
	t.Helper()
	return exec.CommandContext(t.Context(), Python(), "-c", statement).Run() == nil
}

// FindGPU is Find for tests that need a GPU, and are skipped without one.
func FindGPU(t *testing.T) string {
	t.Helper()
	python := Find(t)
	if !Has(t, "import torch; assert torch.cuda.is_available()") {
		t.Skip("there is no GPU for " + python)
	}
	return python
}

// Find returns an interpreter that can import torch and the other modules. PyTorch is no Go module that a build can
// fetch, and weighs hundreds of megabytes: without it the test is skipped.
func Find(t *testing.T, others ...string) string {
	t.Helper()
	python, modules := Python(), strings.Join(append([]string{"torch"}, others...), ", ")
	if err := exec.CommandContext(t.Context(), python, "-c", "import "+modules).Run(); err != nil {
		if os.Getenv(required) != "" {
			t.Fatalf("%s cannot import %s, and %s is set: install python3-torch", python, modules, required)
		}
		t.Skipf("%s cannot import %s: install python3-torch", python, modules)
	}
	return python
}
