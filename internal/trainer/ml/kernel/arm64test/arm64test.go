// Package arm64test lets tests on other processors run programs for arm64, with qemu's user-mode emulator. Without the
// emulator a test is skipped with a message. It is also skipped on arm64 itself, whose ordinary tests run the kernels.
package arm64test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Emulator is the path of the emulator. A program for arm64 and its arguments are its arguments.
func Emulator(t testing.TB) string {
	t.Helper()
	if runtime.GOARCH == "arm64" {
		t.Skip("this processor is an arm64: its kernels are what the other tests run")
	}
	for _, name := range []string{"qemu-aarch64", "qemu-aarch64-static"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("the arm64 kernels are not run, because qemu-aarch64 is not on the PATH; on Debian it comes with: apt-get install qemu-user")
	return ""
}

// Build has the go command make a program for arm64, a test binary or another: `go arguments... -o program
// packages...`.
func Build(t testing.TB, arguments []string, packages ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	build := exec.CommandContext(t.Context(), "go", slices.Concat(arguments, []string{"-o", program}, packages)...)
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("compiling %s for arm64: %v\n%s", packages, err, out)
	}
	return program
}

// Tests compiles the tests of the package at hand for arm64 and runs them with flags of a test binary. Each of the
// passed ones must be among those that did.
func Tests(t testing.TB, flags []string, passed ...string) {
	t.Helper()
	emulator := Emulator(t)
	program := Build(t, []string{"test", "-c"}, ".")
	run := exec.CommandContext(t.Context(), emulator, append([]string{program, "-test.v"}, flags...)...)
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("the tests under %s: %v\n%s", emulator, err, out)
	}
	for _, name := range passed {
		if !strings.Contains(string(out), "--- PASS: "+name+" ") {
			t.Errorf("%s has not passed under %s, or was not run:\n%s", name, emulator, out)
		}
	}
}
