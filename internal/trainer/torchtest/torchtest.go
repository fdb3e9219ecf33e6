// Package torchtest finds PyTorch for tests that compare with it or train with it.
package torchtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// required names the environment variable with which a missing PyTorch fails a test instead of skipping it, so that a
// machine that has to run these tests cannot skip them unnoticed.
const required = "ELASTIC_REQUIRE_PYTORCH"

// Python is Debian's interpreter, which finds the modules of Debian's python3-torch; another python3 on PATH does not.
const Python = "/usr/bin/python3"

// Find returns an interpreter that can import torch and the other modules. PyTorch is no Go module that a build can
// fetch, and weighs hundreds of megabytes: without it the test is skipped.
func Find(t *testing.T, others ...string) string {
	t.Helper()
	modules := strings.Join(append([]string{"torch"}, others...), ", ")
	if err := exec.CommandContext(t.Context(), Python, "-c", "import "+modules).Run(); err != nil {
		if os.Getenv(required) != "" {
			t.Fatalf("%s cannot import %s, and %s is set: install python3-torch", Python, modules, required)
		}
		t.Skipf("%s cannot import %s: install python3-torch", Python, modules)
	}
	return Python
}
